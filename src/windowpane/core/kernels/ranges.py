"""Loops that find, for every window and key, the range of rows inside the window."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Ints
from windowpane.core.jit import kernel


@kernel
def first_at_least(values: Ints, low: int, high: int, bound: int) -> int:
    """The first index in [low, high) whose value is at least `bound`; `high` if there is none."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def all_ending_windows(
    origin: Ints, slide: Ints, size: Ints, low: int, high: int, after: int, upto: int
) -> tuple[Ints, Ints, bool]:
    """Sliding windows with `after < end <= upto` that reach into [low, high], unless they are too many.

    Gives the index of the definition and the start of each window, sorted by both. Nothing is looked up, so
    that a thousand definitions cost little; the caller says with `low` and `high` where tuples are.
    """
    most = np.int64(1) << 40
    total = 0
    first, last = np.empty(len(slide), np.int64), np.empty(len(slide), np.int64)
    for d in range(len(slide)):
        reach = max(after, low)
        first[d] = (reach - size[d] - origin[d]) // slide[d] + 1
        last[d] = (high - origin[d]) // slide[d]
        if upto < 9223372036854775807:
            last[d] = min(last[d], (upto - size[d] - origin[d]) // slide[d])
        total = min(total + max(last[d] - first[d] + 1, 0), most)
    if total > 65536 * (1 + len(slide) // 64):
        return np.empty(0, np.int64), np.empty(0, np.int64), False
    definition, start = np.empty(total, np.int64), np.empty(total, np.int64)
    at = 0
    for d in range(len(slide)):
        for k in range(first[d], last[d] + 1):
            definition[at] = d
            start[at] = origin[d] + k * slide[d]
            at += 1
    return definition, start, True


@kernel
def ending_windows(
    origin: Ints, slide: Ints, size: Ints, since: Ints, occupied: Ints, after: int, upto: int
) -> tuple[Ints, Ints]:
    """Sliding windows with `after < end <= upto` that hold at least one occupied slice.

    Gives the index of the definition and the start of each window, sorted by definition and start. After
    a run of windows the walk jumps to the next occupied slice, so the cost follows the windows found and
    not the time that passed.
    """
    n, found = len(occupied), 0
    definition, start = np.empty(1024, np.int64), np.empty(1024, np.int64)
    for d in range(len(slide)):
        at = first_at_least(occupied, 0, n, since[d])
        # k numbers windows by start = origin + k*slide; the first one that may still be wanted
        k = np.int64(-9223372036854775807)
        if after > -9223372036854775807:
            k = (after - size[d] - origin[d]) // slide[d] + 1
        while at < n:
            row = occupied[at]
            k = max(k, (row - size[d] - origin[d]) // slide[d] + 1)
            last = (row - origin[d]) // slide[d]
            if upto < 9223372036854775807:
                last = min(last, (upto - size[d] - origin[d]) // slide[d])
            while k <= last:
                if found == len(start):
                    definition = np.concatenate((definition, np.empty(found, np.int64)))
                    start = np.concatenate((start, np.empty(found, np.int64)))
                definition[found] = d
                start[found] = origin[d] + k * slide[d]
                found += 1
                k += 1
            # windows below k are done: go on with the first slice that window k could hold
            wanted = origin[d] + k * slide[d]
            if upto < 9223372036854775807 and wanted + size[d] > upto:
                break
            at = first_at_least(occupied, at + 1, n, wanted)
    return definition[:found].copy(), start[:found].copy()


@kernel
def ranges_by_key(
    measure: Ints,
    heads: Ints,
    groups_from: Ints,
    groups_to: Ints,
    group_heads: Ints,
    low: Ints,
    high: Ints,
    rising: bool,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Every non-empty (key, window): the key's run, the window, and the rows `[from, to)` inside.

    Rows are sorted by key and measure; run i is `heads[i] .. heads[i+1]-1` and looks at the window
    groups `groups_from[i] .. groups_to[i]-1`. Within a group windows are sorted by `high`, and, if
    `rising`, by `low` too.
    """
    total = 0
    for i in range(len(heads) - 1):
        smallest, largest = measure[heads[i]], measure[heads[i + 1] - 1]
        for g in range(groups_from[i], groups_to[i]):
            a = first_at_least(high, group_heads[g], group_heads[g + 1], smallest + 1)
            b = group_heads[g + 1]
            if rising:
                b = first_at_least(low, a, b, largest + 1)
            total += b - a
    run, window = np.empty(total, np.int64), np.empty(total, np.int64)
    begin, end = np.empty(total, np.int64), np.empty(total, np.int64)
    n = 0
    for i in range(len(heads) - 1):
        smallest, largest = measure[heads[i]], measure[heads[i + 1] - 1]
        for g in range(groups_from[i], groups_to[i]):
            w = first_at_least(high, group_heads[g], group_heads[g + 1], smallest + 1)
            first, last = heads[i], heads[i]
            while w < group_heads[g + 1]:
                if low[w] > largest:
                    if rising:
                        break
                    w += 1
                    continue
                if not rising:
                    first = first_at_least(measure, heads[i], heads[i + 1], low[w])
                elif last > first and measure[last - 1] < low[w]:
                    # a window that follows the one before it begins where that one ended
                    first = _walk(measure, last, heads[i + 1], low[w])
                else:
                    first = _walk(measure, first, heads[i + 1], low[w])
                last = _walk(measure, last, heads[i + 1], high[w])
                if first < last:
                    run[n] = i
                    window[n] = w
                    begin[n] = first
                    end[n] = last
                    n += 1
                w += 1
    return run[:n].copy(), window[:n].copy(), begin[:n].copy(), end[:n].copy()


@kernel
def _walk(values: Ints, low: int, high: int, bound: int) -> int:
    """Like `first_at_least`, but looks nearby first: windows that follow one another end close together."""
    if low >= high or values[low] >= bound:
        return low
    step = 1
    while low + step < high and values[low + step] < bound:
        low += step
        step *= 2
    return first_at_least(values, low, min(low + step + 1, high), bound)


@kernel
def locate_ranges(
    measure: Ints, heads: Ints, key: Ints, wanted: Ints, low: Ints, high: Ints
) -> tuple[Ints, Ints]:
    """The rows `[from, to)` of each wanted (key, low, high); `key[i]` is the key of run i, sorted."""
    begin, end = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
    for i in range(len(wanted)):
        r = first_at_least(key, 0, len(key), wanted[i])
        if r < len(key) and key[r] == wanted[i]:
            begin[i] = first_at_least(measure, heads[r], heads[r + 1], low[i])
            end[i] = first_at_least(measure, begin[i], heads[r + 1], high[i])
    return begin, end
