"""An overloaded consumer behind a queue, in virtual time: which staleness does each policy give?

The unit of time is that of the spec: one update of the stream comes per unit on average, so that staleness is
measured "in number of updates", as the paper does, and a service takes as many units as the load factor says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, get_args

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.kernels import update_queue as steps
from windowpane.core.kernels.habits import new_habits
from windowpane.core.kernels.overload import next_of_key, overload, overload_append
from windowpane.core.kernels.overload_switch import overload_switch
from windowpane.core.upstream.append import HEADROOM
from windowpane.core.upstream.queue import CODES, new_queue
from windowpane.core.upstream.staleness import Staleness, staleness_of
from windowpane.values.errors import BadQuery
from windowpane.values.freshness import SWITCH, Policy, policy_of

Pattern = Literal["random", "even", "regular", "together", "mixed", "bursts", "batches"]
_PATTERNS = get_args(Pattern)
BURST = 8.0
"""Updates in a burst, on average."""
BATCH = 100
"""Updates that come at one time, where all come in batches."""
_CLOCKED = 0.3
"""Of mixed updates, the part of the keys that have a clock."""
VERY_FRONT = "linecutting, very front"
"""LINECUTTING where a key cuts in before all who did so earlier: a reading of the paper, to compare with."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Updates in arrival order: when each comes and which key it updates, of `keys` numbered from 0."""

    times: Floats
    ids: Ints
    keys: int

    def __post_init__(self) -> None:
        _need_number("keys", self.keys)
        times, ids = np.asarray(self.times), np.asarray(self.ids)
        if times.ndim != 1 or times.dtype.kind not in "iuf" or not np.all(np.diff(times, prepend=0) >= 0):
            raise BadQuery("Arrivals: give times as numbers from 0 on, in arrival order.")
        if len(times) and not times[-1] < np.inf:
            raise BadQuery("Arrivals: the last time is infinite. Leave out updates that never come.")
        if ids.shape != times.shape or (len(ids) and ids.dtype.kind not in "iu"):
            raise BadQuery(f"Arrivals: give a whole number as the key of each of the {len(times)} updates.")
        odd = ids[(ids < 0) | (ids >= self.keys)]
        if len(odd):
            raise BadQuery(f"Arrivals: key {odd[0]} is none of {self.keys}. Number them from 0 on.")
        object.__setattr__(self, "times", times.astype(np.float64, copy=False))
        object.__setattr__(self, "ids", ids.astype(np.int64, copy=False))

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
    waited: Floats
    """How long each key waited for its services in all."""
    most_waiting: int
    looked: int
    covered: Bools
    """Whether the last update of each key was served."""


