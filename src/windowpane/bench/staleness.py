"""Average staleness of every policy behind an overloaded consumer: synthetic streams, then real ones.

Most synthetic updates come at random; some by clocks, in bursts or in batches, or half of the keys cost more
than the others. Real streams are replayed where their files are found, with a second as the unit of time. How
much less staleness any policy could have is told by `bench staleness-least`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from windowpane.bench.real_streams import FOLDER, replays
from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Progress
from windowpane.bench.staleness_cells import (
    KEYS,
    LOADS,
    MEAN,
    MILD,
    MODERATE,
    NAMES,
    PAPER,
    POLICIES,
    THETAS,
    Cell,
    Pair,
    Scale,
    cells,
    measured,
    ratios,
    row,
)
from windowpane.core.arrays import Floats
from windowpane.simulate.overload import Arrivals, Pattern, simulate, two_class, uniform, zipf
from windowpane.values.freshness import Policy

QUICK_LOADS = (1.5, 2.0, 5.0, 20.0)
REPLAY_LOADS = (2.0, 5.0, 20.0)
QUICK_REPLAY = 200_000
"""Fewer updates of a real stream are over before a consumer at a load of 20 has served each key often."""
NOT_AT_RANDOM: tuple[Pattern, ...] = ("regular", "together", "mixed", "bursts", "batches")
PATTERN_KEYS = 100
DEAR = 10.0
"""Where keys differ in what they cost: how many times."""
WORST = 1.01
CLOCK_WORST, CLOCK_MEAN, DEAR_WORST, DEAR_MEAN = 1.05, 0.8, 1.05, 0.85
BURST_WORST, BATCH_WORST, PAPER_MEAN = 1.05, 1.03, 1.0
"""Updates in bursts or in batches: on average no more than the best of the paper's policies."""
REAL_WORST, REAL_MEAN = 1.02, 1.0
"""Real streams: where most keys update once no order helps, and to learn rates costs a little."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of a cell: our policy's staleness relative to the best of the paper's."""

    cell: Cell
    ratio: Pair


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Measure every policy in every cell and on every real stream that is here."""
    scale, fewer = (Scale(20_000, 2), Scale(20_000, 1)) if quick else (Scale(60_000, 12), Scale(60_000, 3))
    loads = QUICK_LOADS if quick else LOADS
    more = (*not_at_random(loads), *unlike_costs(loads))
    todo = [(cell, scale) for cell in cells(loads)] + [(cell, fewer) for cell in more]
    streams = replays(QUICK_REPLAY if quick else None)
    points = len(todo) + len(streams) * len(REPLAY_LOADS)
    rows: list[Row] = []
    found: list[Found] = []
    real: list[Pair] = []
    for cell, size in todo:
        progress(len(rows), points, f"{cell.name}, {len(cell.shares)} keys, load {cell.load:g}")
        by_policy = measured(cell, size)
        found.append(Found(cell, ratios(by_policy)))
        rows.append(row(cell.name, len(cell.shares), cell.load, by_policy))
    for name, stream in streams.items():
        for load in REPLAY_LOADS:
            progress(len(rows), points, f"{name}, load {load:g}")
            by_policy = replayed(stream, load)
            real.append(ratios(by_policy))
            rows.append(row(name, stream.keys, load, by_policy))
    parameters: dict[str, Scalar] = {
        "updates": scale.updates,
        "seeds": scale.seeds,
        "clock": "virtual time",
        "policies": "application staleness: in updates, of real streams in seconds",
        "ratio": "freshest over the best of the paper's policies; queue_ratio: that of queue staleness",
        "best_of": ", ".join(policy.value for policy in PAPER),
        "real_streams": ", ".join(streams) or f"none found; {FOLDER} names their folder",
    }
    return Report("staleness", parameters, rows, [*claims(found), *claims_of_real(real)], missed(found))


def not_at_random(loads: tuple[float, ...]) -> Iterator[Cell]:
    """Updates that come by clocks (of each key, one for all keys, of some keys), in bursts or in batches."""
    for pattern in NOT_AT_RANDOM:
        for name, shares, theta in shapes(PATTERN_KEYS):
            for load in loads:
                yield Cell(f"{pattern}, {name}", shares, load, theta, pattern)


def unlike_costs(loads: tuple[float, ...]) -> Iterator[Cell]:
    """Updates at random of which every second key costs more, as is known to the queue."""
    for keys in KEYS:
        for name, shares, theta in shapes(keys):
            for load in loads:
                yield Cell(f"costs of 1 and {DEAR:g}, {name}", shares, load, theta, dear=DEAR)


def shapes(keys: int) -> Iterator[tuple[str, Floats, float]]:
    """How updates are shared out in cells of other kinds than the grid's: name, shares, Zipf's theta."""
    yield "uniform", uniform(keys), 0.0
    yield "two classes, 50% slow", two_class(keys, keys // 2), 0.0
    yield "zipf 0.9", zipf(keys, 0.9), 0.9


def replayed(stream: Arrivals, load: float) -> dict[Policy, Pair]:
    """The staleness of each policy on a real stream, before a consumer that can take 1 / load of it."""
    cost = load * stream.span / len(stream.ids)
    found = {policy: simulate(policy, stream, cost).staleness for policy in POLICIES}
    return {policy: (one.average_queue, one.average_application) for policy, one in found.items()}


def claims(found: list[Found]) -> list[Claim]:
    """Never worse than the best of the paper's policies, better where updates are skewed or come by a clock.

    Means are of queue staleness, by which the paper compares policies (footnote 6), over two grids; on the
    wider one application staleness is held to the same bar, on the milder one it is told (`missed`).
    """
    grid = _grid(found)
    made = []
    for kind, name in enumerate(NAMES):
        worst = max(one.ratio[kind] for one in grid)
        made.append(Claim(f"{name} staleness / best of the paper's, worst cell", worst, WORST, at_most=True))
    made += [
        mean_claim(grid, kind, steepest) for kind, steepest in ((0, THETAS[-1]), (0, MILD), (1, THETAS[-1]))
    ]
    clock, bursts, batches = (
        [one.ratio[1] for one in _of(found, pattern)] for pattern in ("regular", "bursts", "batches")
    )
    costs = [one.ratio[1] for one in found if one.cell.dear != 1.0]
    return [
        *made,
        *_worst_and_mean("each key by its own clock", clock, CLOCK_WORST, CLOCK_MEAN),
        *_worst_and_mean("updates in bursts", bursts, BURST_WORST, PAPER_MEAN),
        *_worst_and_mean("updates in batches", batches, BATCH_WORST, PAPER_MEAN),
        *_worst_and_mean("keys of two costs", costs, DEAR_WORST, DEAR_MEAN),
    ]


def claims_of_real(ratios: list[Pair]) -> list[Claim]:
    """On real streams, where there are any, our policy is as good as the best of the paper's, or better."""
    found = [ratio[1] for ratio in ratios]
    return _worst_and_mean("real streams", found, REAL_WORST, REAL_MEAN) if found else []


