"""A consumer behind a queue that switches by load, in virtual time: all tuples, or the newest of each key."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.kinetic import NOBODY, build, place
from windowpane.core.kernels.update_queue import (
    BEGAN,
    COST,
    FRESHEST,
    NOW,
    WAITING,
    Queue,
    arrive,
    deliver,
    enter_all,
    join,
    leave,
    serve,
)

_INF = np.inf


@kernel
def overload_switch(
    queue: Queue,
    times: Floats,
    ids: Ints,
    following: Ints,
    costs: Floats,
    behind: float,
    habits: Floats,
    until: float,
    most: Ints,
) -> int:
    """As `overload` and `overload_append`, by the rule of `core.upstream.change`; how often it switched.

    `following` is the next tuple of the same key, len(ids) where there is none; `habits` those of a queue
    that knows nothing.
    """
    keys, totals = queue.keys, queue.totals
    free, came, load = -_INF, totals[BEGAN], 0.0
    current: int = np.int64(NOBODY)  # type: ignore[assignment]  # as in `overload`
    at: int = np.int64(0)  # type: ignore[assignment]
    head = 0
    newest = False
    switches = 0
    while True:
        arrival = times[at] if at < len(times) else _INF
        busy = current >= 0
        now = min(arrival, free) if busy else arrival
        if now > until:
            return switches
        if arrival <= now:
            load = load * np.exp((came - now) / behind) + totals[COST] / behind
            came = now
            if newest and totals[WAITING] == 0.0 and load < 1.0:
                newest, head = False, at
                switches += 1
            if newest:
                if arrive(queue, FRESHEST, ids[at], now, at):
                    place(queue.tree, queue.ranks, queue.habits, ids[at], now)
            else:
                keys[ids[at]].row = at
                join(keys[ids[at]], totals, now)
                totals[WAITING] += 1.0
            at += 1
            if not newest and totals[WAITING] * totals[COST] > behind:
                _collapse(queue, habits)
                newest = True
                switches += 1
            most[0] = max(most[0], np.int64(totals[WAITING]))
            if at < len(times) and times[at] == now:
                continue
        if busy and free <= now:
            deliver(keys[current], totals, now)
            current = NOBODY
        if current < 0:
            if newest:
                current = serve(queue, now)
            elif head < at:
                current = ids[head]
                after = times[following[head]] if following[head] < at else _INF
                leave(keys[current], totals, times[head], after, now)
                head += 1
            if current >= 0:
                free = now + costs[current]


@kernel
def _collapse(queue: Queue, habits: Floats) -> None:
    """Of the tuples in the line the newest of each key waits on."""
    keys, totals = queue.keys, queue.totals
    waiting = np.zeros(len(keys), np.bool_)
    order = np.empty(len(keys), np.int64)
    count = 0
    for key in range(len(keys)):
        if keys.first[key] < _INF:
            waiting[key] = True
            order[count] = key
            count += 1
    totals[WAITING] = count
    queue.habits[:] = habits
    for key in range(len(keys)):
        # Nothing was learned of how often a key updates, only how many updates came.
        if keys.weight[key] <= 0.0 and keys.updates[key] > 0:
            keys.gaps[key] = (keys.arrived[key] - totals[BEGAN]) / keys.updates[key]
            keys.weight[key] = 1.0
    enter_all(queue, FRESHEST, order[:count])
    build(queue.tree, queue.ranks, queue.habits, waiting, totals[NOW])
