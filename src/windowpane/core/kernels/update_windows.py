"""Windows under update semantics, tuple by tuple: the key transition graph and its two window buffers.

Moga et al. 2009, section 6.2. A tuple has a place on the measure: its number within the key (`counted`) or
its event time. Window k covers the places [k * slide, k * slide + size). A key WAITs while its newest window
is not served: LAZY the newest that fully arrived, EAGER the newest that started. Serving a key commits to
that window. Then the key is READY, EAGER also IDLE while the rest of the window is still to come, and DONE
when the result is delivered. A key may wait again meanwhile, but is not chosen before it is done.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.kinetic import place
from windowpane.core.kernels.staleness import area
from windowpane.core.kernels.update_queue import MEASURED, Queue, arrive, serve
from windowpane.core.kernels.zones import (
    HELD,
    NEW,
    OLD,
    WIDTH,
    Memory,
    drop,
    first_slot,
    following,
    has_room,
    push,
    where,
)

NONE = -(2**62)
"""No window yet, or no place."""
NOBODY = -1
DONE, READY, IDLE = 0, 1, 2
PLACE = 0
"""The word of a row that holds the place of its tuple."""
NOT_OPENED, NO_START = 0, -1
"""Marks of dequeued tuples: a window starts but is not opened; no window starts. Else: the window's end."""
# What a machine was made for, and its counts, each in one array.
SIZE, SLIDE, COUNTED, EAGER, POLICY, SPEC = 0, 1, 2, 3, 4, 5
FIRST, LAST, MOST_HELD, COUNTS = 0, 1, 2, 3
_INF = np.inf

# What is known of a key, in one array each of integers and times.
SEEN = 0
"""How many tuples came."""
INSIDE = 1
"""The last place that lies in a window."""
BOUND = 2
"""No tuple below this place is still to come."""
NEWEST = 3
"""The window that the key would be served with."""
CLOSED = 4
"""The newest window that arrived in full and holds tuples."""
COMMITTED = 5
"""The window that was served last."""
DELIVERED = 6
"""The window whose result was delivered last."""
PHASE = 7
"""DONE, READY or IDLE."""
LEFT = 8
"""How many tuples of the committed window are here and not dequeued."""
OVER = 9
"""How many of the last tuples are of no committed window, so that the next window erases them."""
NEXT_SLOT = 10
"""Where the first tuple that is left lies (DF)."""
NEXT_SKIP = 11
"""How many are stored before it."""
START_SLOT = 12
"""Where the first tuple of the newest window lies (WS)."""
START_SKIP = 13
"""How many are stored before it."""
MARKED = 14
"""The window that started last among the dequeued tuples of the committed window."""
AFTER = 15
"""The next key among those that are READY (`upq`)."""
COLUMNS = 16
SINCE = 0
"""When the key was committed."""
NEXT_CLOSE = 1
"""When the first window behind the committed one had arrived in full."""
MOMENTS = 2


class Machine(NamedTuple):
    """All of it."""

    waiting: Queue
    """The keys that wait, ranked by policy: `wq`."""
    buffers: Ints
    """For each key the columns SEEN to AFTER."""
    moments: Floats
    """For each key SINCE and NEXT_CLOSE."""
    memory: Memory
    spec: Ints
    counts: Ints


class Dequeued(NamedTuple):
    """Tuples on their way to the operator, with their marks (table 1)."""

    keys: Ints
    windows: Ints
    marks: Ints
    rows: Ints
    filled: Ints


class Delivered(NamedTuple):
    """Windows whose result is complete."""

    keys: Ints
    windows: Ints
    committed: Floats
    times: Floats
    filled: Ints


