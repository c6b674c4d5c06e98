"""Windows that the tuples of one key cut themselves: sessions, delimited windows, a user's own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np

from windowpane.values.semantics.base import Bounds, Meaning, W, WindowId
from windowpane.values.semantics.tuples import Stream, Tuple
from windowpane.values.windows import ContextAwareWindow, Delimited, Session


@dataclass(frozen=True, slots=True)
class Cut:
    """One window of one key: it holds the key's tuples with `low <= time < high`.

    `start` and `end` are what a result reports. `closing` is the time of the marker that closed a
    delimited window, None while it is open.
    """

    low: int | None
    high: int
    start: int | None
    end: int
    closing: int | None = None


class PerKey(Meaning[W]):
    """Finds all windows of each key first; `wids` searches them, for no formula can."""

    @property
    @abstractmethod
    def cuts(self) -> dict[WindowId, tuple[Hashable, Cut]]:
        """Every window by its id; each holds a tuple."""

    def windows(self) -> frozenset[WindowId]:
        """The ids of all that were found."""
        return frozenset(self.cuts)

    @cached_property
    def _keys(self) -> dict[Hashable, Stream]:
        return self.stream.split(lambda t: t.key)

    def bounds(self, wid: WindowId) -> Bounds:
        """As found."""
        cut = self.cuts[wid][1]
        return cut.start, cut.end

    def extent(self, wid: WindowId) -> tuple[Tuple, ...]:
        """The key's tuples within the cut."""
        key, cut = self.cuts[wid]
        return self._keys[key].between(cut.low, cut.high)

    def wids(self, t: Tuple) -> frozenset[WindowId]:
        """The windows of the tuple's key whose range its time lies in."""
        return frozenset(
            wid
            for wid, (key, cut) in self.cuts.items()
            if key == t.key and (cut.low is None or cut.low <= t.time) and t.time < cut.high
        )


class SessionMeaning(PerKey[Session]):
    """The id is `(key, first time)`; a session is reported as `[first, last + gap)`."""

    @cached_property
    def cuts(self) -> dict[WindowId, tuple[Hashable, Cut]]:
        """Neighbours more than the gap apart belong to different sessions."""
        found: dict[WindowId, tuple[Hashable, Cut]] = {}
        for key, stream in self._keys.items():
            times = [t.time for t in stream.ordered]
            breaks = [i for i, (a, b) in enumerate(pairwise(times), 1) if b - a > self.window.gap]
            for low, high in pairwise([0, *breaks, len(times)]):
                first, last = times[low], times[high - 1]
                found[key, first] = (key, Cut(first, last + 1, first, last + self.window.gap))
        return found


class DelimitedMeaning(PerKey[Delimited]):
    """The id is `(key, start, ordinal of the window in its key)`.

    Markers of one time act together, starts before ends. A window without a closing marker is open
    and ends, until it is closed, just after the last tuple of its key.
    """

    @cached_property
    def cuts(self) -> dict[WindowId, tuple[Hashable, Cut]]:
        """The windows of each key in turn."""
        return {
            (key, cut.start, ordinal): (key, cut)
            for key, stream in self._keys.items()
            for ordinal, cut in enumerate(self._of(stream.ordered))
        }

    def _of(self, ordered: Sequence[Tuple]) -> Iterator[Cut]:
        starts = _marked(ordered, self.window.start)
        ends = _marked(ordered, self.window.end)
        beyond = ordered[-1].time + 1
        if self.window.end is None:
            return _by_starts(starts, beyond)
        if self.window.start is None:
            return _by_ends(ends, beyond)
        return _by_both(starts, ends, beyond)


def _marked(ordered: Sequence[Tuple], column: str | None) -> list[int]:
    """The distinct times of the tuples that this column marks, rising; a null does not mark."""
    if column is None:
        return []
    at_once = groupby(ordered, lambda t: t.time)
    return [time for time, group in at_once if any(t.marks.get(column) for t in group)]


def _by_starts(starts: list[int], beyond: int) -> Iterator[Cut]:
    for start, following in pairwise(starts):
        yield Cut(start, following, start, following, closing=following)
    if starts:
        yield Cut(starts[-1], beyond, starts[-1], beyond)


def _by_ends(ends: list[int], beyond: int) -> Iterator[Cut]:
    low: int | None = None
    for end in ends:
        yield Cut(low, end + 1, low, end + 1, closing=end)
        low = end + 1
    if low is None or low < beyond:
        yield Cut(low, beyond, low, beyond)


def _by_both(starts: list[int], ends: list[int], beyond: int) -> Iterator[Cut]:
    free = None
    for start in starts:
        if free is not None and start < free:
            continue
        closing = next((end for end in ends if end >= start), None)
        free = beyond if closing is None else closing + 1
        yield Cut(start, free, start, free, closing)


class ContextAwareMeaning(PerKey[ContextAwareWindow]):
    """The id is `(key, start, end)`; windows that hold no tuple of their key are left out."""

    @cached_property
    def cuts(self) -> dict[WindowId, tuple[Hashable, Cut]]:
        """One call for all keys, sorted by (key, time), as the engine makes it."""
        keys, streams = list(self._keys), list(self._keys.values())
        ordered = [t for stream in streams for t in stream.ordered]
        if not ordered:
            return {}
        found = self.window.windows(
            np.repeat(np.arange(len(keys), dtype=np.int64), [len(s.tuples) for s in streams]),
            np.array([t.time for t in ordered], np.int64),
            {name: np.asarray([t.marks[name] for t in ordered]) for name in self.window.columns},
        )
        rows = ((int(k), int(start), int(end)) for k, start, end in zip(*found, strict=True))
        return {
            (keys[k], start, end): (keys[k], Cut(start, end, start, end))
            for k, start, end in rows
            if streams[k].between(start, end)
        }
