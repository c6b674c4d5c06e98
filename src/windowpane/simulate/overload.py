"""An overloaded consumer behind a queue, in virtual time: which staleness does each policy give?

The unit of time is that of the spec: one update of the stream comes per unit on average, so that staleness is
measured "in number of updates", as the paper does, and a service takes as many units as the load factor says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.kernels.overload import next_of_key, overload, overload_append, shed
from windowpane.core.kernels.update_queue import MEASURED
from windowpane.core.upstream.queue import CODES, new_queue
from windowpane.core.upstream.staleness import Staleness, staleness_of
from windowpane.values.freshness import Policy, policy_of

HEADROOM = 0.95
"""The load that random shedding leaves: at exactly 1 the queue would still grow."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Updates in arrival order: when each comes and which key it updates, of `keys` in all."""

    times: Floats
    ids: Ints
    keys: int

    @property
    def span(self) -> float:
        """The time from 0 until all updates have come."""
        return float(self.times[-1]) if len(self.times) else 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy made of the updates."""

    staleness: Staleness
    updates: Ints
    serves: Ints
    most_waiting: int
    looked: int
    last_rows: Ints
    """The number of the last update that was served of each key, -1 where none was."""


def arrivals(
    shares: Sequence[float] | Floats, updates: int, *, seed: int = 0, regular: bool = False
) -> Arrivals:
    """One update per unit of time on average, each of a key chosen by `shares`.

    `regular` updates come exactly one per unit, others as a Poisson process.
    """
    rng = np.random.default_rng([seed, *b"overload"])
    share = np.cumsum(np.asarray(shares, np.float64))
    ids = np.searchsorted(share, rng.random(updates) * share[-1], side="right").astype(np.int64)
    gaps = np.ones(updates) if regular else rng.exponential(1.0, updates)
    return Arrivals(np.cumsum(gaps), np.minimum(ids, len(share) - 1), len(share))


def uniform(keys: int) -> Floats:
    """Every key updates equally often."""
    return np.full(keys, 1.0 / keys)


def two_class(keys: int, slow: int, *, times: float = 10.0) -> Floats:
    """The first `slow` keys update `times` times less often than the others."""
    shares: Floats = np.where(np.arange(keys) < slow, 1.0, times)
    return np.asarray(shares / shares.sum())


def zipf(keys: int, theta: float) -> Floats:
    """Key k updates in proportion to 1 / (k + 1) ** theta."""
    shares = 1.0 / np.arange(1, keys + 1) ** theta
    return np.asarray(shares / shares.sum())


def simulate(
    policy: Policy | str,
    stream: Arrivals,
    cost: float | Floats,
    *,
    measured: float = 0.0,
    until: float | None = None,
    seed: int = 0,
) -> Outcome:
    """Serve the updates with one consumer that needs `cost` for a tuple (by key id, or the same for all).

    Staleness is averaged from `measured` to `until` (by default the last arrival) over all keys.
    """
    chosen = policy_of(policy)
    end = stream.span if until is None else float(until)
    costs = np.broadcast_to(np.asarray(cost, np.float64), stream.keys).copy()
    queue = new_queue(stream.keys, float(costs.mean()), 0.0)
    keys, totals = queue.keys, queue.totals
    keys.cost[:], keys.row[:] = costs, -1
    totals[MEASURED] = measured
    most = np.zeros(1, np.int64)
    if chosen.keeps_all:
        kept = np.ones(len(stream.ids), np.bool_)
        if chosen is Policy.SHED:
            chances = np.random.default_rng([seed, *b"shed"]).random(len(stream.ids))
            kept = shed(stream.ids, stream.times, costs, HEADROOM, chances)
        following = next_of_key(stream.ids, stream.keys)
        overload_append(keys, totals, stream.times, stream.ids, following, kept, costs, end, most)
    else:
        overload(queue, CODES[chosen], stream.times, stream.ids, costs, end, most)
    staleness = staleness_of(keys, totals, stream.keys, end)
    return Outcome(staleness, keys.updates, keys.serves, int(most[0]), int(queue.tree.looked[0]), keys.row)
