"""The slice table: the partials of every non-empty slice of every key, in time order.

Rows are sorted by (start, key) and cut into segments of some thousand rows. New rows change only the
segments they fall into; a segment that no window needs any more is dropped whole. For a window that
spans a segment, the segment's roll-up (one row per key) stands for all its slices, so that the cost of
closing a window follows the segments it spans and not the slices.

Limits: the slices of one start stay together, so a segment may exceed `SEGMENT_ROWS` with many keys.
Partials without a constant bound (holistic) are not rolled up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from windowpane.core.arrays import Ints
from windowpane.core.rows import Layout, Rows, by_key, combined, merge, no_rows, roll_up, stack

SEGMENT_ROWS = 8192


@dataclass(frozen=True, eq=False)  # equal to itself only, so that what is derived from it can be remembered
class Segment:
    """A run of the table: all rows whose start lies from `rows.start[0]` to below the next segment's."""

    layout: Layout
    rows: Rows

    @property
    def low(self) -> int:
        """The smallest start."""
        return int(self.rows.start[0])

    @cached_property
    def starts(self) -> Ints:
        """The distinct starts."""
        start = self.rows.start
        first = np.concatenate([[True], start[1:] != start[:-1]])
        distinct: Ints = start[first]
        return distinct

    @cached_property
    def rolled(self) -> Rows:
        """One row per key for the whole segment, computed when a window first spans it."""
        return roll_up(self.layout, self.rows, int(self.rows.key.max()) + 1, self.low)


@dataclass(frozen=True)
class SliceTable:
    """All slices of a lane."""

    layout: Layout
    segments: tuple[Segment, ...] = ()

    def __len__(self) -> int:
        return sum(len(segment.rows) for segment in self.segments)

    @property
    def nbytes(self) -> int:
        """Memory held by rows (roll-ups come on top, at most one row per key and segment)."""
        return sum(segment.rows.nbytes for segment in self.segments)

    def occupied(self) -> Ints:
        """The distinct starts of all rows, sorted."""
        if not self.segments:
            return np.empty(0, np.int64)
        return np.concatenate([segment.starts for segment in self.segments])

    def insert(self, new: Rows) -> SliceTable:
        """Add rows sorted by (start, key); rows of a known slice and key combine with it."""
        if len(new) == 0:
            return self
        if not self.segments:
            return replace(self, segments=_cut(self.layout, new))
        lows = np.array([segment.low for segment in self.segments[1:]], np.int64)
        bounds = [0, *np.searchsorted(new.start, lows, side="left").tolist(), len(new)]
        segments: list[Segment] = []
        for segment, low, high in zip(self.segments, bounds[:-1], bounds[1:], strict=True):
            segments.extend(self._grown(segment, new.span(low, high)) if low < high else (segment,))
        return replace(self, segments=tuple(segments))

    def _grown(self, segment: Segment, new: Rows) -> tuple[Segment, ...]:
        if len(segment.rows) >= SEGMENT_ROWS and segment.rows.start[-1] < new.start[0]:
            return (segment, *_cut(self.layout, new))
        return _cut(self.layout, merge(self.layout, segment.rows, new))

    def for_windows(self, bounds: Ints, n_keys: int) -> Rows:
        """Rows sorted by (key, start) that answer every window whose ends are among the sorted `bounds`.

        A segment is given by its slices if a bound lies inside it, and by its roll-up otherwise.
        """
        parts: list[Rows] = []
        can_roll = all(partial.fixed for partial in self.layout)
        for segment in self.segments:
            inside = np.searchsorted(bounds, segment.rows.start[-1], side="right")
            whole = inside == 0 or bounds[inside - 1] <= segment.low
            worth = len(segment.starts) > 4
            parts.append(segment.rolled if whole and can_roll and worth else segment.rows)
        if not parts:
            return no_rows(self.layout)
        return by_key(stack(parts), n_keys)

    def forget(self, horizon: int, landmarks: Ints | None) -> SliceTable:
        """Drop the slices that end at or before `horizon`, an edge.

        If some windows reach back for ever, to `landmarks`, the slices are merged instead into one row
        per key and landmark, which keeps the landmark as its start.
        """
        old = [segment for segment in self.segments if segment.low < horizon]
        if not old:
            return self
        kept, edge = self.segments[len(old) :], old[-1].rows
        cut = int(np.searchsorted(edge.start, horizon, side="left"))
        if landmarks is not None:
            gone = stack([*(segment.rows for segment in old[:-1]), edge.span(0, cut)])
            if bool(np.isin(gone.start, landmarks).all()):
                return self
            base = _based(self.layout, gone, landmarks)
            head = (Segment(self.layout, base),) if len(base) else ()
        elif cut * 4 < len(edge):
            return replace(self, segments=(old[-1], *kept))
        else:
            head = ()
        rest = (Segment(self.layout, edge.span(cut, len(edge))),) if cut < len(edge) else ()
        return replace(self, segments=(*head, *rest, *kept))


def _based(layout: Layout, rows: Rows, landmarks: Ints) -> Rows:
    """One row for each key and landmark; rows below the first landmark are in no window."""
    at = np.searchsorted(landmarks, rows.start, side="right") - 1
    rows, at = rows.take(at >= 0), at[at >= 0]
    return combined(layout, Rows(landmarks[at], rows.key, rows.partials))


def _cut(layout: Layout, rows: Rows) -> tuple[Segment, ...]:
    """Segments of about SEGMENT_ROWS rows, cut only where a new start begins."""
    if len(rows) <= 2 * SEGMENT_ROWS:
        return (Segment(layout, rows),)
    heads = np.concatenate([[0], np.nonzero(rows.start[1:] != rows.start[:-1])[0] + 1])
    chosen = np.searchsorted(heads, np.arange(0, len(rows), SEGMENT_ROWS), side="left")
    marks = np.unique(np.append(heads[np.minimum(chosen, len(heads) - 1)], len(rows)))
    return tuple(Segment(layout, rows.span(int(a), int(b))) for a, b in pairwise(marks))
