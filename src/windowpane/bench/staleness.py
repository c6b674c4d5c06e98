"""Average staleness of every policy behind an overloaded consumer: synthetic streams, then real ones.

All in virtual time, so the figures do not depend on the machine. On synthetic streams the unit is the mean
time between two updates, on real ones a second. The load is the work that arrives for each unit of the
consumer's time: a load of 2 is twice what it can do. Real streams are replayed where their files are found.

How much is there left to gain? In the milder cells the rule of our policy is tried with true rates and the
best price, known afterwards. For three keys the least staleness that any policy can have is computed, and for
them and ten keys in two classes how far that rule is above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from windowpane.bench.real_streams import replays
from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Progress
from windowpane.bench.staleness_left import LIKELY, PRICES, Pair, hindsight, least_of, room_of
from windowpane.core.arrays import Floats
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
SOLVED = 10
"""So many keys in two classes can be solved too."""
WARM_UP = 1 / 6
"""The part of a synthetic stream before staleness is measured."""
WORST, MEAN, MODERATE, MILD, LEAST, ROOM = 1.01, 0.92, 5.0, 0.9, 1.01, 1.002
NAMES = ("queue", "application")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done: streams, slots of a service for three keys, and loads to solve ten keys for."""

    updates: int
    seeds: int
    slots: int
    solved: tuple[float, ...]


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

    def counts(self, steepest: float) -> bool:
        """Whether it counts in the mean: rates that differ, at most so steeply, and a moderate load."""
        return self.skewed and self.load <= MODERATE and self.theta <= steepest


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of a cell: our policy's staleness relative to the best of the paper's.

    `hindsight` is the application staleness of its rule with rates and price known, relative to the same;
    `room` that of its rule at the best price over the least of any policy; `above` ours over that least.
    """

    cell: Cell
    ratio: Pair
    hindsight: float | None = None
    room: float | None = None
    above: Pair | None = None


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Measure every policy in every cell and on every real stream that is here."""
    scale = Scale(20_000, 2, 3, ()) if quick else Scale(60_000, 12, 4, (1.2, 2.0))
    grid = list(cells(QUICK_LOADS if quick else LOADS))
    small = list(few(QUICK_FEW_LOADS if quick else FEW_LOADS))
    streams = replays(20_000 if quick else 200_000)
    points = len(grid) + len(small) + len(streams) * len(REPLAY_LOADS)
    rows: list[Row] = []
    found: list[Found] = []
    for cell in (*grid, *small):
        progress(len(rows), points, f"{cell.name}, {len(cell.shares)} keys, load {cell.load:g}")
        by_policy = measured(cell, scale)
        found.append(find(cell, by_policy, scale))
        rows.append({**row(cell.name, len(cell.shares), cell.load, by_policy), **left(found[-1])})
    for name, stream in streams.items():
        for load in REPLAY_LOADS:
            progress(len(rows), points, f"{name}, load {load:g}")
            rows.append(row(name, stream.keys, load, replayed(stream, load)))
    parameters: dict[str, Scalar] = {
        "updates": scale.updates,
        "seeds": scale.seeds,
        "clock": "virtual time",
        "best_of": ", ".join(policy.value for policy in PAPER),
        "real_streams": ", ".join(streams) or "none found",
    }
    return Report("staleness", parameters, rows, claims(found), out_of_reach(found))


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
    """Skewed updates of so few keys that the least staleness can be computed in small slots."""
    shapes = {f"two classes, {n} of {FEW} slow": two_class(FEW, n) for n in (1, 2)}
    shapes |= {f"zipf {theta}": zipf(FEW, theta) for theta in THETAS if theta <= MILD}
    return (Cell(name, shares, load) for name, shares in shapes.items() for load in loads)


def measured(cell: Cell, scale: Scale) -> dict[Policy, Pair]:
    """The staleness of each policy, averaged over streams of several seeds."""
    totals = {policy: np.zeros(2) for policy in POLICIES}
    for seed, stream in enumerate(streams_of(cell, scale)):
        for policy in POLICIES:
            found = simulate(policy, stream, cell.load, measured=WARM_UP * scale.updates, seed=seed).staleness
            totals[policy] += (found.average_queue, found.average_application)
    return {
        policy: (float(total[0]) / scale.seeds, float(total[1]) / scale.seeds)
        for policy, total in totals.items()
    }


def streams_of(cell: Cell, scale: Scale) -> Iterator[Arrivals]:
    """Updates of a cell, for each seed."""
    return (arrivals(cell.shares, scale.updates, seed=seed) for seed in range(scale.seeds))


