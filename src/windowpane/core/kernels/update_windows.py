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
from windowpane.core.kernels.update_queue import Queue, arrive
from windowpane.core.kernels.zones import (
    HELD,
    NEW,
    OLD,
    Memory,
    drop,
    first_slot,
    has_room,
    push,
    where,
)

NONE = -(2**63) + 1
"""No window yet, or no place: times are not so far back (`columns.TIME_LIMIT`)."""
NOBODY = -1
DONE, READY, IDLE = 0, 1, 2
PLACE = 0
"""The word of a row that holds the place of its tuple."""
NOT_OPENED, NO_START = -(2**63) + 3, -(2**63) + 2
"""Marks of dequeued tuples: a window starts but is not opened; no window starts. Else: the window's end.

Table 1 has 0 and -1 for these, which are ends of windows, too, where event time may be negative. These are
below every end.
"""
# What a machine was made for, and its counts, each in one array.
SIZE, SLIDE, COUNTED, EAGER, POLICY, SPEC = 0, 1, 2, 3, 4, 5
FIRST, LAST, MOST_HELD = 0, 1, 2
# Windows that hold tuples and arrived in full, and those of which the operator gave a result.
FULL, RESULTS, COUNTS = 3, 4, 5
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
FINISHED = 6
"""The window whose result the operator gave last."""
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
TAKEN = 16
"""How many tuples of the committed window were dequeued."""
COLUMNS = 17
SINCE = 0
"""When the key was committed."""
NEXT_CLOSE = 1
"""When the first window behind the committed one had arrived in full."""
BEHIND = 2
"""When the first window behind the one that is finished had arrived in full."""
MOMENTS = 3


class Machine(NamedTuple):
    """All of it."""

    waiting: Queue
    """The keys that wait, ranked by policy: `wq`."""
    buffers: Ints
    """For each key the columns SEEN to TAKEN."""
    moments: Floats
    """For each key SINCE to BEHIND."""
    memory: Memory
    spec: Ints
    counts: Ints


class Dequeued(NamedTuple):
    """Tuples on their way to the operator, with their marks (table 1)."""

    keys: Ints
    marks: Ints
    rows: Ints
    filled: Ints


class Delivered(NamedTuple):
    """Windows whose result is complete, and of how many tuples."""

    keys: Ints
    windows: Ints
    tuples: Ints
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
                drop_below(m.memory, key, (at + 1 - m.spec[SIZE]) // m.spec[SLIDE] * m.spec[SLIDE])
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
    # Those that end behind the last tuple and started at or before it hold it.
    before = max(b[key, CLOSED], (last - size) // slide)
    m.counts[FULL] += window - (max(before, -1) if m.spec[COUNTED] else before)
    b[key, CLOSED] = window
    _note_close(m, key, window, now)
    if not m.spec[EAGER]:
        b[key, NEWEST] = window
        drop_below(m.memory, key, window * slide)
        _wait(m, key, now)
    elif b[key, PHASE] == IDLE and b[key, LEFT] == 0 and bound >= b[key, COMMITTED] * slide + size:
        promote(b, m.counts, key)


@kernel
def _note_close(m: Machine, key: int, window: int, now: float) -> None:
    """From now on a result is missing, and will be after the one that is on its way."""
    b, moments = m.buffers, m.moments
    if m.waiting.keys.pending[key] == _INF:
        m.waiting.keys.pending[key] = now
    if b[key, PHASE] != DONE and window > b[key, COMMITTED] and moments[key, NEXT_CLOSE] == _INF:
        moments[key, NEXT_CLOSE] = now
    if window > b[key, FINISHED] and moments[key, BEHIND] == _INF:
        moments[key, BEHIND] = now


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
        trim(b, m.memory, key)
    slot = push(m.memory, key, row)
    skip = m.memory.chains[key, HELD] - 1
    if b[key, PHASE] != DONE and row[PLACE] < b[key, COMMITTED] * m.spec[SLIDE] + m.spec[SIZE]:
        if b[key, LEFT] == 0:
            b[key, NEXT_SLOT] = slot
            b[key, NEXT_SKIP] = skip
        b[key, LEFT] += 1
        if b[key, PHASE] == IDLE:
            promote(b, m.counts, key)
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
def promote(b: Ints, counts: Ints, key: int) -> None:
    """Behind the other keys that are READY."""
    b[key, PHASE] = READY
    b[key, AFTER] = NOBODY
    if counts[FIRST] == NOBODY:
        counts[FIRST] = key
    else:
        b[counts[LAST], AFTER] = key
    counts[LAST] = key


@kernel
def trim(b: Ints, memory: Memory, key: int) -> None:
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
def drop_below(memory: Memory, key: int, lowest: int) -> None:
    """LAZY: forget the tuples before the oldest window that is still needed."""
    while memory.chains[key, HELD] > 0:
        page, word = where(memory, first_slot(memory, key))
        if memory.words[page, word + PLACE] >= lowest:
            return
        drop(memory, key, 1, OLD)
