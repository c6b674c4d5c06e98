"""The append queue for loops: every tuple waits in a line, in arrival order, unless it is shed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.update_queue import (
    CAME,
    COST,
    LOAD,
    ORDER,
    PAUSE,
    WAITING,
    Keys,
    cost_of,
    join,
    leave,
    turn_of,
)

_INF = np.inf
_MEMORY, _PAUSES, _STEP = 64.0, 8.0, 1.25
"""The load is measured over as long as so many tuples take to process, or so many pauses if that is more."""
HEAD, TAIL = 0, 1


class Line(NamedTuple):
    """Tuples in arrival order; those from HEAD to TAIL wait, unless they were shed."""

    ids: Ints
    rows: Ints
    times: Floats
    kept: Bools
    following: Ints
    """The next tuple of the same key, -1 where none came yet."""
    ends: Ints


@kernel
def keeps(totals: Floats, cost: float, now: float, chance: float, headroom: float) -> bool:
    """Whether to keep a tuple that arrives, given a random number: as much as the consumer can do.

    The load is the work that came, older work counting less and less, for each unit of time. What waits takes
    its share of the `headroom`, so that a line that became too long gets shorter again. A tuple that finds
    nobody waiting is always kept; a `headroom` of infinity keeps all.
    """
    if now > totals[CAME]:
        gap = now - totals[CAME]
        # A typical pause, which one lull does not change by much: tuples may come in batches.
        totals[PAUSE] *= _STEP if gap > totals[PAUSE] else 1.0 / _STEP
        totals[LOAD] *= np.exp(-gap / _memory(totals))
        totals[CAME] = now
    memory = _memory(totals)
    totals[LOAD] += cost / memory
    room = headroom * (1.0 - totals[WAITING] * totals[COST] / memory)
    kept: bool = totals[WAITING] == 0.0 or headroom == _INF or chance * totals[LOAD] < room
    return kept


@kernel
def _memory(totals: Floats) -> float:
    """Over how long the load is measured."""
    span: float = max(_MEMORY * totals[COST], _PAUSES * totals[PAUSE])
    return span


@kernel
def join_line(
    keys: Keys,
    totals: Floats,
    line: Line,
    last: Ints,
    ids: Ints,
    times: Floats,
    rows: Ints,
    chances: Floats,
    headroom: float,
) -> None:
    """Tuples arrive; each is kept with the chance that leaves as much work as the consumer can do.

    `last` is the newest tuple of each key in the line; a `headroom` of infinity keeps all.
    """
    for i in range(len(ids)):
        key, now, at = ids[i], times[i], line.ends[TAIL]
        totals[ORDER] += 1.0
        line.ids[at], line.rows[at], line.times[at], line.following[at] = key, rows[i], now, -1
        line.kept[at] = keeps(totals, cost_of(keys[key], totals), now, chances[i], headroom)
        if last[key] >= 0:
            line.following[last[key]] = at
        last[key] = at
        line.ends[TAIL] = at + 1
        join(keys[key], totals, now)
        if line.kept[at]:
            totals[WAITING] += 1.0


@kernel
def leave_line(
    keys: Keys,
    totals: Floats,
    line: Line,
    last: Ints,
    now: float,
    budget: float,
    costs: Floats,
    out: Ints,
    times: Floats,
) -> int:
    """Serve tuples from the head of the line while the cost of each fits into the budget; how many.

    `out` gets their places in the line, `times` when the turn of each comes; `costs` as in `turn_of`.
    """
    spent = 0.0
    count = 0
    while count < len(out) and line.ends[HEAD] < line.ends[TAIL]:
        at = line.ends[HEAD]
        key = line.ids[at]
        if line.kept[at]:
            cost = turn_of(keys, totals, costs, key, budget)
            if spent + cost > budget:
                break
            after = line.times[line.following[at]] if line.following[at] >= 0 else _INF
            leave(keys[key], totals, line.times[at], after, now + spent)
            out[count] = at
            times[count] = now + spent
            spent += cost
            count += 1
        if last[key] == at:
            last[key] = -1
        line.ends[HEAD] = at + 1
    return count


@kernel
def close_ranks(line: Line, last: Ints) -> None:
    """Move the line to the front of its arrays; only the keys in it are looked at.

    Of the tuples of a key that were shed between two that are kept only the first stays: when the one before
    it is served, the key has been stale since then. What was shed earlier is counted already.
    """
    head, tail = line.ends[HEAD], line.ends[TAIL]
    for at in range(head, tail):
        last[line.ids[at]] = -1
    to = 0
    for at in range(head, tail):
        before = last[line.ids[at]]
        if not line.kept[at] and (before < 0 or not line.kept[before]):
            continue
        line.ids[to], line.rows[to], line.times[to] = line.ids[at], line.rows[at], line.times[at]
        line.kept[to], line.following[to] = line.kept[at], -1
        if before >= 0:
            line.following[before] = to
        last[line.ids[to]] = to
        to += 1
    line.ends[HEAD], line.ends[TAIL] = 0, to
