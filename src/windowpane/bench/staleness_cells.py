"""Points of the grids of `bench staleness` and `bench staleness-least`, and what is measured there.

All in virtual time, so the figures do not depend on the machine. The unit is the mean time between two
updates; the load is the work that arrives for each unit of the consumer's time: a load of 2 is twice what it
can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from windowpane.bench.report import Row, Scalar
from windowpane.core.arrays import Floats
from windowpane.simulate.overload import Arrivals, Pattern, arrivals, simulate, two_class, uniform, zipf
from windowpane.values.freshness import Policy

PAPER = (Policy.APPEND, Policy.SHED, Policy.FIFO, Policy.IN_PLACE, Policy.LINECUTTING)
POLICIES = (*PAPER, Policy.FRESHEST)
LOADS = (1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
KEYS = (10, 100)
THETAS = (0.3, 0.6, 0.9, 1.2, 1.5)
SLOW = (0.2, 0.5, 0.8)
MODERATE, MILD, MEAN = 5.0, 0.9, 0.92
"""A load up to which a cell counts in means, a steepness of Zipf's distribution, and the bar of the means."""
NAMES = ("queue", "application")
_WARM_UP = 1 / 6
"""The part of a stream before staleness is measured."""

Pair = tuple[float, float]
"""Queue and application staleness."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done: so many streams of so many updates."""

    updates: int
    seeds: int

    @property
    def measured(self) -> float:
        """From when on staleness is measured."""
        return _WARM_UP * self.updates


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a grid: how updates are shared out to keys, and come, and the load; `theta` is Zipf's.

    Every second key costs `dear` times what the others do.
    """

    name: str
    shares: Floats
    load: float
    theta: float = 0.0
    pattern: Pattern = "random"
    dear: float = 1.0

    @property
    def costs(self) -> Floats:
        """What an update of each key costs, so that the work that arrives is that of the load."""
        relative = np.where(np.arange(len(self.shares)) % 2 == 0, 1.0, self.dear)
        return np.asarray(relative * (self.load / np.dot(relative, self.shares)))

    @property
    def skewed(self) -> bool:
        """Whether some keys update more often than others."""
        return bool(self.shares.max() > self.shares.min())

    def counts(self, steepest: float) -> bool:
        """Whether it counts in the mean: rates that differ, at most so steeply, and a moderate load."""
        return self.skewed and self.load <= MODERATE and self.theta <= steepest


def cells(loads: Sequence[float], keys: Sequence[int] = KEYS) -> Iterator[Cell]:
    """Uniform, two-class and Zipf updates, for few and many keys, at every load."""
    for n in keys:
        shapes = {"uniform": (uniform(n), 0.0)}
        for part in SLOW:
            shapes[f"two classes, {part:.0%} slow"] = two_class(n, round(part * n)), 0.0
        shapes |= {f"zipf {theta}": (zipf(n, theta), theta) for theta in THETAS}
        for name, (shares, theta) in shapes.items():
            for load in loads:
                yield Cell(name, shares, load, theta)


def streams_of(cell: Cell, scale: Scale) -> Iterator[Arrivals]:
    """Updates of a cell, for each seed."""
    return (
        arrivals(cell.shares, scale.updates, seed=seed, pattern=cell.pattern) for seed in range(scale.seeds)
    )


def measured(cell: Cell, scale: Scale) -> dict[Policy, Pair]:
    """The staleness of each policy, averaged over streams of several seeds."""
    totals = {policy: np.zeros(2) for policy in POLICIES}
    for seed, stream in enumerate(streams_of(cell, scale)):
        for policy in POLICIES:
            found = simulate(policy, stream, cell.costs, measured=scale.measured, seed=seed).staleness
            totals[policy] += (found.average_queue, found.average_application)
    return {
        policy: (float(total[0]) / scale.seeds, float(total[1]) / scale.seeds)
        for policy, total in totals.items()
    }


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