def _worst_and_mean(name: str, found: list[float], worst: float, mean: float) -> list[Claim]:
    what = f"application staleness / best of the paper's, {name}"
    return [
        Claim(f"{what}, worst", max(found), worst, at_most=True),
        Claim(f"{what}, mean", float(np.mean(found)), mean, at_most=True),
    ]


def mean_claim(found: list[Found], kind: int, steepest: float) -> Claim:
    """The mean ratio of the skewed cells at moderate loads, up to a steepness of Zipf's distribution."""
    skewed = [one.ratio[kind] for one in found if one.cell.counts(steepest)]
    what = f"{NAMES[kind]} staleness / best of the paper's, mean of skewed cells, load up to {MODERATE:g}"
    return Claim(f"{what}, Zipf up to {steepest:g}", float(np.mean(skewed)), MEAN, at_most=True)


def missed(found: list[Found]) -> list[str]:
    """What is missed, with what is known of it, and what was aimed at and is not claimed."""
    told = []
    mild = mean_claim(_grid(found), 1, MILD)
    if not mild.holds:
        told.append(
            f"{mild.name}: {mild.value:.4f}, aim {MEAN:g}, "
            "which seems out of reach of any policy: see bench staleness-least"
        )
    for pattern in ("together", "mixed", "bursts"):
        worst = max(_of(found, pattern), key=lambda one: one.ratio[1])
        if worst.ratio[1] > WORST:
            where = f"{worst.cell.name}, load {worst.cell.load:g}"
            told.append(f"updates not at random, worst cell: {worst.ratio[1]:.2f} at {where}")
    return told


def _grid(found: list[Found]) -> list[Found]:
    """Updates at random, of keys that cost the same."""
    return [one for one in _of(found, "random") if one.cell.dear == 1.0]


def _of(found: list[Found], pattern: Pattern) -> list[Found]:
    return [one for one in found if one.cell.pattern == pattern]
