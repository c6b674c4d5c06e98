"""A lane over a store: windows that slide over the same rows, each with a cursor and sums of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np

from windowpane.core.arrays import NEVER, Ints, Tuples
from windowpane.core.closing import MOST_STEPS
from windowpane.core.kernels.rolling import Small
from windowpane.core.spill.feed import Answers
from windowpane.core.spill.rolling import Found, Rolling
from windowpane.core.spill.shapes import TIME, OpenSlices, Shape, SliceShape
from windowpane.core.spill.store import BlockStore, Columns
from windowpane.values.errors import TooManyWindows

_MOST_ANSWERS = 1 << 20
"""Answers of one call of the kernel, about: more only use more memory."""
_FEW_ARRIVALS, _MOST_ARRIVALS = 1 << 12, 1 << 14
_MOST_EXPIRED = 1 << 14
"""Rows that leave a window in one call of the kernel, about."""
_MOST_VALUES = 1 << 20
"""Values that answers hold before they are given out, about: each has all those of its window."""
_VALUES_PER_ROW = 8
"""A call that reads all values of a window slides over at least one row for so many."""


@dataclass(frozen=True)
class Span:
    """What a window is: `[end - size, end)` at every slide, or `(t - size, t]` at every tuple (slide 0).

    `own`: a tuple's window is answered for the tuple's key only. Rows before `since` are none of its.
    `values`: one that slides by tuple keeps values; others do it if any query with their grouping wants it.
    """

    size: int
    slide: int
    origin: int = 0
    own: bool = False
    since: int = NEVER
    values: bool = False


@dataclass
class Slider:
    """A window at work: its place in the store, its sums by grouping, the last row it got."""

    span: Span
    window: int
    sums: dict[int, Rolling]
    last: int | None = None

    @property
    def n_values(self) -> int:
        """Values that every call reads, because the window slides by tuple and keeps them."""
        return sum(s.values.size for s in self.sums.values() if s.by_tuple and s.values is not None)


@dataclass(frozen=True)
class Answered:
    """Answers of one window and grouping: keys, the ends and starts of windows, sums."""

    span: Span
    grouping: int
    key: Small
    start: Ints
    end: Ints
    answers: Answers


@dataclass(frozen=True)
class Appended:
    """Rows that are in the store now, what waits beside it, and the points of each window, if known."""

    columns: Columns
    waiting: OpenSlices
    points: tuple[tuple[Ints, Ints], ...] | None = None


@dataclass
class Lane:
    """Windows over one store."""

    shape: Shape
    store: BlockStore
    sliders: list[Slider] = field(default_factory=list)

    def add(self, span: Span, groupings: Sequence[int]) -> None:
        """A window for these groupings; what is there of it, is shared."""
        sums = {g: self.rolling(span, g) for g in groupings}
        for slider in self.sliders:
            if slider.span == span:
                # a span that begins now has seen nothing, so that sums which are new to it miss nothing
                slider.sums |= {g: each for g, each in sums.items() if g not in slider.sums}
                return
        self.sliders.append(Slider(span, self.store.add_window(), sums))
        # the smallest goes first, so that the largest is the one that purges
        self.sliders.sort(key=lambda slider: slider.span.size)

    def keep(self, wanted: AbstractSet[tuple[Span, int]]) -> None:
        """Forget all windows but these, each for a grouping."""
        for slider in list(self.sliders):
            slider.sums = {g: sums for g, sums in slider.sums.items() if (slider.span, g) in wanted}
            if not slider.sums:
                self.store.remove_window(slider.window)
                self.sliders.remove(slider)

    def rolling(self, span: Span, grouping: int) -> Rolling:
        """Sums that have seen nothing."""
        feed, target = self.shape.feeds[grouping], self.shape.target(grouping)
        by_tuple = span.slide == 0
        return Rolling(feed, target, own=span.own, by_tuple=by_tuple, values=span.values or not by_tuple)

    def sums_of(self, grouping: int) -> list[Rolling]:
        """The sums for a grouping of the operator; a lane of slices has those of one only."""
        local = grouping
        if isinstance(self.shape, SliceShape):
            if self.shape.grouping != grouping:
                return []
            local = 0
        return [slider.sums[local] for slider in self.sliders if local in slider.sums]

    def values_of(self, column: str) -> Iterator[Ints]:
        """The values of a column in each window that keeps them, by key and sorted: some more than once."""
        for slider in self.sliders:
            for sums in slider.sums.values():
                if sums.values is not None and column in sums.feed.values:
                    yield sums.values.columns[sums.feed.values.index(column)].values

    @property
    def open_slices(self) -> OpenSlices:
        """Slices that wait for the punctuation."""
        return self.shape.open if isinstance(self.shape, SliceShape) else ()

    def append(self, tuples: Tuples, bound: int, before: int | None = None) -> Appended:
        """Put settled tuples into the store: all or nothing. Then `roll` must follow.

        With `before`, where the punctuation was, too many windows for one step are refused here too.
        """
        columns, waiting = self.shape.take(tuples, bound)
        found = None if before is None else self._points(columns, before, bound)
        self.store.append(columns)
        return Appended(columns, waiting, found)

    def roll(self, appended: Appended, before: int, bound: int) -> Iterator[Answered]:
        """Slide every window over what was appended, and up to `bound`; to be taken to its end."""
        self.shape.keep(appended.waiting)
        wanted = appended.points or self._points(appended.columns, before, bound)
        for slider, (high, low) in zip(self.sliders, wanted, strict=True):
            skip = int(np.searchsorted(appended.columns[_TIME_AT], slider.span.since))
            columns = tuple(column[skip:] for column in appended.columns) if skip else appended.columns
            yield from self._slide(slider, columns, high, low)

    def _points(self, columns: Columns, before: int, bound: int) -> tuple[tuple[Ints, Ints], ...]:
        return tuple(
            points(slider.span, slider.last, columns[_TIME_AT], before, bound) for slider in self.sliders
        )

    def _slide(self, slider: Slider, columns: Columns, high: Ints, low: Ints) -> Iterator[Answered]:
        """In pieces that stay in the processor's cache: whole batches would cost twice as much.

        Where values are kept, the points come one by one, so that after each they are those of its window;
        if it slides by tuple, many at once, and the answers of each call are given out with it.
        """
        span = slider.span
        time = columns[_TIME_AT]
        if len(time):
            slider.last = int(time[-1])
        room = len(time) if span.own and not span.values else 0
        found = {g: Found(sums.feed, room) for g, sums in slider.sums.items()}
        most = len(high) if span.own else self._most_points(slider, columns)
        a = p = 0
        while p < len(high):
            until = min(len(high), p + most)
            at_once = self._at_once(slider)
            if a + at_once < len(time):
                until = max(p + 1, min(until, int(np.searchsorted(high, time[a + at_once], "right"))))
            gone, last = self._expired(slider, int(low[until - 1]))
            edge = int(high[until - 1])
            if last is not None:
                # more is to be taken out first for the points after these
                until = max(p, min(until, int(np.searchsorted(low, last, side="right"))))
                edge = max(last + 1, int(high[until - 1]) if until > p else NEVER)
            end = max(a, int(np.searchsorted(time, edge)))
            if not span.own:
                a = self._add(slider, columns, a, end - at_once)
            arrived = self.shape.flows(tuple(column[a:end] for column in columns), slider.sums)
            taken = self.shape.flows(gone, slider.sums)
            for g, sums in slider.sums.items():
                sums.slide(arrived[g], taken[g], high[p:until], low[p:until], found[g])
                if found[g].replays or found[g].n_values > _MOST_VALUES:
                    yield _answered(span, g, found[g])
                    found[g] = Found(sums.feed, 0)
            a, p = end, until
        self._add(slider, columns, a, len(time))
        for g, each in found.items():
            if each.n:
                yield _answered(span, g, each)

    def _most_points(self, slider: Slider, columns: Columns) -> int:
        """Points of one call, so that the answers for all keys stay few; one where values are kept."""
        if slider.span.slide and any(sums.values is not None for sums in slider.sums.values()):
            return 1
        rows = len(columns[0])
        keys = [
            sums.most_active(int(self.shape.keys(columns, g).max(initial=-1)) + 1, rows)
            for g, sums in slider.sums.items()
        ]
        return max(1, _MOST_ANSWERS // max(1, *keys))

    def _add(self, slider: Slider, columns: Columns, a: int, upto: int) -> int:
        """Add the rows from `a` to `upto`, if any; where it ended."""
        none = np.empty(0, np.int64)
        while a < upto:
            end = min(upto, a + self._at_once(slider))
            flows = self.shape.flows(tuple(column[a:end] for column in columns), slider.sums)
            for g, sums in slider.sums.items():
                sums.slide(flows[g], flows[g].part(0, 0), none, none, Found(sums.feed, 0))
            a = end
        return a

    def _at_once(self, slider: Slider) -> int:
        """Arrivals of one call: each sets room aside for itself where extremes are asked for."""
        few = _FEW_ARRIVALS if any(feed.extremes for feed in self.shape.feeds) else _MOST_ARRIVALS
        return max(few, slider.n_values // _VALUES_PER_ROW)

    def _expired(self, slider: Slider, below: int) -> tuple[Columns, int | None]:
        """Rows before a time, taken out of the window; and the time of the last, unless these are all."""
        parts: list[Columns] = []
        rows = 0
        last: int | None = int(NEVER)
        most = max(_MOST_EXPIRED, slider.n_values // _VALUES_PER_ROW)
        while rows < most and last is not None:
            view = self.store.oldest(slider.window)
            n = int(np.searchsorted(view[_TIME_AT], below))
            last = None if n < len(view[_TIME_AT]) or n == 0 else int(view[_TIME_AT][-1])
            skip = min(n, int(np.searchsorted(view[_TIME_AT], slider.span.since)))
            parts.append(tuple(column[skip:n].copy() for column in view))
            self.store.release(slider.window, n)
            rows += n
        if len(parts) == 1:
            return parts[0], last
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True)), last

    @property
    def nbytes(self) -> int:
        """Memory of the sums and of what waits; the store's blocks are not counted."""
        return self.shape.nbytes + sum(s.nbytes for slider in self.sliders for s in slider.sums.values())