def find(cell: Cell, by_policy: Mapping[Policy, Pair], scale: Scale) -> Found:
    """What our policy comes to in a cell and, where that is asked, what it leaves to gain."""
    found = Found(cell, ratios(by_policy))
    if len(cell.shares) == FEW:
        ours, least = by_policy[Policy.FRESHEST], least_of(cell.shares, cell.load, slots=scale.slots)
        room = room_of(cell.shares, cell.load, slots=scale.slots)
        return replace(found, room=room, above=(ours[0] / least[0], ours[1] / least[1]))
    if not cell.counts(MILD):
        return found
    known = hindsight(cell.shares, cell.load, streams_of(cell, scale), WARM_UP * scale.updates)
    found = replace(found, hindsight=known / best_of(by_policy)[1])
    if len(cell.shares) == SOLVED and len(np.unique(cell.shares)) == 2 and cell.load in scale.solved:
        return replace(found, room=room_of(cell.shares, cell.load, slots=1, prices=PRICES[LIKELY]))
    return found


def left(found: Found) -> Row:
    """The columns that say what is left to gain, where it was looked at."""
    named = {"hindsight": found.hindsight, "room": found.room, "above_least": found.above and found.above[1]}
    return {name: round(value, 5) for name, value in named.items() if value is not None}


def replayed(stream: Arrivals, load: float) -> dict[Policy, Pair]:
    """The staleness of each policy on a real stream, before a consumer that can take 1 / load of it."""
    cost = load * stream.span / len(stream.ids)
    found = {policy: simulate(policy, stream, cost).staleness for policy in POLICIES}
    return {policy: (one.average_queue, one.average_application) for policy, one in found.items()}


def best_of(by_policy: Mapping[Policy, Pair]) -> Pair:
    """The least staleness, queue and application, of the paper's policies."""
    queue, application = (min(by_policy[policy][kind] for policy in PAPER) for kind in (0, 1))
    return queue, application


def ratios(by_policy: Mapping[Policy, Pair]) -> Pair:
    """Our policy's staleness, queue and application, relative to the best of the paper's policies."""
    ours, best = by_policy[Policy.FRESHEST], best_of(by_policy)
    return _ratio(ours[0], best[0]), _ratio(ours[1], best[1])


def _ratio(ours: float, best: float) -> float:
    return ours / best if best > 0.0 else 1.0 if ours == 0.0 else np.inf


def row(name: str, keys: int, load: float, by_policy: Mapping[Policy, Pair]) -> Row:
    """Application staleness of each policy, and both ratios."""
    queue, application = ratios(by_policy)
    cells_of: dict[str, Scalar] = {"updates": name, "keys": keys, "load": load}
    cells_of |= {policy.value: float(f"{pair[1]:.5g}") for policy, pair in by_policy.items()}
    return cells_of | {"ratio": round(application, 4), "queue_ratio": round(queue, 4)}


def claims(found: list[Found]) -> list[Claim]:
    """Never worse than the best of the paper's policies, better where updates are skewed, and little left."""
    grid, small = ([one for one in found if (one.above is None) == kind] for kind in (True, False))
    made = []
    for kind, name in enumerate(NAMES):
        every = [one.ratio[kind] for one in grid]
        made += [
            Claim(f"{name} staleness / best of the paper's, worst cell", max(every), WORST, at_most=True),
            mean_claim(grid, kind, THETAS[-1]),
            mean_claim(grid, kind, MILD),
        ]
    for kind, name in enumerate(NAMES):
        mean = float(np.mean([one.above[kind] for one in small if one.above]))
        what = f"{name} staleness / least of any policy, mean of cells of {FEW} keys"
        made.append(Claim(what, mean, LEAST, at_most=True))
    what = (
        "application staleness of our rule at its best price / least of any policy, worst cell that is solved"
    )
    return [*made, Claim(what, max(rooms(found)), ROOM, at_most=True)]


def mean_claim(found: list[Found], kind: int, steepest: float) -> Claim:
    """The mean ratio of the skewed cells at moderate loads, up to a steepness of Zipf's distribution."""
    skewed = [one.ratio[kind] for one in found if one.cell.counts(steepest)]
    what = f"{NAMES[kind]} staleness / best of the paper's, mean of skewed cells, load up to {MODERATE:g}"
    return Claim(f"{what}, Zipf up to {steepest:g}", float(np.mean(skewed)), MEAN, at_most=True)


def rooms(found: list[Found]) -> list[float]:
    """How far our rule is above the least of any policy, in the cells that are solved."""
    return [one.room for one in found if one.room is not None]


def out_of_reach(found: list[Found]) -> list[str]:
    """What to say of application staleness in the milder cells if it misses a bar that none seems to reach.

    So it seems if our rule with true rates and the best price of each cell misses it too, by more than any
    policy was found to gain on that rule. That is no proof, as most cells cannot be solved.
    """
    missed = mean_claim([one for one in found if one.above is None], 1, MILD)
    known = [one.hindsight for one in found if one.hindsight is not None]
    least = float(np.mean(known)) / max(rooms(found))
    if missed.holds or least <= MEAN:
        return []
    told = f"{missed.name}: {missed.value:.4f}, aim {MEAN:g}; with true rates and the best price of each cell"
    return [f"{told} {np.mean(known):.4f}, less what any policy gains on that in a solved cell {least:.4f}"]