@kernel
def enqueue(m: Machine, key: int, row: Ints, now: float) -> bool:
    """One tuple comes, not below its key's bound; False where there is no room for it."""
    at = row[PLACE]
    started = at // m.spec[SLIDE]
    inside = at - started * m.spec[SLIDE] < m.spec[SIZE]
    if inside and not has_room(m.memory, key):
        return False
    if not m.spec[COUNTED]:
        advance(m, key, at, now)
    if inside:
        if m.spec[EAGER]:
            _store(m, key, row, started, now)
        else:
            if m.spec[COUNTED]:  # the window that this tuple closes makes the older ones needless
                _drop_below(m.memory, key, (at + 1 - m.spec[SIZE]) // m.spec[SLIDE] * m.spec[SLIDE])
            push(m.memory, key, row)
        m.buffers[key, INSIDE] = at
        m.counts[MOST_HELD] = max(m.counts[MOST_HELD], m.memory.chains[key, HELD])
    if m.spec[COUNTED]:
        advance(m, key, at + 1, now)
    m.buffers[key, SEEN] += 1
    return True


@kernel
def advance(m: Machine, key: int, bound: int, now: float) -> None:
    """No tuple of the key below the bound is still to come: windows that end there have arrived in full."""
    b = m.buffers
    b[key, BOUND] = bound
    last = b[key, INSIDE]
    if last == NONE:
        return
    size, slide = m.spec[SIZE], m.spec[SLIDE]
    window = min((bound - size) // slide, last // slide)
    # A window that ended before the last tuple was looked at when that tuple came. Counting begins with 0.
    if window <= b[key, CLOSED] or window * slide + size <= last or (m.spec[COUNTED] and window < 0):
        return
    b[key, CLOSED] = window
    if m.waiting.keys.pending[key] == _INF:
        m.waiting.keys.pending[key] = now
    if b[key, PHASE] != DONE and window > b[key, COMMITTED] and m.moments[key, NEXT_CLOSE] == _INF:
        m.moments[key, NEXT_CLOSE] = now
    if not m.spec[EAGER]:
        b[key, NEWEST] = window
        _drop_below(m.memory, key, window * slide)
        _wait(m, key, now)
    elif b[key, PHASE] == IDLE and b[key, LEFT] == 0 and bound >= b[key, COMMITTED] * slide + size:
        _promote(b, m.counts, key)


@kernel
def _store(m: Machine, key: int, row: Ints, started: int, now: float) -> None:
    """EAGER: a tuple that starts a window erases the older one, save what is committed."""
    b = m.buffers
    starts = started > b[key, NEWEST]
    if starts:
        drop(m.memory, key, b[key, OVER], NEW)
        b[key, OVER] = 0
        b[key, NEWEST] = started
        b[key, START_SKIP] = m.memory.chains[key, HELD]
        _trim(b, m.memory, key)
    slot = push(m.memory, key, row)
    skip = m.memory.chains[key, HELD] - 1
    if b[key, PHASE] != DONE and row[PLACE] < b[key, COMMITTED] * m.spec[SLIDE] + m.spec[SIZE]:
        if b[key, LEFT] == 0:
            b[key, NEXT_SLOT] = slot
            b[key, NEXT_SKIP] = skip
        b[key, LEFT] += 1
        if b[key, PHASE] == IDLE:
            _promote(b, m.counts, key)
    else:
        b[key, OVER] += 1
    if starts:
        b[key, START_SLOT] = slot
        _wait(m, key, now)


@kernel
def _wait(m: Machine, key: int, now: float) -> None:
    """The key has a newer window than the one that was served: it waits, or goes on waiting."""
    w = m.waiting
    pending = w.keys.pending[key]
    ranked = arrive(w, m.spec[POLICY], key, now, m.buffers[key, NEWEST])
    # Windows make the application stale when they have arrived in full, which need not be now.
    w.keys.pending[key] = pending
    if ranked and m.buffers[key, PHASE] == DONE:
        place(w.tree, w.ranks, w.habits, key, now)


@kernel
def _promote(b: Ints, counts: Ints, key: int) -> None:
    """Behind the other keys that are READY."""
    b[key, PHASE] = READY
    b[key, AFTER] = NOBODY
    if counts[FIRST] == NOBODY:
        counts[FIRST] = key
    else:
        b[counts[LAST], AFTER] = key
    counts[LAST] = key


@kernel
def _trim(b: Ints, memory: Memory, key: int) -> None:
    """EAGER: forget the first tuples that neither the committed nor the newest window needs."""
    unused = memory.chains[key, HELD]
    if b[key, LEFT] > 0:
        unused = min(unused, b[key, NEXT_SKIP])
    if b[key, NEWEST] > b[key, COMMITTED]:
        unused = min(unused, b[key, START_SKIP])
    if unused > 0:
        drop(memory, key, unused, OLD)
        b[key, NEXT_SKIP] -= unused
        b[key, START_SKIP] -= unused


@kernel
def _drop_below(memory: Memory, key: int, lowest: int) -> None:
    """LAZY: forget the tuples before the oldest window that is still needed."""
    while memory.chains[key, HELD] > 0:
        page, word = where(memory, first_slot(memory, key))
        if memory.words[page, word + PLACE] >= lowest:
            return
        drop(memory, key, 1, OLD)


@kernel
def begin(m: Machine, out: Dequeued, now: float) -> tuple[int, int]:
    """Which key the operator serves now, and how many tuples it gets: EAGER one, LAZY a whole window.

    Keys that are READY come first; else the policy's first key is committed. NOBODY where none waits.
    """
    b = m.buffers
    key = m.counts[FIRST]
    if key == NOBODY:
        key = serve(m.waiting, now)
        if key == NOBODY:
            return key, 0
        b[key, COMMITTED] = b[key, NEWEST]
        b[key, MARKED] = NONE
        m.moments[key, SINCE] = now
        b[key, LEFT] = m.memory.chains[key, HELD]
        if m.spec[EAGER]:
            b[key, LEFT] -= b[key, START_SKIP]
            b[key, NEXT_SLOT] = b[key, START_SLOT]
            b[key, NEXT_SKIP] = b[key, START_SKIP]
            b[key, OVER] = 0
        _promote(b, m.counts, key)
    if not m.spec[EAGER]:
        return key, _dequeue_all(b, m.memory, m.spec, key, out)
    if b[key, LEFT] == 0:
        return key, 0  # nothing was missing but the end of the window
    slot = b[key, NEXT_SLOT]
    _dequeue(b, m.memory, m.spec, key, slot, out)
    b[key, LEFT] -= 1
    if b[key, LEFT] > 0:
        b[key, NEXT_SLOT] = following(m.memory, slot)
        b[key, NEXT_SKIP] += 1
    _trim(b, m.memory, key)
    return key, 1


@kernel
def _dequeue_all(b: Ints, memory: Memory, spec: Ints, key: int, out: Dequeued) -> int:
    """LAZY: the operator takes the window as a whole; its tuples stay only for the windows that follow."""
    end = b[key, COMMITTED] * spec[SLIDE] + spec[SIZE]
    slot = first_slot(memory, key)
    taken = 0
    while True:
        page, word = where(memory, slot)
        if memory.words[page, word + PLACE] >= end:
            break
        _dequeue(b, memory, spec, key, slot, out)
        taken += 1
        if taken == memory.chains[key, HELD]:
            break
        slot = following(memory, slot)
    b[key, LEFT] = 0
    _drop_below(memory, key, (b[key, COMMITTED] + 1) * spec[SLIDE])
    return taken


@kernel
def _dequeue(b: Ints, memory: Memory, spec: Ints, key: int, slot: int, out: Dequeued) -> None:
    page, word = where(memory, slot)
    n = out.filled[0]
    for i in range(memory.shape[WIDTH]):
        out.rows[n, i] = memory.words[page, word + i]
    out.keys[n] = key
    out.windows[n] = b[key, COMMITTED]
    started = memory.words[page, word + PLACE] // spec[SLIDE]
    if b[key, MARKED] == NONE:
        out.marks[n] = b[key, COMMITTED] * spec[SLIDE] + spec[SIZE]
    else:
        out.marks[n] = NOT_OPENED if started > b[key, MARKED] else NO_START
    b[key, MARKED] = started
    out.filled[0] = n + 1


@kernel
def end(m: Machine, key: int, done: Delivered, now: float) -> None:
    """The operator is through with what it got: the result is delivered, or the key goes on or idles."""
    b = m.buffers
    if m.spec[EAGER]:
        if b[key, LEFT] > 0:
            return
        missing = b[key, BOUND] < b[key, COMMITTED] * m.spec[SLIDE] + m.spec[SIZE]
    else:
        missing = False
    m.counts[FIRST] = b[key, AFTER]
    if missing:
        b[key, PHASE] = IDLE
        return
    b[key, PHASE] = DONE
    b[key, DELIVERED] = b[key, COMMITTED]
    keys, totals = m.waiting.keys, m.waiting.totals
    since = max(keys.delivered[key], totals[MEASURED])
    keys.application_area[key] += area(keys.pending[key], since, now)
    keys.delivered[key] = now
    keys.pending[key] = m.moments[key, NEXT_CLOSE]
    m.moments[key, NEXT_CLOSE] = _INF
    if keys.first[key] < _INF:
        place(m.waiting.tree, m.waiting.ranks, m.waiting.habits, key, now)
    n = done.filled[0]
    done.keys[n] = key
    done.windows[n] = b[key, COMMITTED]
    done.committed[n] = m.moments[key, SINCE]
    done.times[n] = now
    done.filled[0] = n + 1
