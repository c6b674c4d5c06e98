"""UpStream's update queues (Moga et al. 2009, figures 5, 7 and 9), with what the paper says of them checked.

All in virtual time, so the figures do not depend on the machine. As in the paper, updates come one per unit
of time and staleness is measured in that unit ("number of updates"); the load factor is the cost of an
update. For figure 9 the slow updaters update rarely and all at once, as section 5.3 motivates LINECUTTING;
with updates at random and slow keys only ten times slower, its gain is lost beyond four of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Progress
from windowpane.simulate.overload import Arrivals, Pattern, arrivals, simulate, two_class, uniform
from windowpane.values.freshness import Policy

LOADS = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0)
HIGH = tuple(load for load in LOADS if load > 1.0)
KEYS = 10
FIGURE_7 = (Policy.APPEND, Policy.SHED, Policy.FIFO, Policy.IN_PLACE)
CUT_LOAD, VERY_SLOW, SLOW = 5.0, 100.0, 10.0
"""Figure 9: its load; how much slower "very slow" updaters are; and as its text has it in an example."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a figure."""

    figure: str
    series: str
    x: float
    value: float


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Measure every figure."""
    updates = 20_000 if quick else 100_000
    parts = (("figure 5", figure_5), ("figure 7", figure_7), ("figure 9", figure_9))
    points: list[Point] = []
    for done, (name, part) in enumerate(parts):
        progress(done, len(parts), name)
        points += part(updates)
    rows: list[Row] = [
        {"figure": p.figure, "series": p.series, "x": p.x, "value": float(f"{p.value:.5g}")} for p in points
    ]
    parameters: dict[str, Scalar] = {"updates": updates, "clock": "virtual time", "unit": "one update"}
    return Report("upstream", parameters, rows, claims(points))


def streams(updates: int) -> Iterator[tuple[str, Arrivals]]:
    """The two set-ups of figures 5 and 7: a single key, and ten that update equally often."""
    yield "a", arrivals(uniform(1), updates, pattern="even")
    yield "b", arrivals(uniform(KEYS), updates, pattern="even")


def figure_5(updates: int) -> Iterator[Point]:
    """Application and queue staleness of an IN-PLACE queue, and their difference, by load."""
    for part, stream in streams(updates):
        for load in LOADS:
            outcome = simulate(Policy.IN_PLACE, stream, load)
            found = outcome.staleness
            yield Point(f"5{part}", "application", load, found.average_application)
            yield Point(f"5{part}", "queue", load, found.average_queue)
            wait = float(outcome.waited.sum() / outcome.serves.sum())
            services = float(outcome.serves.mean()) / found.span
            yield Point(f"5{part}", "least difference", load, services * wait * load)
            most = services * (wait * load + load * load / 2.0)
            yield Point(f"5{part}", "largest difference", load, most)


def figure_7(updates: int) -> Iterator[Point]:
    """Staleness of append and update queues, by load."""
    for part, stream in streams(updates):
        for policy in FIGURE_7:
            for load in LOADS:
                found = simulate(policy, stream, load).staleness
                yield Point(f"7{part}", policy.value, load, found.average_application)


def figure_9(updates: int) -> Iterator[Point]:
    """Queue staleness of IN-PLACE relative to LINECUTTING (and to ours), by the number of slow updaters."""
    set_ups: tuple[tuple[str, float, Pattern], ...] = (
        ("in step", VERY_SLOW, "together"),
        ("at random", SLOW, "random"),
    )
    for name, times, pattern in set_ups:
        for slow in range(KEYS + 1):
            stream = arrivals(two_class(KEYS, slow, times=times), updates, pattern=pattern)
            base = simulate(Policy.IN_PLACE, stream, CUT_LOAD).staleness.average_queue
            for policy in (Policy.LINECUTTING, Policy.FRESHEST):
                found = simulate(policy, stream, CUT_LOAD).staleness.average_queue
                yield Point("9", f"{policy.value}, updates {name}", slow, base / found)


def claims(points: list[Point]) -> list[Claim]:
    """What the paper says of its figures."""
    at: dict[tuple[str, str], dict[float, float]] = {}
    for point in points:
        at.setdefault((point.figure, point.series), {})[point.x] = point.value
    return [*_of_figure_5(at), *_of_figure_7(at), *_of_figure_9(at)]


Values = Mapping[tuple[str, str], Mapping[float, float]]


def _of_figure_5(at: Values) -> Iterator[Claim]:
    """5.1: both grow alike, ten keys wait ten times longer, and the difference keeps to its bounds."""
    for part in "ab":
        gaps = {x: at[f"5{part}", "application"][x] - at[f"5{part}", "queue"][x] for x in HIGH}
        above = min(gaps[x] / at[f"5{part}", "least difference"][x] for x in HIGH)
        below = max(gaps[x] / at[f"5{part}", "largest difference"][x] for x in HIGH)
        yield Claim(f"5{part}: difference / wait * cost", above, 0.99)
        yield Claim(f"5{part}: difference / (wait * cost + cost^2 / 2)", below, 1.01, at_most=True)
        for kind in ("application", "queue"):
            line = at[f"5{part}", kind]
            fit = np.corrcoef(HIGH, [line[x] for x in HIGH])[0, 1]
            yield Claim(f"5{part}: {kind} staleness is a line in the load (correlation)", float(fit), 0.99)
    top = HIGH[-1]
    inflated = at["5b", "queue"][top] / at["5a", "queue"][top]
    yield Claim("5: queue staleness of ten keys / of one, at the highest load (about 10)", inflated, 8.0)
    yield Claim("5: the same, at most", inflated, 12.0, at_most=True)
    differences = [at[f"5{part}", "application"][top] - at[f"5{part}", "queue"][top] for part in "ab"]
    yield Claim(
        "5: the difference does not grow with the keys", differences[1] / differences[0], 1.2, at_most=True
    )


def _of_figure_7(at: Values) -> Iterator[Claim]:
    """5.2: update queues are far better than append queues, IN-PLACE at least as good as FIFO."""
    for part in "ab":
        series = {policy: at[f"7{part}", policy.value] for policy in FIGURE_7}
        shed = min(series[Policy.SHED][x] / series[Policy.FIFO][x] for x in HIGH)
        append = min(series[Policy.APPEND][x] / series[Policy.SHED][x] for x in HIGH)
        place = max(series[Policy.IN_PLACE][x] / series[Policy.FIFO][x] for x in HIGH)
        yield Claim(f"7{part}: staleness with AQ / with AQ-RLS, least", append, 2.0)
        yield Claim(f"7{part}: staleness with AQ-RLS / with UQ-FIFO, least", shed, 1.0)
        yield Claim(f"7{part}: staleness with UQ-INPLACE / with UQ-FIFO, largest", place, 1.001, at_most=True)


def _of_figure_9(at: Values) -> Iterator[Claim]:
    """5.3: equal without and with only slow updaters, better between, best at eight, then less so."""
    gain = at["9", "linecutting, updates in step"]
    for slow in (0, KEYS):
        yield Claim(f"9: IN-PLACE / LINECUTTING with {slow} slow updaters", gain[slow], 0.999)
        yield Claim(f"9: the same, at most, with {slow}", gain[slow], 1.001, at_most=True)
    inner = {slow: gain[slow] for slow in range(1, KEYS)}
    yield Claim("9: IN-PLACE / LINECUTTING between, least", min(inner.values()), 1.0)
    yield Claim("9: slow updaters at which the gain is largest", max(inner, key=lambda x: inner[x]), 8)
    yield Claim("9: gain with nine / with eight", gain[9] / gain[8], 1.0, at_most=True)
    ours = at["9", "freshest, updates in step"]
    yield Claim("9: LINECUTTING / FRESHEST, least", min(ours[x] / gain[x] for x in range(KEYS + 1)), 0.98)