def arrivals(
    shares: Sequence[float] | Floats, updates: int, *, seed: int = 0, pattern: Pattern = "random"
) -> Arrivals:
    """About one update per unit of time, `updates` in all, shared out to keys by `shares`.

    Patterns: `random` (a Poisson process), `even` (exactly one per unit, of a random key), `regular` (each
    key at a fixed interval of its own), `together` (the same, all keys in step), `mixed` (three keys in ten,
    by lot, are regular, the others random), `bursts` (about eight updates of a key close together, then a
    long silence), `batches` (as random, but a hundred updates wait for each other and come at one time).
    """
    share = _shares_of(shares)
    _need_number("updates", updates, least=0)
    if pattern not in _PATTERNS:
        raise BadQuery(f"pattern={pattern!r}: there is no such pattern. Use {', '.join(_PATTERNS)}.")
    if pattern == "mixed":
        return _mixed(shares, updates, seed)
    rng = np.random.default_rng([seed, *b"overload"])
    if pattern in {"random", "even", "batches"}:
        ids = np.minimum(np.searchsorted(np.cumsum(share), rng.random(updates), side="right"), len(share) - 1)
        gaps = np.ones(updates) if pattern == "even" else rng.exponential(1.0, updates)
        times = np.cumsum(gaps)
        if pattern == "batches":
            times = times[np.minimum(np.arange(updates) // BATCH * BATCH + BATCH - 1, updates - 1)]
        return Arrivals(times, ids.astype(np.int64), len(share))
    if pattern == "bursts":
        counts = rng.poisson(updates * share / BURST)
        starts = rng.random(counts.sum()) * updates
        sizes = rng.geometric(1.0 / BURST, len(starts))
        ids = np.repeat(np.repeat(np.arange(len(share)), counts), sizes)
        times = np.repeat(starts, sizes) + rng.random(len(ids)) * (BURST / 2.0)
    else:
        counts = np.floor(updates * share).astype(np.int64)
        ids = np.repeat(np.arange(len(share)), counts)
        turn = np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts, counts)
        phase = rng.random(len(share)) if pattern == "regular" else np.ones(len(share))
        times = (turn + phase[ids]) / share[ids]
    order = np.argsort(times, kind="stable")
    return Arrivals(times[order], ids[order], len(share))


def _mixed(shares: Sequence[float] | Floats, updates: int, seed: int) -> Arrivals:
    keys = len(shares)
    clocked = np.random.default_rng([seed, *b"mixed"]).permutation(keys) < _CLOCKED * keys
    regular = arrivals(shares, updates, seed=seed, pattern="regular")
    random = arrivals(shares, updates, seed=seed)
    some, others = clocked[regular.ids], ~clocked[random.ids]
    times = np.concatenate([regular.times[some], random.times[others]])
    ids = np.concatenate([regular.ids[some], random.ids[others]])
    order = np.argsort(times, kind="stable")
    return Arrivals(times[order], ids[order], keys)


def phases(shares: Floats, parts: Sequence[tuple[float, float]], *, seed: int = 0) -> Arrivals:
    """Random updates at a rate that changes: each part is its length and its updates per unit of time."""
    streams, begin = [], 0.0
    for number, (length, rate) in enumerate(parts):
        part = arrivals(shares, int(length * rate * 1.2) + 100, seed=seed * 1_000 + number)
        inside = part.times <= length * rate
        streams.append((begin + part.times[inside] / rate, part.ids[inside]))
        begin += length
    times, ids = (np.concatenate(column) for column in zip(*streams, strict=True))
    return Arrivals(times, ids, len(shares))


def uniform(keys: int) -> Floats:
    """Every key updates equally often."""
    _need_number("keys", keys)
    return np.full(keys, 1.0 / keys)


def two_class(keys: int, slow: int, *, times: float = 10.0) -> Floats:
    """The first `slow` keys update `times` times less often than the others."""
    _need_number("keys", keys)
    shares: Floats = np.where(np.arange(keys) < slow, 1.0, times)
    return np.asarray(shares / shares.sum())


def zipf(keys: int, theta: float) -> Floats:
    """Key k updates in proportion to 1 / (k + 1) ** theta."""
    _need_number("keys", keys)
    if not isinstance(theta, Real):
        raise BadQuery(f"theta={theta!r} is no number. Give 0 for keys that are alike, or 0.9, say.")
    shares = 1.0 / np.arange(1, keys + 1) ** float(theta)
    return np.asarray(shares / shares.sum())


def simulate(
    policy: Policy | str,
    stream: Arrivals,
    cost: float | Floats,
    *,
    measured: float = 0.0,
    until: float | None = None,
    seed: int = 0,
    behind: float = 100.0,
) -> Outcome:
    """Serve the updates with one consumer that needs `cost` for a tuple (by key id, or the same for all).

    Staleness is averaged from `measured` to `until` (by default the last arrival) over all keys. A queue with
    the policy `switch` is `behind` once the work that waits takes longer than that.
    """
    begin, end = span_of(stream, measured, until)
    costs = _costs_of(cost, stream.keys)
    queue, most = _queue_of(stream, costs, begin), np.zeros(1, np.int64)
    following = next_of_key(stream.ids, stream.keys)
    line = (stream.times, stream.ids, following)
    if policy == SWITCH:
        overload_switch(queue, *line, costs, float(behind), new_habits(), end, most)
    elif policy != VERY_FRONT and policy_of(policy).keeps_all:
        shed = _chances(policy, len(stream.ids), seed)
        overload_append(queue.keys, queue.totals, *line, *shed, costs, end, most)
    else:
        code = steps.VERY_FRONT if policy == VERY_FRONT else CODES[policy_of(policy)]
        overload(queue, code, stream.times, stream.ids, costs, end, most)
    return _outcome(queue, stream.keys, end, most)


def simulate_due(stream: Arrivals, cost: float, due: Floats, *, measured: float = 0.0) -> Outcome:
    """As `simulate`, but each key is due after a wait that is given, and the most overdue one is served."""
    costs = np.full(stream.keys, float(cost))
    queue, most = _queue_of(stream, costs, measured), np.zeros(1, np.int64)
    queue.ranks.constant[: stream.keys] = -due
    queue.ranks.linear[: stream.keys] = 1.0
    overload(queue, steps.DUE, stream.times, stream.ids, costs, stream.span, most)
    return _outcome(queue, stream.keys, stream.span, most)


def _need_number(name: str, found: object, *, least: int = 1) -> None:
    """Refuse what is no count."""
    if not isinstance(found, Integral) or found < least:
        raise BadQuery(f"{name}={found!r}: give a whole number from {least} on.")


def span_of(stream: Arrivals, measured: float, until: float | None) -> tuple[float, float]:
    """From when to when staleness is averaged. The loops end at that time, so that it has to come."""
    end = stream.span if until is None else until
    for name, found in (("measured", measured), ("until", end)):
        if not isinstance(found, Real) or not -np.inf < float(found) < np.inf:
            raise BadQuery(f"{name}={found!r}: give a finite time, in the unit of the stream's times.")
    return float(measured), float(end)


def _shares_of(shares: Sequence[float] | Floats) -> Floats:
    """The part of the updates that each key has."""
    found = np.asarray(shares)
    numbers = found.ndim == 1 and len(found) and found.dtype.kind in "iuf"
    if not numbers or not np.all((found >= 0.0) & (found < np.inf)) or not found.any():
        raise BadQuery(
            f"the shares of keys are {shares!r}. Give a number for each, none below 0 and one above it, as "
            "uniform(10) and zipf(10, 0.9) do."
        )
    return np.asarray(found / found.sum(), np.float64)


def _costs_of(cost: float | Floats, keys: int) -> Floats:
    """What a tuple of each key costs; by a cost below 0 time would go back."""
    found = np.asarray(cost)
    numbers = found.dtype.kind in "iuf" and found.shape in {(), (keys,)}
    if not numbers or not np.all((found >= 0.0) & (found < np.inf)):
        raise BadQuery(f"cost={cost!r}: give a time of at least 0, or one for each of the {keys} keys.")
    return np.broadcast_to(found.astype(np.float64), keys).copy()


def _queue_of(stream: Arrivals, costs: Floats, measured: float) -> steps.Queue:
    queue = new_queue(stream.keys, float(costs.mean()), 0.0)
    queue.keys.cost[:] = costs
    queue.totals[steps.MEASURED] = measured
    return queue


def _chances(policy: Policy | str, tuples: int, seed: int) -> tuple[Floats, float]:
    """For each tuple a random number, and the load that shedding leaves: all of it where nothing is shed."""
    if policy != Policy.SHED:
        return np.zeros(tuples), np.inf
    return np.random.default_rng([seed, *b"shed"]).random(tuples), HEADROOM


def _outcome(queue: steps.Queue, keys: int, end: float, most: Ints) -> Outcome:
    return Outcome(
        staleness=staleness_of(queue.keys, queue.totals, keys, end),
        updates=queue.keys.updates,
        serves=queue.keys.serves,
        waited=queue.keys.waited,
        most_waiting=int(most[0]),
        looked=int(queue.tree.looked[0]),
        covered=queue.keys.first == np.inf,
    )
