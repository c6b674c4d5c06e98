"""Closing: which context-free windows the punctuation has just closed (or will close next)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import ALWAYS, NEVER, Ints
from windowpane.core.edges import ContextFree
from windowpane.core.extents import WindowList, for_all_keys, join
from windowpane.core.kernels import ranges as kernels
from windowpane.values.windows import ContextFreeWindow, Cumulative, Landmark, Sliding


@dataclass(frozen=True)
class Definitions:
    """The context-free windows of one query, by number, each with the first measure value it looks at."""

    number: tuple[int, ...]
    windows: tuple[ContextFree, ...]
    since: tuple[int, ...]

    def reach(self) -> int:
        """The longest look back of any window; ALWAYS for a landmark, which must be kept by other means."""
        return max((length_of(w) for w in self.windows), default=0)


def length_of(window: ContextFree) -> int:
    """How far behind its end a window can reach."""
    match window:
        case Sliding(size):
            return size
        case Cumulative(_, period):
            return period
        case Landmark():
            return int(ALWAYS)
        case ContextFreeWindow():
            return window.longest


def ending(definitions: Definitions, occupied: Ints, after: int, upto: int) -> WindowList:
    """All windows with `after < end <= upto` that hold an occupied slice (starts, sorted, each once)."""
    if len(occupied) == 0:
        return join([])
    # a landmark's merged past has no place among sliding windows
    lists = [_sliding(definitions, occupied[occupied > NEVER], after, upto)]
    for number, window, since in zip(definitions.number, definitions.windows, definitions.since, strict=True):
        seen = occupied[occupied >= since]
        if not isinstance(window, Sliding) and len(seen):
            lists.append(_others(number, window, seen, since, after, upto))
    return join([found for found in lists if len(found)])


def _sliding(definitions: Definitions, occupied: Ints, after: int, upto: int) -> WindowList:
    chosen = [
        (n, w, s)
        for n, w, s in zip(definitions.number, definitions.windows, definitions.since, strict=True)
        if isinstance(w, Sliding)
    ]
    return _sliding_list(tuple(chosen), occupied, after, upto)


def _sliding_list(
    chosen: Sequence[tuple[int, Sliding, int]], occupied: Ints, after: int, upto: int
) -> WindowList:
    number = np.array([n for n, _, _ in chosen], np.int64)
    size = np.array([w.size for _, w, _ in chosen], np.int64)
    slide = np.array([w.slide for _, w, _ in chosen], np.int64)
    origin = np.array([w.origin for _, w, _ in chosen], np.int64)
    since = np.array([s for _, _, s in chosen], np.int64)
    which, start = kernels.ending_windows(origin, slide, size, since, occupied, after, upto)
    end = start + size[which]
    none = np.full(len(which), -1, np.int64)
    return WindowList(number[which], np.maximum(start, since[which]), end, start, end, none)


def _others(number: int, window: ContextFree, seen: Ints, since: int, after: int, upto: int) -> WindowList:
    match window:
        case Landmark(slide, start, origin):
            low = max(since, NEVER if start is None else start)
            found = seen[seen >= low]
            first = max(after, int(found[0]) if len(found) else upto)
            last = min(upto, (int(seen[-1]) - origin) // slide * slide + slide + origin) if upto == ALWAYS else upto
            ends = _multiples(origin, slide, first, last) if len(found) else np.empty(0, np.int64)
            starts = np.full(len(ends), NEVER if start is None else start, np.int64)
        case Cumulative():
            starts, ends = _cumulative(window, seen, after, upto)
        case ContextFreeWindow():
            pairs = list(window.triggers(max(after, int(seen[0])), min(upto, int(seen[-1]) + window.longest)))
            starts = np.array([s for s, _ in pairs], np.int64)
            ends = np.array([e for _, e in pairs], np.int64)
        case Sliding():
            return _sliding_list([(number, window, since)], seen, after, upto)
    low_edge = np.maximum(starts, since)
    return for_all_keys(np.full(len(ends), number, np.int64), low_edge, ends, starts)


def _multiples(origin: int, slide: int, after: int, upto: int) -> Ints:
    first, last = (after - origin) // slide + 1, (upto - origin) // slide
    return origin + np.arange(first, last + 1, dtype=np.int64) * slide


def _cumulative(window: Cumulative, seen: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
    period, first = np.unique((seen - window.origin) // window.period, return_index=True)
    starts, ends = [], []
    for p, row in zip(period, seen[first], strict=True):
        begin = int(p) * window.period + window.origin
        found = _multiples(begin, window.step, max(int(row), after), min(begin + window.period, upto))
        starts.append(np.full(len(found), begin, np.int64))
        ends.append(found)
    return np.concatenate(starts), np.concatenate(ends)
