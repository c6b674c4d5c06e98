"""Windows under update semantics for batches: tuples come, keys are served, or both in virtual time."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.update_window_serves import begin, deliver, end
from windowpane.core.kernels.update_windows import (
    BOUND,
    COUNTED,
    NOBODY,
    PLACE,
    SEEN,
    Delivered,
    Dequeued,
    Machine,
    advance,
    enqueue,
)

_INF = np.inf


@kernel
def enqueue_many(m: Machine, keys: Ints, rows: Ints, times: Floats, late: Bools) -> int:
    """Tuples in arrival order; how many were taken before the memory was full.

    Where tuples are counted their place is written into `rows`; else those below the bound of their key are
    marked in `late` and left out.
    """
    for i in range(len(keys)):
        key = keys[i]
        if m.spec[COUNTED]:
            rows[i, PLACE] = m.buffers[key, SEEN]
        elif rows[i, PLACE] < m.buffers[key, BOUND]:
            late[i] = True
            continue
        if not enqueue(m, key, rows[i], times[i]):
            return i
    return len(keys)


@kernel
def punctuate(m: Machine, bound: int, now: float) -> None:
    """No tuple of any key below the bound is still to come."""
    for key in range(len(m.buffers)):
        if bound > m.buffers[key, BOUND]:
            advance(m, key, bound, now)


@kernel
def serve_many(m: Machine, out: Dequeued, done: Delivered, now: float, cost: float, budget: int) -> int:
    """Serve until so many tuples were dequeued, of which the last window of LAZY may bring more; how many.

    What is done is not delivered yet: `deliver_many`.
    """
    spent = 0
    while spent < budget:
        key, tuples = begin(m, out, now + spent * cost)
        if key == NOBODY:
            break
        spent += tuples
        end(m, key, done, now + spent * cost)
    return spent


@kernel
def deliver_many(m: Machine, keys: Ints, now: float) -> None:
    """The results of these keys, each named once, reached the application."""
    for i in range(len(keys)):
        deliver(m, keys[i], now)


@kernel
def overload(
    m: Machine,
    out: Dequeued,
    done: Delivered,
    keys: Ints,
    rows: Ints,
    times: Floats,
    cost: float,
    until: float,
) -> int:
    """One operator that needs `cost` for a tuple, in virtual time; how many tuples it processed.

    A tuple that comes at the moment at which the operator is free is there before it chooses. `out` holds
    what the operator works on, one window at most.
    """
    free = _INF
    current: int = np.int64(NOBODY)  # type: ignore[assignment]  # as in `overload`
    processed = 0
    at = 0
    while True:
        arrival = times[at] if at < len(times) else _INF
        now = min(arrival, free)
        if now > until or now == _INF:
            return processed
        while at < len(times) and times[at] == now:
            if m.spec[COUNTED]:
                rows[at, PLACE] = m.buffers[keys[at], SEEN]
            if not enqueue(m, keys[at], rows[at], now):
                return -1
            at += 1
        if current != NOBODY and free <= now:
            if end(m, current, done, now):
                deliver(m, current, now)
            current = NOBODY
            free = _INF
        while current == NOBODY:
            out.filled[0] = 0
            key, tuples = begin(m, out, now)
            if key == NOBODY:
                break
            if tuples == 0:
                if end(m, key, done, now):
                    deliver(m, key, now)
                continue
            processed += tuples
            current = key
            free = now + tuples * cost