_TIME_AT = 0
"""Blocks begin with the times: they are of the widest type, and named first."""
assert TIME == "$time"


def points(span: Span, last: int | None, time: Ints, before: int, bound: int) -> tuple[Ints, Ints]:
    """The windows that can be answered now and hold a row, as rows `[low, high)`, in order.

    `last` is the time of the row before these, all of which are below `bound`; windows that end by `before`
    were answered already.
    """
    time = time[np.searchsorted(time, span.since) :]
    seen = time if len(time) < 2 else time[np.append(True, time[1:] != time[:-1])]
    if span.slide == 0:
        return seen + 1, seen + 1 - span.size
    if last is not None and (len(seen) == 0 or seen[0] != last):
        seen = np.concatenate([[last], seen])
    none = np.empty(0, np.int64)
    if len(seen) == 0 or bound == NEVER:
        return none, none
    # after each row, as long as a window still reaches back to it and until the next row comes
    upto = np.minimum(np.append(seen[1:], bound), seen + span.size)
    after = np.maximum(seen, before)
    base = span.origin + span.size
    first, final = (after - base) // span.slide + 1, (upto - base) // span.slide
    sizes = np.maximum(final - first + 1, 0)
    total = int(sizes.sum())
    if total > MOST_STEPS:
        raise TooManyWindows(
            f"the punctuation moved from {before} to {bound} at once, closing {total:,} windows of slide "
            f"{span.slide}. Move it in smaller steps, or use a longer slide."
        )
    starts = np.repeat(first - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    ends = (starts + np.arange(total)) * span.slide + base
    return ends, ends - span.size


def _answered(span: Span, grouping: int, found: Found) -> Answered:
    end = found.end - 1 if span.slide == 0 else found.end
    return Answered(span, grouping, found.key, end - span.size, end, found.answers)
