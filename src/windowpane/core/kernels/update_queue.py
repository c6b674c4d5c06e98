"""The update queue for loops: one update arrives, the next key is served, its result is delivered.

Keys are dense ids. Times are floats in any unit; they never go back. The queue and the simulator share these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.habits import FORGET, notice
from windowpane.core.kernels.kinetic import Ranks, Tournament, best, learn_price, place, remove
from windowpane.core.kernels.staleness import area

FIFO, IN_PLACE, LINECUTTING, FRESHEST = 0, 1, 2, 3
VERY_FRONT = 4
"""LINECUTTING where a key that cuts in goes before all who did so earlier: to compare with, no policy."""
DUE = 5
"""The longest wait first, from when each key is due, which is in its rank beforehand: to compare with."""
# The numbers that belong to the queue as a whole, in one array.
ORDER, WAITING, COST, BEGAN, MEASURED, NOW = 0, 1, 2, 3, 4, 5
# How much work comes for each unit of time, when the last of it came, and how long such pauses are.
LOAD, CAME, PAUSE = 6, 7, 8
# Keys that were forgotten: how many, and their staleness of both kinds, integrated over time.
FORGOTTEN, QUEUE_AREA, APPLICATION_AREA = 9, 10, 11
TOTALS = 12
LEARN = 0.1
"""How much a new cost counts against what was known."""
AS_LEARNED: Floats = np.empty(0)
"""In place of costs by key: what was learned of each counts. An array, so that loops compile but once."""
_INF = np.inf
_FRONT = 2.0**52
_TINY = 1e-12


KEYS = np.dtype(
    [
        ("row", np.int64),  # which tuple is the newest: a number that means something to the caller
        ("arrived", np.float64),  # when the newest update came
        ("first", np.float64),  # since when the key waits: its first update after it was last served
        ("served", np.float64),  # when it was last served
        ("pending", np.float64),  # its oldest update that no delivered result covers
        ("delivered", np.float64),  # when a result was last delivered
        ("updates", np.int64),  # how many updates came
        ("serves", np.int64),  # how often it was served
        ("waited", np.float64),  # how long it waited for its services in all
        ("gaps", np.float64),  # the times between its updates, summed up with older ones counting less
        ("weight", np.float64),  # how many updates that sum stands for
        ("cost", np.float64),  # what it costs to process a tuple of the key; 0 where that is not known
        ("queue_area", np.float64),  # queue staleness, integrated over time
        ("application_area", np.float64),  # application staleness, integrated over time
    ]
)
"""What is kept of each key; times are infinite where there is none. One array, as loops pass it around."""
Keys = np.recarray[Any, Any]


class Queue(NamedTuple):
    """All that a queue knows."""

    keys: Keys
    ranks: Ranks
    habits: Floats
    tree: Tournament
    totals: Floats


@kernel
def arrive(queue: Queue, policy: int, key: int, now: float, row: int) -> bool:
    """An update overwrites the older one of its key. True where the key's rank is new or another."""
    keys, totals = queue.keys, queue.totals
    waiting = keys.first[key] < _INF
    _learn_gap(keys, queue.habits, totals, key, now)
    keys.row[key] = row
    keys.arrived[key] = now
    keys.updates[key] += 1
    keys.pending[key] = min(keys.pending[key], now)
    totals[NOW] = now
    if not waiting:
        keys.first[key] = now
        totals[WAITING] += 1.0
    return _enter(queue, policy, key, waiting)


@kernel
def _enter(queue: Queue, policy: int, key: int, waiting: bool) -> bool:
    """Rank a key whose newest tuple came last of all. True where its rank is new or another."""
    keys, ranks, totals = queue.keys, queue.ranks, queue.totals
    totals[ORDER] += 1.0
    ranks.since[key] = keys.first[key]
    if policy == FRESHEST:
        ranks.silent[key] = keys.arrived[key]
        ranks.gap[key] = gap_of(keys, key)
        ranks.seen[key] = keys.weight[key]
        ranks.price[key] = 1.0 / cost_of(keys, totals, key)
        return True
    cuts = policy == LINECUTTING or policy == VERY_FRONT  # noqa: PLR1714 - Numba builds no set here
    if cuts and cost_of(keys, totals, key) * totals[WAITING] < gap_of(keys, key):
        # All who wait could be served between two updates of this key.
        if policy == VERY_FRONT:
            ranks.constant[key] = _FRONT + totals[ORDER]
            return True
        # It goes to the front, behind those who cut in before it.
        if not waiting or ranks.constant[key] < 0.0:
            ranks.constant[key] = _FRONT - totals[ORDER]
            return True
        return False
    if policy == FIFO or not waiting:
        if policy != DUE:
            ranks.constant[key] = -totals[ORDER]
        return True
    return False


@kernel
def enter_all(queue: Queue, policy: int, order: Ints) -> None:
    """Rank keys that wait already, in this order."""
    for i in range(len(order)):
        _enter(queue, policy, order[i], waiting=False)


