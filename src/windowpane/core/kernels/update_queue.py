"""The update queue for loops: one update arrives, the next key is served, its result is delivered.

Keys are dense ids. Times are floats in any unit; they never go back. The queue and the simulator share these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.kinetic import Ranks, Tournament, best, place, remove
from windowpane.core.kernels.staleness import area

FIFO, IN_PLACE, LINECUTTING, FRESHEST = 0, 1, 2, 3
# The numbers that belong to the queue as a whole, in one array.
ORDER, WAITING, COST, BEGAN, MEASURED, NOW, TOTALS = 0, 1, 2, 3, 4, 5, 6
LEARN = 0.1
"""How much a new cost counts against what was known."""
_INF = np.inf


class Keys(NamedTuple):
    """One entry for each key; infinity where there is no such time."""

    row: Ints
    """Which tuple is the newest: a number that means something to the caller."""
    arrived: Floats
    """When the newest update came."""
    first: Floats
    """Since when the key waits: its first update after it was last served."""
    served: Floats
    """When it was last served."""
    pending: Floats
    """Its oldest update that no delivered result covers."""
    delivered: Floats
    """When a result was last delivered."""
    updates: Ints
    """How many updates came."""
    serves: Ints
    """How often it was served."""
    idle: Floats
    """All the time from a service to the next update, summed up."""
    idles: Ints
    """How many such times."""
    cost: Floats
    """What it costs to process a tuple of the key; 0 where that is not known."""
    queue_area: Floats
    """Queue staleness, integrated over time."""
    application_area: Floats
    """Application staleness, integrated over time."""


@kernel
def arrive(keys: Keys, ranks: Ranks, totals: Floats, policy: int, key: int, now: float, row: int) -> bool:
    """An update overwrites the older one of its key. True where the key's rank is new or another."""
    waiting = keys.first[key] < _INF
    keys.row[key] = row
    keys.arrived[key] = now
    keys.updates[key] += 1
    if keys.pending[key] == _INF:
        keys.pending[key] = now
    if not waiting:
        keys.first[key] = now
        totals[WAITING] += 1.0
        if keys.served[key] > -_INF:
            keys.idle[key] += now - keys.served[key]
            keys.idles[key] += 1
    totals[ORDER] += 1.0
    totals[NOW] = now
    if policy == FRESHEST:
        if waiting:
            return False
        _rank_by_worth(keys, ranks, totals, key, now)
        return True
    ranks.since[key] = now
    if policy == FIFO:
        ranks.constant[key] = -totals[ORDER]
        return True
    if policy == LINECUTTING and _is_slow(keys, totals, key, now):
        ranks.constant[key] = totals[ORDER]
        return True
    if waiting:
        return False
    ranks.constant[key] = -totals[ORDER]
    return True


@kernel
def _is_slow(keys: Keys, totals: Floats, key: int, now: float) -> bool:
    """Whether all who wait could be served between two updates of the key: rate < 1 / (cost * residents)."""
    slow: bool = keys.updates[key] * cost_of(keys, totals, key) * totals[WAITING] < now - totals[BEGAN]
    return slow


@kernel
def cost_of(keys: Keys, totals: Floats, key: int) -> float:
    """What a service of the key is expected to take."""
    cost: float = keys.cost[key] if keys.cost[key] > 0.0 else totals[COST]
    return cost


@kernel
def gap_of(keys: Keys, totals: Floats, key: int, now: float) -> float:
    """How long after its next service the key is expected to update again."""
    between = (now - totals[BEGAN]) / max(keys.updates[key], 1)
    gap: float = (keys.idle[key] + between) / (keys.idles[key] + 1)
    return gap


@kernel
def _rank_by_worth(keys: Keys, ranks: Ranks, totals: Floats, key: int, now: float) -> None:
    """What a service saves for each unit of time that it takes."""
    gap, cost = gap_of(keys, totals, key, now), cost_of(keys, totals, key)
    fresh = gap * gap * -np.expm1(-cost / gap) if gap > 0.0 else 0.0
    ranks.since[key] = keys.first[key] - totals[COST] / 2.0
    ranks.square[key] = 0.5 / cost
    ranks.linear[key] = gap / cost
    ranks.constant[key] = fresh / cost


@kernel
def serve(keys: Keys, ranks: Ranks, tree: Tournament, totals: Floats, now: float) -> int:
    """Take the key that the policy ranks first out of the queue, or NOBODY where none waits."""
    key = best(tree, ranks, now)
    if key >= 0:
        keys.queue_area[key] += area(keys.first[key], totals[MEASURED], now)
        keys.first[key] = _INF
        keys.served[key] = now
        keys.serves[key] += 1
        totals[WAITING] -= 1.0
        totals[NOW] = now
        remove(tree, ranks, key, now)
    return key


@kernel
def deliver(keys: Keys, totals: Floats, key: int, now: float) -> None:
    """The result of the last service of a key reached the application."""
    since = max(keys.delivered[key], totals[MEASURED])
    keys.application_area[key] += area(keys.pending[key], since, now)
    keys.pending[key] = keys.first[key]
    keys.delivered[key] = now


@kernel
def deliver_many(keys: Keys, totals: Floats, ids: Ints, times: Floats) -> None:
    """The results of several services reached the application."""
    for i in range(len(ids)):
        deliver(keys, totals, ids[i], times[i])


@kernel
def learn_many(keys: Keys, totals: Floats, ids: Ints, costs: Floats) -> None:
    """What services took: an average that forgets, for each key and for all."""
    for i in range(len(ids)):
        known = keys.cost[ids[i]]
        keys.cost[ids[i]] = costs[i] if known <= 0.0 else known + LEARN * (costs[i] - known)
        totals[COST] += LEARN * (costs[i] - totals[COST])


@kernel
def arrive_many(
    keys: Keys,
    ranks: Ranks,
    tree: Tournament,
    totals: Floats,
    policy: int,
    ids: Ints,
    times: Floats,
    rows: Ints,
) -> None:
    """A batch of updates in arrival order; each key enters the tournament once, however often it updates."""
    touched = np.empty(len(ids), np.int64)
    changed = np.zeros(len(keys.row), np.bool_)
    count = 0
    for i in range(len(ids)):
        key = ids[i]
        if arrive(keys, ranks, totals, policy, key, times[i], rows[i]) and not changed[key]:
            changed[key] = True
            touched[count] = key
            count += 1
    for i in range(count):
        place(tree, ranks, touched[i], times[len(times) - 1])


@kernel
def serve_many(
    keys: Keys,
    ranks: Ranks,
    tree: Tournament,
    totals: Floats,
    now: float,
    budget: float,
    costs: Floats,
    ids: Ints,
    times: Floats,
) -> int:
    """Serve keys one after the other while the cost of each still fits into the budget; how many.

    `costs` is by key. A key is ranked at the time at which its turn comes, so `times` tells when that is.
    """
    spent = 0.0
    count = 0
    while count < len(ids):
        key = best(tree, ranks, now + spent)
        if key < 0 or spent + costs[key] > budget:
            break
        ids[count] = serve(keys, ranks, tree, totals, now + spent)
        times[count] = now + spent
        spent += costs[key]
        count += 1
    return count
