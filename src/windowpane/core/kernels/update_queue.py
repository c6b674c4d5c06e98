"""The update queue for loops: one update arrives, the next key is served, its result is delivered.

Keys are dense ids. Times are floats in any unit; they never go back. The queue and the simulator share these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.common_gap import gap_of, learn_common
from windowpane.core.kernels.habits import ALL, BATCHED, FORGET, notice
from windowpane.core.kernels.key_ranks import Rank, Ranks
from windowpane.core.kernels.kinetic import Tournament, best, learn_price, place, remove
from windowpane.core.kernels.staleness import area

FIFO, IN_PLACE, LINECUTTING, FRESHEST = 0, 1, 2, 3
VERY_FRONT = 4
"""LINECUTTING where a key that cuts in goes before all who did so earlier: to compare with, no policy."""
DUE = 5
"""The longest wait first, from when each key is due, which is in its rank beforehand: to compare with."""
# The numbers that belong to the queue as a whole, in one array.
ORDER, WAITING, COST, BEGAN, MEASURED, NOW = 0, 1, 2, 3, 4, 5
# How much work comes for each unit of time, when the last of it came, and how long such pauses are (in a
# queue of the newest tuples: how long the last one was).
LOAD, CAME, PAUSE = 6, 7, 8
# Keys that were forgotten: how many, and their staleness of both kinds, integrated over time.
FORGOTTEN, QUEUE_AREA, APPLICATION_AREA = 9, 10, 11
TOTALS = 12
LEARN = 0.1
"""How much a new cost counts against what was known."""
LEAST = 0.01
"""Keys that cost less than this part of the mean are ranked as if they cost so much: where the clock did not
move while a tuple was processed its key seems to cost nothing, and such keys alone would make the price."""
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
Known = Any
"""The record of one key. Kernels for one key take it: references to arrays that are passed are counted."""


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
    return _arrive(queue.keys[key], queue.ranks[key], queue.habits, queue.totals, policy, now, row)


@kernel
def _arrive(
    one: Known, rank: Rank, habits: Floats, totals: Floats, policy: int, now: float, row: int
) -> bool:
    waiting = one.first < _INF
    if now > totals[CAME]:
        totals[PAUSE] = now - totals[CAME]
        totals[CAME] = now
    elif now - one.arrived == totals[PAUSE] and one.weight > 1.0:
        habits[ALL, BATCHED] += 1.0
    _learn_gap(one, habits, totals[BEGAN], now)
    one.row = row
    one.arrived = now
    one.updates += 1
    one.pending = min(one.pending, now)
    totals[NOW] = now
    if not waiting:
        one.first = now
        totals[WAITING] += 1.0
    return _enter(one, rank, habits, totals, policy, waiting)


@kernel
def _enter(one: Known, rank: Rank, habits: Floats, totals: Floats, policy: int, waiting: bool) -> bool:
    """Rank a key whose newest tuple came last of all. True where its rank is new or another."""
    totals[ORDER] += 1.0
    rank.since = one.first
    if policy == FRESHEST:
        rank.silent = one.arrived
        gap, rank.seen = gap_of(one.gaps, one.weight, habits)
        rank.gap = max(gap, _TINY)
        rank.price = 1.0 / max(cost_of(one, totals), LEAST * totals[COST])
        return True
    cuts = policy == LINECUTTING or policy == VERY_FRONT  # noqa: PLR1714 - Numba builds no set here
    if cuts and cost_of(one, totals) * totals[WAITING] < _gap_of(one):
        # All who wait could be served between two updates of this key.
        if policy == VERY_FRONT:
            rank.constant = _FRONT + totals[ORDER]
            return True
        # It goes to the front, behind those who cut in before it.
        if not waiting or rank.constant < 0.0:
            rank.constant = _FRONT - totals[ORDER]
            return True
        return False
    if policy == FIFO or not waiting:
        if policy != DUE:
            rank.constant = -totals[ORDER]
        return True
    return False


@kernel
def enter_all(queue: Queue, policy: int, order: Ints) -> None:
    """Rank keys that wait already, in this order."""
    keys, ranks, habits, totals = queue.keys, queue.ranks, queue.habits, queue.totals
    for i in range(len(order)):
        _enter(keys[order[i]], ranks[order[i]], habits, totals, policy, waiting=False)


@kernel
def _learn_gap(one: Known, habits: Floats, began: float, now: float) -> None:
    """Count the time since the key's last update; for its first one, since the queue began.

    Updates that come at one time are of one batch, which says nothing of how often the key updates.
    """
    if one.updates == 0:
        one.gaps = now - began
        one.weight = 1.0
        return
    gap = now - one.arrived
    if gap <= 0.0:
        return
    if one.weight > 1.0:  # the time since the queue began is no gap to measure others by
        notice(habits, gap / _gap_of(one))
    one.gaps += gap - FORGET * one.gaps
    one.weight += 1.0 - FORGET * one.weight


@kernel
def _gap_of(one: Known) -> float:
    """The mean time between updates of a key: 1 / its rate."""
    gap: float = max(one.gaps / one.weight, _TINY)
    return gap


@kernel
def cost_of(one: Known, totals: Floats) -> float:
    """What a service of the key is expected to take."""
    cost: float = one.cost if one.cost > 0.0 else totals[COST]
    return cost


@kernel
def turn_of(keys: Keys, totals: Floats, costs: Floats, key: int, budget: float) -> float:
    """How long the turn of a key takes, by `costs` or AS_LEARNED; without a budget no time passes."""
    if not np.isfinite(budget):
        return 0.0
    cost: float = costs[key] if len(costs) > 0 else cost_of(keys[key], totals)
    return cost


@kernel
def serve(queue: Queue, now: float) -> int:
    """Take the key that the policy ranks first out of the queue, or NOBODY where none waits."""
    key = best(queue.tree, queue.ranks, queue.habits, now)
    if key >= 0:
        leave(queue.keys[key], queue.totals, queue.keys[key].first, _INF, now)
        remove(queue.tree, queue.ranks, key, now)
        learn_price(queue.tree, queue.ranks, queue.habits, key, now)
        if queue.ranks[key].gap > 0.0:
            queue.tree.looked[0] += learn_common(queue.keys, queue.habits, now)
    return key


@kernel
def join(one: Known, totals: Floats, now: float) -> None:
    """A tuple of a key comes to a line of all tuples."""
    one.updates += 1
    one.arrived = now
    one.first = min(one.first, now)
    one.pending = min(one.pending, now)
    totals[NOW] = now


@kernel
def leave(one: Known, totals: Floats, arrived: float, after: float, now: float) -> None:
    """A tuple that came at `arrived` is served; `after` is when the next one of its key came."""
    # Where all tuples are kept, or were, the key may have been served since its first update that waits.
    one.queue_area += area(one.first, max(one.served, totals[MEASURED]), now)
    one.waited += now - arrived
    one.first = after
    one.served = now
    one.serves += 1
    totals[WAITING] -= 1.0
    totals[NOW] = now


@kernel
def deliver(one: Known, totals: Floats, now: float) -> None:
    """The result of the last service of a key reached the application."""
    one.application_area += area(one.pending, max(one.delivered, totals[MEASURED]), now)
    one.pending = one.first
    one.delivered = now


@kernel
def stale_areas(keys: Keys, measured: float, now: float, queue: Floats, application: Floats) -> None:
    """The staleness of keys integrated from the start of the measurement until now."""
    for key in range(len(queue)):
        one = keys[key]
        queue[key] = one.queue_area + area(one.first, max(one.served, measured), now)
        application[key] = one.application_area + area(one.pending, max(one.delivered, measured), now)


@kernel
def deliver_many(queue: Queue, ids: Ints, times: Floats) -> None:
    """The results of several services reached the application."""
    for i in range(len(ids)):
        deliver(queue.keys[ids[i]], queue.totals, times[i])


@kernel
def learn_many(queue: Queue, ids: Ints, costs: Floats, weight: float) -> None:
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
    keys, ranks, habits, totals, stamps = (
        queue.keys,
        queue.ranks,
        queue.habits,
        queue.totals,
        queue.tree.stamps,
    )
    stamps[-1] += 1
    count = 0
    for i in range(len(ids)):
        key = ids[i]
        ranked = _arrive(keys[key], ranks[key], habits, totals, policy, times[i], rows[i])
        if ranked and stamps[key] != stamps[-1]:
            stamps[key] = stamps[-1]
            touched[count] = key
            count += 1
    for i in range(count):
        place(queue.tree, ranks, habits, touched[i], times[len(times) - 1])


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