@kernel
def _learn_gap(keys: Keys, habits: Floats, totals: Floats, key: int, now: float) -> None:
    """Count the time since the key's last update; for its first one, since the queue began.

    Updates that come at one time are of one batch, which says nothing of how often the key updates.
    """
    if keys.updates[key] == 0:
        keys.gaps[key] = now - totals[BEGAN]
        keys.weight[key] = 1.0
        return
    gap = now - keys.arrived[key]
    if gap <= 0.0:
        return
    if keys.weight[key] > 1.0:  # the time since the queue began is no gap to measure others by
        notice(habits, gap / gap_of(keys, key))
    keys.gaps[key] += gap - FORGET * keys.gaps[key]
    keys.weight[key] += 1.0 - FORGET * keys.weight[key]


@kernel
def gap_of(keys: Keys, key: int) -> float:
    """The mean time between updates of a key: 1 / its rate."""
    gap: float = max(keys.gaps[key] / keys.weight[key], _TINY)
    return gap


@kernel
def cost_of(keys: Keys, totals: Floats, key: int) -> float:
    """What a service of the key is expected to take."""
    cost: float = keys.cost[key] if keys.cost[key] > 0.0 else totals[COST]
    return cost


@kernel
def turn_of(keys: Keys, totals: Floats, costs: Floats, key: int, budget: float) -> float:
    """How long the turn of a key takes, by `costs` or AS_LEARNED; without a budget no time passes."""
    if not np.isfinite(budget):
        return 0.0
    cost: float = costs[key] if len(costs) > 0 else cost_of(keys, totals, key)
    return cost


@kernel
def serve(queue: Queue, now: float) -> int:
    """Take the key that the policy ranks first out of the queue, or NOBODY where none waits."""
    keys, totals = queue.keys, queue.totals
    key = best(queue.tree, queue.ranks, queue.habits, now)
    if key >= 0:
        # Where all tuples were kept before, a key may have been served since its first update that waits.
        keys.queue_area[key] += area(keys.first[key], max(keys.served[key], totals[MEASURED]), now)
        keys.waited[key] += now - keys.first[key]
        keys.first[key] = _INF
        keys.served[key] = now
        keys.serves[key] += 1
        totals[WAITING] -= 1.0
        totals[NOW] = now
        remove(queue.tree, queue.ranks, key, now)
        learn_price(queue.tree, queue.ranks, queue.habits, key, now)
    return key


@kernel
def deliver(queue: Queue, key: int, now: float) -> None:
    """The result of the last service of a key reached the application."""
    keys = queue.keys
    counted = max(keys.delivered[key], queue.totals[MEASURED])
    keys.application_area[key] += area(keys.pending[key], counted, now)
    keys.pending[key] = keys.first[key]
    keys.delivered[key] = now


@kernel
def deliver_many(queue: Queue, ids: Ints, times: Floats) -> None:
    """The results of several services reached the application."""
    for i in range(len(ids)):
        deliver(queue, ids[i], times[i])


@kernel
def learn_many(queue: Queue, ids: Ints, costs: Floats, weight: float = LEARN) -> None:
    """What services took: an average that forgets, for each key by `weight` and, batch by batch, for all."""
    keys, totals = queue.keys, queue.totals
    for i in range(len(ids)):
        known = keys.cost[ids[i]]
        keys.cost[ids[i]] = costs[i] if known <= 0.0 else known + weight * (costs[i] - known)
    if len(ids) > 0:
        totals[COST] += LEARN * (costs.mean() - totals[COST])


@kernel
def arrive_many(queue: Queue, policy: int, ids: Ints, times: Floats, rows: Ints) -> None:
    """A batch of updates in arrival order; each key enters the tournament once, however often it updates."""
    touched = np.empty(len(ids), np.int64)
    stamps = queue.tree.stamps
    stamps[-1] += 1
    count = 0
    for i in range(len(ids)):
        key = ids[i]
        if arrive(queue, policy, key, times[i], rows[i]) and stamps[key] != stamps[-1]:
            stamps[key] = stamps[-1]
            touched[count] = key
            count += 1
    for i in range(count):
        place(queue.tree, queue.ranks, queue.habits, touched[i], times[len(times) - 1])


@kernel
def serve_many(queue: Queue, now: float, budget: float, costs: Floats, ids: Ints, times: Floats) -> int:
    """Serve keys one after the other while the cost of each still fits into the budget; how many.

    `costs` is by key, or AS_LEARNED. A key is ranked at the time at which its turn comes, so `times` tells
    when that is.
    """
    spent = 0.0
    count = 0
    while count < len(ids):
        key = best(queue.tree, queue.ranks, queue.habits, now + spent)
        if key < 0:
            break
        cost = turn_of(queue.keys, queue.totals, costs, key, budget)
        if spent + cost > budget:
            break
        ids[count] = serve(queue, now + spent)
        times[count] = now + spent
        spent += cost
        count += 1
    return count
