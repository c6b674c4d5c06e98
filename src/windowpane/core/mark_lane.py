"""The marker lane: windows that marker tuples in the data open and close, per key.

Once tuples are settled the markers before them are known, so each tuple's window has a number: a context
free measure again. Only open windows keep state: one row and a few counters per key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windowpane.core.arrays import ALWAYS, NEVER, Bools, Ints, Tuples, no_tuples
from windowpane.core.emission import Emission, Group, Moment, Standing, reconcile
from windowpane.core.fold import fold_slices
from windowpane.core.kernels import ranks as kernels
from windowpane.core.ledger import Ledger, Windows, empty_ledger
from windowpane.core.ordered_lane import tuple_bytes
from windowpane.core.pending import settle
from windowpane.core.rows import Layout, Rows, by_key, key_order, no_rows, reduce_slices, stack
from windowpane.values.windows import Delimited


@dataclass(frozen=True, slots=True)
class Markers:
    """Per key: whether a window is open, its number, where it began, and its latest tuple."""

    is_open: Bools
    ordinal: Ints
    begin: Ints
    latest: Ints

    def grown(self, n_keys: int) -> Markers:
        """A copy with room for all keys."""
        more = max(0, n_keys - len(self.ordinal))
        return Markers(
            np.concatenate([self.is_open, np.zeros(more, np.bool_)]),
            np.concatenate([self.ordinal, np.zeros(more, np.int64)]),
            np.concatenate([self.begin, np.full(more, NEVER, np.int64)]),
            np.concatenate([self.latest, np.full(more, NEVER, np.int64)]),
        )


@dataclass(frozen=True, slots=True)
class _Followed:
    """Windows after following some tuples: rows sorted by (key, number), markers, and what closed."""

    rows: Rows
    markers: Markers
    closed: Windows
    number: Ints


@dataclass(frozen=True)
class MarkLane:
    """Rows of open windows, markers, waiting tuples, answers that may be revised."""

    layout: Layout
    definition: int
    window: Delimited
    rows: Rows
    markers: Markers
    pending: Tuples
    ledger: Ledger

    def step(self, tuples: Tuples, group: Group, moment: Moment) -> tuple[MarkLane, list[Emission]]:
        """Settle, answer the windows whose closing marker is below the punctuation."""
        s, n_keys = settle(self.pending, tuples, moment.settled), group.n_keys
        kept = self._follow(self.rows, self.markers.grown(n_keys), s.settled, n_keys)
        lane, answers = self, []
        if not (moment.lateness or moment.early):
            closed = _with_open(kept, self.definition) if moment.bound == ALWAYS else kept
            answers = [_answer(self.layout, closed, final=True)]
        else:
            lane, answers = self._revise(
                kept,
                s.waiting,
                s.arrived(),
                n_keys,
                moment,
            )
        rows = _without(kept.rows, kept.closed, kept.number)
        markers = kept.markers
        if moment.bound == ALWAYS:
            rows, markers = no_rows(self.layout), no_markers()
        ledger = lane.ledger.select(lane.ledger.closes > moment.settled) if len(lane.ledger) else lane.ledger
        after = replace(self, rows=rows, markers=markers, pending=s.waiting, ledger=ledger)
        return after, [a for a in answers if len(a)]

    def _follow(self, rows: Rows, markers: Markers, tuples: Tuples, n_keys: int) -> _Followed:
        """Fold tuples in event-time order into the windows they belong to."""
        order = key_order(tuples.key, n_keys)
        sorted_ = tuples if order is None else tuples.take(order)
        markers = Markers(
            markers.is_open.copy(), markers.ordinal.copy(), markers.begin.copy(), markers.latest.copy()
        )
        number, key, closed_number, start, end = kernels.follow_markers(
            sorted_.key,
            sorted_.time,
            _flag(sorted_, self.window.start),
            _flag(sorted_, self.window.end),
            self.window.start is not None,
            self.window.end is not None,
            markers.is_open,
            markers.ordinal,
            markers.begin,
            markers.latest,
        )
        inside = sorted_.take(number >= 0)
        numbers, back = np.unique(number[number >= 0], return_inverse=True)
        new = by_key(fold_slices(self.layout, inside, numbers, back.astype(np.int64), n_keys), n_keys)
        definition = np.full(len(key), self.definition, np.int64)
        return _Followed(
            _merged(self.layout, rows, new), markers, Windows(definition, key, start, end), closed_number
        )

    def _revise(
        self, kept: _Followed, waiting: Tuples, fresh: Tuples, n_keys: int, moment: Moment
    ) -> tuple[MarkLane, list[Emission]]:
        """Answers from a view that holds the waiting tuples too."""
        below = waiting.take(waiting.time < moment.bound)
        view = self._follow(kept.rows, kept.markers, below, n_keys)
        view = _with_settled(view, kept)
        current = _with_open(view, self.definition) if moment.bound == ALWAYS else view
        at = _rows_of(current)
        touched = _holds(current.closed, fresh)
        now = Standing(current.rows, current.closed, at, at + 1, touched, self._closes(current.closed))
        found, known = reconcile(self.layout, now, self.ledger)
        if moment.early and moment.bound < ALWAYS:
            whole = self._follow(view.rows, view.markers, waiting.take(waiting.time >= moment.bound), n_keys)
            early = _with_open(whole, self.definition)
            at = _rows_of(early)
            hit = _holds(early.closed, fresh)
            zeros = np.zeros(int(hit.sum()), np.int64)
            found = [
                *found,
                Emission(
                    self.layout, early.rows, early.closed.take(hit), at[hit], at[hit] + 1, zeros, final=False
                ),
            ]
        return replace(self, ledger=known), found

    def _closes(self, windows: Windows) -> Ints:
        """The bound that closes windows: just above the closing marker (a start marker stands at the end)."""
        return windows.end + 1 if self.window.end is None else windows.end

    @property
    def nbytes(self) -> int:
        """Memory held by open windows, markers, waiting tuples and answers that may be revised."""
        m = self.markers
        marks = m.is_open.nbytes + m.ordinal.nbytes + m.begin.nbytes + m.latest.nbytes
        return self.rows.nbytes + marks + tuple_bytes(self.pending) + self.ledger.nbytes


def _with_settled(view: _Followed, kept: _Followed) -> _Followed:
    """The view with the windows that were closed among the settled tuples listed too."""
    a, b = kept.closed, view.closed
    both = Windows(
        *(np.concatenate([getattr(a, n), getattr(b, n)]) for n in ("definition", "key", "start", "end"))
    )
    return _Followed(view.rows, view.markers, both, np.concatenate([kept.number, view.number]))


def _flag(tuples: Tuples, name: str | None) -> Bools:
    if name is None or len(tuples) == 0:
        return np.zeros(len(tuples), np.bool_)
    column = tuples.columns[name]
    flag: Bools = column.values != 0
    return flag if column.valid is None else flag & column.valid


def _merged(layout: Layout, old: Rows, new: Rows) -> Rows:
    """Rows of both, sorted by (key, number); the older tuples of a window come first."""
    both = stack([old, new])
    if len(both) == 0:
        return both
    return reduce_slices(layout, both.take(np.lexsort((both.start, both.key))))


def _find(rows: Rows, key: Ints, number: Ints) -> Ints:
    """The row of each window; rows are sorted by (key, number)."""
    at = np.full(len(key), -1, np.int64)
    order = np.lexsort(
        (
            np.concatenate([np.zeros(len(rows), np.int64), np.ones(len(key), np.int64)]),
            np.concatenate([rows.start, number]),
            np.concatenate([rows.key, key]),
        )
    )
    asked = order >= len(rows)
    before = np.maximum.accumulate(np.where(asked, -1, order))
    at[order[asked] - len(rows)] = before[asked]
    return at


def _rows_of(followed: _Followed) -> Ints:
    return _find(followed.rows, followed.closed.key, followed.number)


def _without(rows: Rows, closed: Windows, number: Ints) -> Rows:
    if len(closed) == 0:
        return rows
    keep = np.ones(len(rows), np.bool_)
    keep[_find(rows, closed.key, number)] = False
    return rows.take(keep)


def _with_open(followed: _Followed, definition: int) -> _Followed:
    """With the open windows listed too, as if they ended after their latest tuple."""
    m = followed.markers
    key = np.nonzero(m.is_open)[0].astype(np.int64)
    c = followed.closed
    both = Windows(
        np.concatenate([c.definition, np.full(len(key), definition, np.int64)]),
        np.concatenate([c.key, key]),
        np.concatenate([c.start, m.begin[key]]),
        np.concatenate([c.end, m.latest[key] + 1]),
    )
    return _Followed(followed.rows, m, both, np.concatenate([followed.number, m.ordinal[key]]))


def _holds(windows: Windows, fresh: Tuples) -> Bools:
    """Which windows hold a tuple that just arrived; the windows of a key do not overlap."""
    hit = np.zeros(len(windows), np.bool_)
    if len(windows) and len(fresh):
        order = np.lexsort((windows.start, windows.key))
        rows = Rows(windows.start[order], windows.key[order], ())
        at = _find(rows, fresh.key, fresh.time)
        right = at[(at >= 0)]
        mine = (rows.key[right] == fresh.key[at >= 0]) & (fresh.time[at >= 0] < windows.end[order][right])
        hit[order[right[mine]]] = True
    return hit


def _answer(layout: Layout, followed: _Followed, *, final: bool) -> Emission:
    at = _rows_of(followed)
    return Emission(layout, followed.rows, followed.closed, at, at + 1, np.zeros(len(at), np.int64), final)


def no_markers() -> Markers:
    """No key seen yet."""
    none = np.empty(0, np.int64)
    return Markers(np.empty(0, np.bool_), none, none, none)


def new_mark_lane(layout: Layout, definition: int, window: Delimited) -> MarkLane:
    """A lane that has seen nothing."""
    return MarkLane(layout, definition, window, no_rows(layout), no_markers(), no_tuples(), empty_ledger())
