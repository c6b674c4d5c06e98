"""UpStream's windows under update semantics and its memory (Moga et al. 2009, figures 13, 14, 16 and 17).

All in virtual time, so the figures do not depend on the machine. Staleness is in the mean time between two
tuples of the stream; a tuple costs one such unit. Windows count the tuples of their key, save in figure 14:
there they are of event time, as section 7.2 says, and count tuples in the series of "14 counted".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Progress
from windowpane.bench.upstream_memory import LOADS, PAGE_TUPLES, THETAS, memory_points
from windowpane.core.upstream.windows import Commit, UpdateWindow
from windowpane.simulate.overload import Arrivals, arrivals, zipf
from windowpane.simulate.overload_windows import simulate_append_windows, simulate_windows

SIZES = (1, 2, 3, 5, 10, 20, 50, 100)
# Where the claim about figure 14 is checked, smaller and larger windows; then where it is reported only.
SMALL = {"14": (10, 20), "14 counted": (2, 3)}
LARGE = {"14": (50, 100), "14 counted": (5,)}
BEYOND = {"14": (200, 500), "14 counted": (10, 20, 50, 100)}
KEYS = 10
SKEWS = (0.0, 0.5, 0.9)
SEEDS = 3
SHEDS = 20
"""Seeds of random shedding, whose queues are long by chance now and then."""
_ROUND_ROBIN = "uniform order"


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a figure."""

    figure: str
    series: str
    x: float
    value: float

    def row(self) -> Row:
        """As a line of the report."""
        return {"figure": self.figure, "series": self.series, "x": self.x, "value": round(self.value, 4)}


Series = Mapping[tuple[str, str], Mapping[float, float]]
"""The points of a series by x, under (figure, series)."""


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Measure every figure."""
    tuples, results = (20_000, 200) if quick else (100_000, 1_000)
    parts = (
        ("figure 13", windows_of_one_key(tuples)),
        ("figure 14", windows_of_many_keys(tuples)),
        ("figures 16 and 17", (Point(*found) for found in memory_points(results))),
    )
    points: list[Point] = []
    for done, (name, part) in enumerate(parts):
        progress(done, len(parts), name)
        points += part
    series: dict[tuple[str, str], dict[float, float]] = {}
    for point in points:
        series.setdefault((point.figure, point.series), {})[point.x] = point.value
    parameters: dict[str, Scalar] = {
        "tuples": tuples,
        "results": results,
        "keys": KEYS,
        "cost": 1.0,
        "seeds": SEEDS,
        "seeds_of_shedding": SHEDS,
        "page_tuples": PAGE_TUPLES,
        "x": "of figures 13 and 14 the size of windows, of 16 and 7.2 the theta of Zipf, of 17 the load",
        "value": "of figure 13 staleness in tuples (or a number of windows), of 14 that of EAGER over LAZY, "
        "of 16 and 17 a: the share of allocated cells in use, b: the cells allocated",
    }
    rows = [point.row() for point in points]
    return Report("upstream-windows", parameters, rows, claims(series), not_reproduced(series))


def windows_of_one_key(tuples: int) -> Iterator[Point]:
    """Figure 13: tumbling windows, and windows that slide by one tuple, also in append queues."""
    stream = Arrivals(np.arange(1.0, tuples + 1), np.zeros(tuples, np.int64), 1)
    begin = tuples / 10
    for size in SIZES:
        for commit in Commit:
            for figure, slide in (("13a", size), ("13b", 1)):
                found = simulate_windows(UpdateWindow(size, slide, commit), stream, 1.0, measured=begin)
                yield Point(figure, commit.value, size, found.staleness.average_application)
                yield Point(f"{figure}, windows", commit.value, size, len(found.windows))
        window = UpdateWindow(size, 1)
        found = simulate_append_windows(window, stream, 1.0, measured=begin)
        yield Point("13b", "append", size, found.staleness.average_application)
        shed = [
            simulate_append_windows(window, stream, 1.0, shed=True, measured=begin, seed=seed)
            for seed in range(SHEDS)
        ]
        average = float(np.mean([found.staleness.average_application for found in shed]))
        yield Point("13b", "append, random windows", size, average)
        delivered = float(np.mean([len(found.windows) for found in shed]))
        yield Point("13b, windows", "append, random windows", size, delivered)


def windows_of_many_keys(tuples: int) -> Iterator[Point]:
    """Figure 14: the application staleness of EAGER over that of LAZY, by the arrivals of ten keys."""
    times = np.arange(1.0, tuples + 1)
    streams = {_ROUND_ROBIN: [Arrivals(times, np.arange(tuples) % KEYS, KEYS)]}
    for theta in SKEWS:
        drawn = [arrivals(zipf(KEYS, theta), tuples, seed=seed).ids for seed in range(SEEDS)]
        streams[_zipf(theta)] = [Arrivals(times, ids, KEYS) for ids in drawn]
    for figure, small in SMALL.items():
        for size in (*small, *LARGE[figure], *BEYOND[figure]):
            for name, some in streams.items():
                yield Point(figure, name, size, _eager_to_lazy(size, some, timed=figure == "14"))


def _eager_to_lazy(size: int, streams: Sequence[Arrivals], *, timed: bool) -> float:
    total = dict.fromkeys(Commit, 0.0)
    for stream in streams:
        for commit in Commit:
            window = UpdateWindow(size, 1, commit, timed)
            found = simulate_windows(window, stream, 1.0, measured=stream.span / 10)
            total[commit] += found.staleness.average_application
    return total[Commit.EAGER] / total[Commit.LAZY]


def _zipf(theta: float) -> str:
    return f"zipf {theta:g}"


def claims(series: Series) -> list[Claim]:
    """What the text of sections 6.3 and 7.3 says about the figures."""
    return [*_claims_of_13(series), *_claims_of_14(series), *_claims_of_memory(series)]


def _claims_of_13(series: Series) -> Iterator[Claim]:
    lazy, eager = series["13a", "lazy"], series["13a", "eager"]
    slopes = [lazy[size] / size for size in SIZES]
    yield Claim("13a: LAZY grows with the size (least / largest slope)", min(slopes) / max(slopes), 0.98)
    areas = [eager[size] * size for size in SIZES]
    yield Claim("13a: EAGER is stale for the same time in every window", min(areas) / max(areas), 0.98)
    fall = eager[SIZES[-1]] / eager[SIZES[0]]
    yield Claim("13a: so its average falls (largest / least size)", fall, 0.1, at_most=True)
    over = SIZES[1:]  # one tuple per unit and window is no overload
    lazy, eager = series["13b", "lazy"], series["13b", "eager"]
    append, shed = series["13b", "append"], series["13b", "append, random windows"]
    yield _most("13b: EAGER / LAZY", [eager[s] / lazy[s] for s in over], 1.0)
    yield _most("13b: LAZY / random windows", [lazy[s] / shed[s] for s in over], 1.0)
    yield _most("13b: random windows / append", [shed[s] / append[s] for s in over], 1.0)
    random, newest = series["13b, windows", "append, random windows"], series["13b, windows", "lazy"]
    as_many = [random[s] / newest[s] for s in over]
    yield Claim("13b: windows delivered with random windows / with LAZY, least", min(as_many), 0.8)
    yield _most("13b: the same", as_many, 1.2)
    grows = [shed[b] / shed[a] for a, b in pairwise(over)]
    yield Claim("13b: random windows get worse with every larger size (least growth)", min(grows), 1.0)


def _claims_of_14(series: Series) -> Iterator[Claim]:
    for figure, small in SMALL.items():
        large = LARGE[figure]
        order = list(series[figure, _ROUND_ROBIN].values())
        yield _most(f"{figure}: uniform order: EAGER / LAZY", order, 1.0)
        for theta in SKEWS:
            found = series[figure, _zipf(theta)]
            least = min(found[size] for size in (*small, *large))
            name = f"{figure}: {_zipf(theta)}: EAGER / LAZY, sizes {small[0]} to {large[-1]} (least)"
            yield Claim(name, least, 1.0)
            less = np.mean([found[s] for s in large]) / np.mean([found[s] for s in small])
            name = f"{figure}: {_zipf(theta)}: less so for larger windows (large / small)"
            yield Claim(name, float(less), 1.0, at_most=True)


def not_reproduced(series: Series) -> list[str]:
    """Where the paper's words hold for only a part of the sizes (docs/upstream-windows.md says why)."""
    found = []
    for figure, beyond in BEYOND.items():
        for theta in SKEWS:
            better = [size for size in beyond if series[figure, _zipf(theta)][size] < 1.0]
            if better:
                found.append(f"{figure}: EAGER worse than LAZY for {_zipf(theta)}: not at {better}")
    return found


