"""Average staleness of every policy behind an overloaded consumer: synthetic streams, then real ones.

All in virtual time, so the figures do not depend on the machine. On synthetic streams the unit is the mean
time between two updates, on real ones a second. The load is the work that arrives for each unit of the
consumer's time: a load of 2 is twice what it can do. Real streams are replayed where their files are found.

For three keys the least staleness that any policy can have is computed too: how much is there left to gain?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from windowpane.bench.real_streams import replays
from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Progress
from windowpane.core.arrays import Floats
from windowpane.simulate.optimum import optimum
from windowpane.simulate.overload import Arrivals, arrivals, simulate, two_class, uniform, zipf
from windowpane.values.freshness import Policy

PAPER = (Policy.APPEND, Policy.SHED, Policy.FIFO, Policy.IN_PLACE, Policy.LINECUTTING)
POLICIES = (*PAPER, Policy.FRESHEST)
LOADS = (1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
QUICK_LOADS = (1.5, 2.0, 5.0, 20.0)
KEYS = (10, 100)
THETAS = (0.3, 0.6, 0.9, 1.2, 1.5)
SLOW = (0.2, 0.5, 0.8)
REPLAY_LOADS = (2.0, 5.0, 20.0)
FEW, FEW_LOADS, QUICK_FEW_LOADS = 3, (1.2, 1.5, 2.0, 3.0, 5.0), (2.0,)
WARM_UP = 1 / 6
"""The part of a synthetic stream before staleness is measured."""
WORST, MEAN, MODERATE, MILD, LEAST = 1.01, 0.92, 5.0, 0.9, 1.01

Pair = tuple[float, float]
"""Queue and application staleness."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the grid: how the updates are shared out to keys, and the load; `theta` is Zipf's."""

    name: str
    shares: Floats
    load: float
    theta: float = 0.0

    @property
    def skewed(self) -> bool:
        """Whether some keys update more often than others."""
        return bool(self.shares.max() > self.shares.min())


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Measure every policy in every cell and on every real stream that is here."""
    updates, seeds = (20_000, 2) if quick else (60_000, 12)
    grid = list(cells(QUICK_LOADS if quick else LOADS))
    streams = replays(20_000 if quick else 200_000)
    small = list(few(QUICK_FEW_LOADS if quick else FEW_LOADS))
    points = len(grid) + len(small) + len(streams) * len(REPLAY_LOADS)
    rows: list[Row] = []
    found: list[tuple[Cell, Pair]] = []
    for cell in grid:
        progress(len(rows), points, f"{cell.name}, {len(cell.shares)} keys, load {cell.load:g}")
        by_policy = measured(cell, updates, seeds)
        rows.append(row(cell.name, len(cell.shares), cell.load, by_policy))
        found.append((cell, ratios(by_policy)))
    left: list[Pair] = []
    for cell in small:
        progress(len(rows), points, f"{cell.name}, {FEW} keys, load {cell.load:g}, and the least possible")
        by_policy, least = measured(cell, updates, seeds), least_of(cell, slots=3 if quick else 4)
        rows.append({**row(cell.name, FEW, cell.load, by_policy), "least": float(f"{least[1]:.5g}")})
        ours = by_policy[Policy.FRESHEST]
        left.append((ours[0] / least[0], ours[1] / least[1]))
    for name, stream in streams.items():
        for load in REPLAY_LOADS:
            progress(len(rows), points, f"{name}, load {load:g}")
            rows.append(row(name, stream.keys, load, replayed(stream, load)))
    parameters: dict[str, Scalar] = {
        "updates": updates,
        "seeds": seeds,
        "clock": "virtual time",
        "best_of": ", ".join(policy.value for policy in PAPER),
        "real_streams": ", ".join(streams) or "none found",
    }
    return Report("staleness", parameters, rows, [*claims(found), *claims_of_few(left)])


def cells(loads: tuple[float, ...]) -> Iterator[Cell]:
    """Uniform, two-class and Zipf updates, for few and many keys, at every load."""
    for keys in KEYS:
        shapes = {"uniform": (uniform(keys), 0.0)}
        for part in SLOW:
            shapes[f"two classes, {part:.0%} slow"] = two_class(keys, round(part * keys)), 0.0
        shapes |= {f"zipf {theta}": (zipf(keys, theta), theta) for theta in THETAS}
        for name, (shares, theta) in shapes.items():
            for load in loads:
                yield Cell(name, shares, load, theta)


def few(loads: tuple[float, ...]) -> Iterator[Cell]:
    """Skewed updates of so few keys that the least staleness can be computed."""
    shapes = {f"two classes, {n} of {FEW} slow": two_class(FEW, n) for n in (1, 2)}
    shapes |= {f"zipf {theta}": zipf(FEW, theta) for theta in THETAS if theta <= MILD}
    return (Cell(name, shares, load) for name, shares in shapes.items() for load in loads)


def least_of(cell: Cell, *, slots: int) -> Pair:
    """The least staleness that any policy can have."""
    queue, application = (
        optimum(cell.shares, cell.load, application=kind, slots=slots) for kind in (False, True)
    )
    return queue, application


def measured(cell: Cell, updates: int, seeds: int) -> dict[Policy, Pair]:
    """The staleness of each policy, averaged over streams of several seeds."""
    totals = {policy: np.zeros(2) for policy in POLICIES}
    for seed in range(seeds):
        stream = arrivals(cell.shares, updates, seed=seed)
        for policy in POLICIES:
            found = simulate(policy, stream, cell.load, measured=WARM_UP * updates, seed=seed).staleness
            totals[policy] += (found.average_queue, found.average_application)
    return {policy: (float(total[0]) / seeds, float(total[1]) / seeds) for policy, total in totals.items()}


def replayed(stream: Arrivals, load: float) -> dict[Policy, Pair]:
    """The staleness of each policy on a real stream, before a consumer that can take 1 / load of it."""
    cost = load * stream.span / len(stream.ids)
    found = {policy: simulate(policy, stream, cost).staleness for policy in POLICIES}
    return {policy: (one.average_queue, one.average_application) for policy, one in found.items()}


def ratios(by_policy: Mapping[Policy, Pair]) -> Pair:
    """Our policy's staleness, queue and application, relative to the best of the paper's policies."""
    ours = by_policy[Policy.FRESHEST]
    best = [min(by_policy[policy][kind] for policy in PAPER) for kind in (0, 1)]
    return _ratio(ours[0], best[0]), _ratio(ours[1], best[1])


def _ratio(ours: float, best: float) -> float:
    return ours / best if best > 0.0 else 1.0 if ours == 0.0 else np.inf


def row(name: str, keys: int, load: float, by_policy: Mapping[Policy, Pair]) -> Row:
    """Application staleness of each policy, and both ratios."""
    queue, application = ratios(by_policy)
    cells_of: dict[str, Scalar] = {"updates": name, "keys": keys, "load": load}
    cells_of |= {policy.value: float(f"{pair[1]:.5g}") for policy, pair in by_policy.items()}
    return cells_of | {"ratio": round(application, 4), "queue_ratio": round(queue, 4)}


def claims(found: list[tuple[Cell, Pair]]) -> list[Claim]:
    """Never worse than the best of the paper's policies, and better where updates are skewed."""
    made = []
    for kind, name in enumerate(("queue", "application")):
        every = [pair[kind] for _, pair in found]
        made += [
            Claim(f"{name} staleness / best of the paper's, worst cell", max(every), WORST, at_most=True),
            mean_claim(found, kind, THETAS[-1]),
            mean_claim(found, kind, MILD),
        ]
    return made


def mean_claim(found: list[tuple[Cell, Pair]], kind: int, steepest: float) -> Claim:
    """The mean ratio of the skewed cells at moderate loads, up to a steepness of Zipf's distribution."""
    name = ("queue", "application")[kind]
    skewed = [
        pair[kind] for cell, pair in found if cell.skewed and cell.load <= MODERATE and cell.theta <= steepest
    ]
    what = f"{name} staleness / best of the paper's, mean of skewed cells, load up to {MODERATE:g}"
    return Claim(f"{what}, Zipf up to {steepest:g}", float(np.mean(skewed)), MEAN, at_most=True)


def claims_of_few(left: list[Pair]) -> list[Claim]:
    """Little is left to gain, whatever the policy."""
    made = []
    for kind, name in enumerate(("queue", "application")):
        mean = float(np.mean([pair[kind] for pair in left]))
        claim = f"{name} staleness / least of any policy, mean of cells of {FEW} keys"
        made.append(Claim(claim, mean, LEAST, at_most=True))
    return made
