"""The other side of update windows: the operator commits to a key, takes its tuples, and has a result.

The state is that of `update_windows`, where its columns are explained.
"""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.kinetic import place
from windowpane.core.kernels.update_queue import deliver as deliver_tuple
from windowpane.core.kernels.update_queue import serve
from windowpane.core.kernels.update_windows import (
    AFTER,
    BEHIND,
    BOUND,
    COMMITTED,
    DONE,
    EAGER,
    FINISHED,
    FIRST,
    IDLE,
    LEFT,
    MARKED,
    NEWEST,
    NEXT_CLOSE,
    NEXT_SKIP,
    NEXT_SLOT,
    NO_START,
    NOBODY,
    NONE,
    NOT_OPENED,
    OVER,
    PHASE,
    PLACE,
    RESULTS,
    SINCE,
    SIZE,
    SLIDE,
    START_SKIP,
    START_SLOT,
    TAKEN,
    Delivered,
    Dequeued,
    Machine,
    drop_below,
    promote,
    trim,
)
from windowpane.core.kernels.zones import HELD, WIDTH, Memory, first_slot, following, where

_INF = np.inf


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
        b[key, TAKEN] = 0
        m.moments[key, SINCE] = now
        b[key, LEFT] = m.memory.chains[key, HELD]
        if m.spec[EAGER]:
            b[key, LEFT] -= b[key, START_SKIP]
            b[key, NEXT_SLOT] = b[key, START_SLOT]
            b[key, NEXT_SKIP] = b[key, START_SKIP]
            b[key, OVER] = 0
        promote(b, m.counts, key)
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
    trim(b, m.memory, key)
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
    drop_below(memory, key, (b[key, COMMITTED] + 1) * spec[SLIDE])
    return taken


@kernel
def _dequeue(b: Ints, memory: Memory, spec: Ints, key: int, slot: int, out: Dequeued) -> None:
    page, word = where(memory, slot)
    n = out.filled[0]
    for i in range(memory.shape[WIDTH]):
        out.rows[n, i] = memory.words[page, word + i]
    out.keys[n] = key
    started = memory.words[page, word + PLACE] // spec[SLIDE]
    if b[key, MARKED] == NONE:
        out.marks[n] = b[key, COMMITTED] * spec[SLIDE] + spec[SIZE]
    else:
        out.marks[n] = NOT_OPENED if started > b[key, MARKED] else NO_START
    b[key, MARKED] = started
    b[key, TAKEN] += 1
    out.filled[0] = n + 1


@kernel
def end(m: Machine, key: int, done: Delivered, now: float) -> bool:
    """The operator is through with what it got. True: that is a result. Else the key goes on, or idles."""
    b = m.buffers
    if m.spec[EAGER]:
        if b[key, LEFT] > 0:
            return False
        missing = b[key, BOUND] < b[key, COMMITTED] * m.spec[SLIDE] + m.spec[SIZE]
    else:
        missing = False
    m.counts[FIRST] = b[key, AFTER]
    if missing:
        b[key, PHASE] = IDLE
        return False
    b[key, PHASE] = DONE
    b[key, FINISHED] = b[key, COMMITTED]
    m.moments[key, BEHIND] = m.moments[key, NEXT_CLOSE]
    m.moments[key, NEXT_CLOSE] = _INF
    m.counts[RESULTS] += 1
    if m.waiting.keys.first[key] < _INF:
        place(m.waiting.tree, m.waiting.ranks, m.waiting.habits, key, now)
    n = done.filled[0]
    done.keys[n] = key
    done.windows[n] = b[key, COMMITTED]
    done.tuples[n] = b[key, TAKEN]
    done.committed[n] = m.moments[key, SINCE]
    done.times[n] = now
    done.filled[0] = n + 1
    return True


@kernel
def deliver(m: Machine, key: int, now: float) -> None:
    """The last result of a key reached the application: it is as stale as the windows behind that make it."""
    deliver_tuple(m.waiting.keys[key], m.waiting.totals, now)
    m.waiting.keys[key].pending = m.moments[key, BEHIND]
    m.moments[key, BEHIND] = _INF