def _claims_of_memory(series: Series) -> Iterator[Claim]:
    for figure, xs, way in (("16", THETAS, -1), ("17", LOADS, 1)):
        paged, naive = series[f"{figure}a", "paged"], series[f"{figure}a", "naive"]
        yield Claim(f"{figure}a: on-demand paging has no dirty locations (least)", min(paged.values()), 1.0)
        used, kept = series[f"{figure}b", "paged"], series[f"{figure}b", "naive"]
        yield from _trend(f"{figure}a: effective use of the naive manager", naive, xs, way)
        yield from _trend(f"{figure}b: usage of on-demand paging", used, xs, way)
        yield _most(f"{figure}b: paged / naive usage", [used[x] / kept[x] for x in xs], 1.0)
        pages, others = series[f"{figure}a", "paged, whole pages"], series[f"{figure}a", "naive, whole pages"]
        better = min(pages[x] / others[x] for x in xs)
        yield Claim(f"{figure}a: whole pages: paged / naive effective use (least)", better, 1.0)
    buffers = series["7.2", "paged / naive"]
    yield _most("7.2: window buffers, paged / naive usage", list(buffers.values()), 1.0)


def _trend(name: str, values: Mapping[float, float], xs: Sequence[float], way: int) -> Iterator[Claim]:
    """It falls with skew, or rises with load: at every step, but for chance, and in all."""
    what = f"{name} {'falls with skew' if way < 0 else 'rises with load'}"
    steps = [way * (values[b] / values[a] - 1.0) for a, b in pairwise(xs)]
    yield Claim(f"{what} at every step (least, relative)", min(steps), -0.02)
    yield Claim(f"{what} in all (relative)", way * (values[xs[-1]] / values[xs[0]] - 1.0), 0.02)


def _most(name: str, values: Sequence[float], bar: float) -> Claim:
    return Claim(f"{name} (largest)", max(values), bar, at_most=True)
