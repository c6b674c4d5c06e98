"""Windows that count tuples: by rows, slide-by-tuple, and the last rows at each time.

Ids are those of one stream, or `(id, partition)` where `.per` splits the stream first: Li 2008 (WID
thesis), Eq. 5.4 to 5.6. The extent of a partitioned window holds tuples of its partition alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import TypeVar

from windowpane.values.semantics.base import Bounds, Meaning, WindowId
from windowpane.values.semantics.tuples import EMPTY, Stream, Tuple
from windowpane.values.windows import LastRows, PerRow, Rows

WHOLE = ()
"""The only partition of a stream that is not partitioned."""
C = TypeVar("C", Rows, PerRow, LastRows)


class Counted(Meaning[C]):
    """Counts within the partition of each tuple, or within the whole stream."""

    @cached_property
    def _parts(self) -> dict[Hashable, Stream]:
        if not self.window.partition:
            return {WHOLE: self.stream}
        return self.stream.split(lambda t: t.partition)

    def _part(self, t: Tuple) -> Hashable:
        return t.partition if self.window.partition else WHOLE

    def _wid(self, number: int, part: Hashable) -> WindowId:
        return (number, part) if self.window.partition else number

    def _apart(self, wid: WindowId) -> tuple[int, Stream]:
        """The number of a window and the stream it counts in."""
        number, part = wid if self.window.partition else (wid, WHOLE)
        return number, self._parts.get(part, EMPTY)


class RowsMeaning(Counted[Rows]):
    """Number w, from 0, is the window over positions `[(w+1)*slide - size, (w+1)*slide)`.

    As in the thesis, the first windows begin below position 0 and are partly filled.
    """

    def bounds(self, wid: WindowId) -> Bounds:
        """The range of positions, even where it begins below 0."""
        end = (self._apart(wid)[0] + 1) * self.window.slide
        return end - self.window.size, end

    def extent(self, wid: WindowId) -> tuple[Tuple, ...]:
        """Li 2008 (WID thesis), Eq. 5.5."""
        number, stream = self._apart(wid)
        end = (number + 1) * self.window.slide
        held = stream.by(self.window.order)[max(end - self.window.size, 0) : max(end, 0)]
        return tuple(sorted(held, key=lambda t: t.rank))

    def wids(self, t: Tuple) -> frozenset[WindowId]:
        """Li 2008 (WID thesis), Eq. 5.6."""
        part = self._part(t)
        stream = self._parts[part]
        position = stream.positions(self.window.order)[t.arrival]
        numbers = range(position // self.window.slide, (position + self.window.size) // self.window.slide)
        return frozenset(self._wid(number, part) for number in numbers)


class PerRowMeaning(Counted[PerRow]):
    """The id is the time t of every n-th tuple (positions n-1, 2n-1, ...); the window is `(t - size, t]`.

    Ids are a set: tuples of one time stand for one window.
    """

    def windows(self) -> frozenset[WindowId]:
        """Li 2008 (WID thesis), Eq. 5.13 (by arrival) and 5.16 (by rank); with n = 1 Eq. 5.10."""
        return frozenset(self._wid(time, part) for part, times in self._ends.items() for time in times)

    @cached_property
    def _ends(self) -> dict[Hashable, set[int]]:
        every = self.window.every
        return {
            part: {t.time for t in stream.by(self.window.order)[every - 1 :: every]}
            for part, stream in self._parts.items()
        }

    def bounds(self, wid: WindowId) -> Bounds:
        """Start and end as written in `(start, end]`."""
        end, _ = self._apart(wid)
        return end - self.window.size, end

    def extent(self, wid: WindowId) -> tuple[Tuple, ...]:
        """Li 2008 (WID thesis), Eq. 5.11, 5.14 and 5.17."""
        end, stream = self._apart(wid)
        return stream.between(end - self.window.size + 1, end + 1)

    def wids(self, t: Tuple) -> frozenset[WindowId]:
        """Li 2008 (WID thesis), Eq. 5.12, 5.15 and 5.18."""
        part = self._part(t)
        ends = (end for end in self._ends[part] if t.time <= end < t.time + self.window.size)
        return frozenset(self._wid(end, part) for end in ends)


class LastRowsMeaning(Counted[LastRows]):
    """Number k holds, at time `origin + k*every`, the last `size` tuples below that time by rank.

    The ids end at the same time for all partitions: the stream's progress announces it, not theirs.
    """

    def _at(self, number: int) -> int:
        return self.window.origin + number * self.window.every

    def _number(self, time: int) -> int:
        """The last number at or before this time."""
        return (time - self.window.origin) // self.window.every

    def bounds(self, wid: WindowId) -> Bounds:
        """From the time of the oldest tuple held (None if there is none) to the time of the report."""
        held = self.extent(wid)
        return held[0].time if held else None, self._at(self._apart(wid)[0])

    def extent(self, wid: WindowId) -> tuple[Tuple, ...]:
        """The end of the ordered tuples below the time of the report."""
        number, stream = self._apart(wid)
        return stream.between(None, self._at(number))[-self.window.size :]

    def wids(self, t: Tuple) -> frozenset[WindowId]:
        """A tuple is held from the first report after it until the tuple `size` ranks on pushes it out."""
        part = self._part(t)
        stream = self._parts[part]
        out = stream.positions("time")[t.arrival] + self.window.size
        last = self._number(stream.ordered[out].time) if out < len(stream.tuples) else self._last()
        return frozenset(self._wid(number, part) for number in range(self._number(t.time) + 1, last + 1))

    def _last(self) -> int:
        last = self._number(self.stream.ordered[-1].time) + 1
        return last if self.upto is None else max(last, self._number(self.upto))
