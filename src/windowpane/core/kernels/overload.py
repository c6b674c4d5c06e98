"""A consumer that cannot keep up, in virtual time: arrivals, services and deliveries in order."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.append_queue import keeps
from windowpane.core.kernels.kinetic import NOBODY, place
from windowpane.core.kernels.update_queue import WAITING, Keys, Queue, arrive, deliver, join, leave, serve

_INF = np.inf


@kernel
def overload(
    queue: Queue, policy: int, times: Floats, ids: Ints, costs: Floats, until: float, most: Ints
) -> None:
    """Run an update queue before one consumer up to a time; a service of key k takes costs[k].

    An update that comes at the moment at which the consumer is free is in the queue before it chooses.
    `most` gets the largest number of keys that waited.
    """
    free = -_INF
    # Of the type that they have later: for a literal all that is given them would be compiled once more.
    current: int = np.int64(NOBODY)  # type: ignore[assignment]
    at: int = np.int64(0)  # type: ignore[assignment]
    while True:
        # What happens next: an update, or the consumer is done.
        arrival = times[at] if at < len(times) else _INF
        busy = current >= 0
        now = min(arrival, free) if busy else arrival
        if now > until:
            return
        if arrival <= now:
            if arrive(queue, policy, ids[at], now, at):
                place(queue.tree, queue.ranks, queue.habits, ids[at], now)
            most[0] = max(most[0], np.int64(queue.totals[WAITING]))
            at += 1
            if at < len(times) and times[at] == now:
                continue
        if busy and free <= now:
            deliver(queue.keys[current], queue.totals, now)
            current = NOBODY
        if current < 0:
            current = serve(queue, now)
            if current >= 0:
                free = now + costs[current]


@kernel
def overload_append(
    keys: Keys,
    totals: Floats,
    times: Floats,
    ids: Ints,
    following: Ints,
    chances: Floats,
    headroom: float,
    costs: Floats,
    until: float,
    most: Ints,
) -> None:
    """As `overload` for a queue of all tuples that it `keeps`, served in arrival order.

    `following` is the next tuple of the same key, len(ids) where there is none. A tuple that was shed makes
    its key stale as any other does, until a later one is served.
    """
    kept = np.zeros(len(ids), np.bool_)
    free = -_INF
    current, at, head = NOBODY, 0, 0
    while True:
        arrival = times[at] if at < len(times) else _INF
        busy = current >= 0
        now = min(arrival, free) if busy else arrival
        if now > until:
            return
        if arrival <= now:
            key = ids[at]
            join(keys[key], totals, now)
            kept[at] = keeps(totals, costs[key], now, chances[at], headroom)
            if kept[at]:
                totals[WAITING] += 1.0
            most[0] = max(most[0], np.int64(totals[WAITING]))
            at += 1
            if at < len(times) and times[at] == now:
                continue
        if busy and free <= now:
            deliver(keys[ids[current]], totals, now)
            current = NOBODY
        if current < 0:
            while head < at and not kept[head]:
                head += 1
            if head < at:
                current = head
                head += 1
                after = times[following[current]] if following[current] < at else _INF
                leave(keys[ids[current]], totals, times[current], after, now)
                free = now + costs[ids[current]]


@kernel
def next_of_key(ids: Ints, keys: int) -> Ints:
    """The position of the next tuple of the same key, len(ids) where there is none."""
    last = np.full(keys, len(ids), np.int64)
    following = np.empty(len(ids), np.int64)
    for i in range(len(ids) - 1, -1, -1):
        following[i] = last[ids[i]]
        last[ids[i]] = i
    return following
