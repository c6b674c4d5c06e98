"""Closing: which context-free windows the punctuation has just closed (or will close next)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windowpane.core.arrays import ALWAYS, NEVER, Ints
from windowpane.core.edges import ContextFree
from windowpane.core.extents import WindowList, for_all_keys, join
from windowpane.core.kernels import ranges as kernels
from windowpane.values.errors import TooManyWindows
from windowpane.values.windows import ContextFreeWindow, Cumulative, Landmark, Sliding

MOST_STEPS = 1 << 25
"""Windows of one definition that one step may close although nothing new lies in them."""
Entry = tuple[int, ContextFree, int]
"""A window with its number and the first measure value it looks at."""


@dataclass(frozen=True, slots=True)
class SlidingArrays:
    """Sliding windows as parallel arrays: a thousand of them are one call."""

    number: Ints
    size: Ints
    slide: Ints
    origin: Ints
    since: Ints


@dataclass(frozen=True)
class Definitions:
    """The context-free windows of one query, by number, each with the first measure value it looks at."""

    number: tuple[int, ...]
    windows: tuple[ContextFree, ...]
    since: tuple[int, ...]

    @cached_property
    def reach(self) -> int:
        """The longest look back of any window but landmarks, which are kept by other means."""
        lengths = [length_of(w) for w in self.windows]
        return max((length for length in lengths if length < ALWAYS), default=0)

    @cached_property
    def sliding(self) -> SlidingArrays:
        """The sliding windows, as arrays."""
        return sliding_arrays([e for e in self._entries if isinstance(e[1], Sliding)])

    @cached_property
    def others(self) -> list[Entry]:
        """The windows that are not sliding."""
        return [e for e in self._entries if not isinstance(e[1], Sliding)]

    @property
    def _entries(self) -> list[Entry]:
        return list(zip(self.number, self.windows, self.since, strict=True))


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


def ending(definitions: Definitions, occupied: Ints, after: int, upto: int, high: int = NEVER) -> WindowList:
    """All windows with `after < end <= upto` that hold an occupied slice (starts, sorted, each once).

    Landmarks have no last window: where all end, theirs is the first that has seen the time `high` too.
    """
    if len(occupied) == 0:
        return join([])
    # a landmark's merged past has no place in other windows
    placed = occupied[occupied > NEVER]
    lists = [_sliding(definitions.sliding, placed, after, upto)]
    for number, window, since in definitions.others:
        endless = isinstance(window, Landmark)
        seen = np.append(occupied, max(high, int(occupied[-1]))) if endless else placed
        seen = seen[seen >= since]
        if len(seen):
            lists.append(_others(number, window, seen, since, after, upto))
    return join([found for found in lists if len(found)])


def sliding_arrays(entries: Sequence[Entry]) -> SlidingArrays:
    """Sliding windows as parallel arrays."""
    windows = [(n, w, s) for n, w, s in entries if isinstance(w, Sliding)]
    columns = [(n, w.size, w.slide, w.origin, s) for n, w, s in windows]
    return SlidingArrays(*np.array(columns, np.int64).reshape(-1, 5).T.copy())


def _sliding(arrays: SlidingArrays, occupied: Ints, after: int, upto: int) -> WindowList:
    none = np.empty(0, np.int64)
    if len(occupied) == 0 or len(arrays.number) == 0:
        return for_all_keys(none, none, none)
    shape = (arrays.origin, arrays.slide, arrays.size)
    which, start, all_ = kernels.all_ending_windows(*shape, occupied[0], occupied[-1], after, upto)
    if not all_:
        # far apart: list only those windows that hold something
        which, start = kernels.ending_windows(*shape, arrays.since, occupied, after, upto)
    end = start + arrays.size[which]
    keys = np.full(len(which), -1, np.int64)
    return WindowList(arrays.number[which], np.maximum(start, arrays.since[which]), end, start, end, keys)


def _others(number: int, window: ContextFree, seen: Ints, since: int, after: int, upto: int) -> WindowList:
    match window:
        case Landmark(slide, start, origin):
            low = max(since, NEVER if start is None else start)
            found = seen[seen >= low]
            first = max(after, int(found[0]) if len(found) else upto)
            last = (
                min(upto, (int(seen[-1]) - origin) // slide * slide + slide + origin)
                if upto == ALWAYS
                else upto
            )
            ends = multiples(origin, slide, first, last) if len(found) else np.empty(0, np.int64)
            starts = np.full(len(ends), NEVER if start is None else start, np.int64)
        case Cumulative():
            starts, ends = _cumulative(window, seen, after, upto)
        case ContextFreeWindow():
            pairs = list(window.triggers(max(after, int(seen[0])), min(upto, int(seen[-1]) + window.longest)))
            starts = np.array([s for s, _ in pairs], np.int64)
            ends = np.array([e for _, e in pairs], np.int64)
        case Sliding():
            return _sliding(sliding_arrays([(number, window, since)]), seen, after, upto)
    low_edge = np.maximum(starts, since)
    return for_all_keys(np.full(len(ends), number, np.int64), low_edge, ends, starts)


def multiples(origin: int, slide: int, after: int, upto: int) -> Ints:
    """The values `origin + k*slide` in (after, upto]; an error if they are absurdly many."""
    first, last = (after - origin) // slide + 1, (upto - origin) // slide
    if last - first >= MOST_STEPS:
        raise TooManyWindows(
            f"the punctuation moved from {after} to {upto} at once, closing {last - first + 1:,} windows "
            f"of step {slide}, each with every key. Move it in smaller steps, or use a longer step."
        )
    if last < first:
        return np.empty(0, np.int64)
    return origin + np.arange(first, last + 1, dtype=np.int64) * slide


def _cumulative(window: Cumulative, seen: Ints, after: int, upto: int) -> tuple[Ints, Ints]:
    period, first = np.unique((seen - window.origin) // window.period, return_index=True)
    starts, ends = [], []
    for p, row in zip(period, seen[first], strict=True):
        begin = int(p) * window.period + window.origin
        found = multiples(begin, window.step, max(int(row), after), min(begin + window.period, upto))
        starts.append(np.full(len(found), begin, np.int64))
        ends.append(found)
    return np.concatenate(starts), np.concatenate(ends)
