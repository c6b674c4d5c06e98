"""The stream's progress, tuple by tuple."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windowpane.core.arrays import ALWAYS, NEVER, Bools, Ints
from windowpane.core.jit import kernel

Codes = npt.NDArray[np.uint8]

KEPT, LATE, AHEAD, MARKER = 0, 1, 2, 3
DELAY, SLACK, SILENT = 0, 1, 2
"""How a source's own tuples move its bound: by time, by rows, not at all."""
UNSEEN, ACTIVE, IDLE = 0, 1, 2

# Positions in the vector of the clock's numbers.
BOUND, HIGH, ANCHOR = 0, 1, 2
# Positions in the vector of its parameters.
KIND, DISTANCE, LATENESS, MAX_AHEAD = 0, 1, 2, 3
# Rows of the matrix of sources.
S_HIGH, S_BOUND, S_COUNT, S_STATUS = 0, 1, 2, 3


@kernel
def scan(time: Ints) -> tuple[int, int, bool]:
    """The smallest and largest time, and whether times never fall; at least one tuple."""
    low, high, rising = time[0], time[0], True
    for i in range(1, len(time)):
        low = min(low, time[i])
        high = max(high, time[i])
        rising &= time[i] >= time[i - 1]
    return low, high, rising


@kernel
def none_late(time: Ints, high: int, bound: int, distance: int, lateness: int) -> bool:
    """Whether no tuple is below the bound that the tuples before it set.

    That is the larger of `bound` and the running maximum minus `distance`. Most blocks are cleared by their
    smallest and largest time, which is quick to find; only the others are walked tuple by tuple.
    """
    top, limit = max(high, bound + distance), distance + lateness
    at = 0
    while at < len(time):
        end = min(at + 64, len(time))
        low, most = time[at], time[at]
        for i in range(at, end):
            low = min(low, time[i])
            most = max(most, time[i])
        if max(top, most) - low > limit:
            for i in range(at, end):
                if top - time[i] > limit:
                    return False
                top = max(top, time[i])
        top = max(top, most)
        at = end
    return True


@kernel
def _lowest(sources: Ints) -> int:
    """The smallest bound of the sources that count; ALWAYS if none does."""
    low = ALWAYS
    for s in range(sources.shape[1]):
        if sources[S_STATUS, s] == ACTIVE:
            low = min(low, sources[S_BOUND, s])
    return low


@kernel
def _code(t: int, marks: int, bound: int, progress: int, lateness: int, max_ahead: int) -> int:
    """The verdict on one tuple; `progress` is what "too far ahead" is measured from."""
    if not marks and bound != NEVER and t < bound - lateness:
        return LATE
    if max_ahead >= 0 and progress != NEVER and progress <= ALWAYS - max_ahead and t > progress + max_ahead:
        return AHEAD
    return MARKER if marks else KEPT


@kernel
def judge_one(
    time: Ints, marker: Bools, rule: Ints, clock: Ints, source: Ints, ring: Ints, codes: Codes
) -> tuple[int, int, bool]:
    """Judge each tuple of a single source by those before it and move the bound; empty `marker`: none.

    Returns the smallest and largest kept time and whether kept times never fell, also below the high before.
    """
    low, top, rising = ALWAYS, NEVER, True
    kind, distance, lateness, max_ahead = rule[KIND], rule[DISTANCE], rule[LATENESS], rule[MAX_AHEAD]
    bound, high, anchor = clock[BOUND], clock[HIGH], clock[ANCHOR]
    own, at = source[S_BOUND], source[S_COUNT] % max(distance, 1)
    count, heard = 0, False
    for i in range(len(time)):
        t = time[i]
        marks = 1 if len(marker) > 0 and marker[i] else 0
        code = _code(t, marks, bound, max(high, anchor, bound), lateness, max_ahead)
        codes[i] = code
        heard |= code in (MARKER, KEPT)
        if code == MARKER:
            own = max(own, t)
        elif code == KEPT:
            rising &= t >= high
            low = min(low, t)
            top = max(top, t)
            high = max(high, t)
            count += 1
            if kind == DELAY or (kind == SLACK and distance == 0):
                own = max(own, high - distance)
            elif kind == SLACK:
                at = at + 1 if at + 1 < distance else 0
                own = max(own, ring[at])
                ring[at] = high
        bound = max(bound, own)
    clock[BOUND], clock[HIGH] = bound, high
    source[S_HIGH], source[S_BOUND] = high, own
    source[S_COUNT] += count
    if heard:
        source[S_STATUS] = ACTIVE
    return low, top, rising


@kernel
def _reach(t: int, s: int, rule: Ints, sources: Ints, rings: Ints) -> np.int64:
    """The bound that source s comes to by its kept tuple t."""
    high = max(sources[S_HIGH, s], t)
    sources[S_HIGH, s] = high
    sources[S_COUNT, s] += 1
    if rule[KIND] == SILENT:
        return np.int64(NEVER)
    if rule[KIND] == DELAY or rule[DISTANCE] == 0:
        return np.int64(high - rule[DISTANCE])
    at = sources[S_COUNT, s] % rule[DISTANCE]
    reach: np.int64 = rings[s, at]
    rings[s, at] = high
    return reach


@kernel
def judge_melded(
    time: Ints, marker: Bools, source: Ints, rule: Ints, clock: Ints, sources: Ints, rings: Ints, codes: Codes
) -> tuple[int, int, bool]:
    """As `judge_one`, with a progress for each source; the bound is the smallest of them."""
    low, top, rising = ALWAYS, NEVER, True
    bound, high, anchor = clock[BOUND], clock[HIGH], clock[ANCHOR]
    for i in range(len(time)):
        t, s = time[i], source[i]
        marks = 1 if len(marker) > 0 and marker[i] else 0
        code = _code(t, marks, bound, max(high, anchor, bound), rule[LATENESS], rule[MAX_AHEAD])
        codes[i] = code
        if code in (LATE, AHEAD):
            continue
        before, reach = sources[S_BOUND, s], t
        if code == MARKER:
            anchor = max(anchor, t)  # it has a place, though other sources may hold the bound back
        if code == KEPT:
            rising &= t >= high
            low = min(low, t)
            top = max(top, t)
            high = max(high, t)
            reach = _reach(t, s, rule, sources, rings)
        sources[S_BOUND, s] = max(before, reach)
        # Only a source that held the others back, or one that joins, can change the minimum.
        if sources[S_STATUS, s] != ACTIVE or (before <= bound and reach > bound):
            sources[S_STATUS, s] = ACTIVE
            bound = max(bound, _lowest(sources))
    clock[BOUND], clock[HIGH], clock[ANCHOR] = bound, high, anchor
    return low, top, rising
