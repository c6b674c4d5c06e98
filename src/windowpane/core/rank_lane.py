"""The rank lane: windows over tuple positions, by event-time rank or by arrival.

A settled tuple's rank is final, so that a window over ranks is a sliding window on another measure:
tuples wait until they are settled, get their rank, and are folded into slices between position edges.
A late tuple therefore never shifts tuples between slices that are kept; it only reorders the waiting
ones. Where answers are due before that (allowed lateness, early results), the waiting tuples are folded
into a view for the occasion, and every answer behind a late tuple is compared and revised.

Positions are counted per scope: the whole stream, or each value of the partition columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windowpane.core.arrays import ALWAYS, Bools, Ints, Tuples, no_tuples
from windowpane.core.edges import Edges, edges_of
from windowpane.core.emission import (
    Emission,
    Group,
    Moment,
    Standing,
    first_answers,
    identities,
    reconcile,
)
from windowpane.core.extents import Extents, WindowList, extents
from windowpane.core.fold import fold
from windowpane.core.kernels import ranks as kernels
from windowpane.core.ledger import Ledger, empty_ledger
from windowpane.core.ordered_lane import tuple_bytes
from windowpane.core.pending import Settling, settle
from windowpane.core.rows import Layout, Rows, no_rows
from windowpane.core.slices import SliceTable
from windowpane.values.windows import Rows as RowsWindow
from windowpane.values.windows import Sliding


@dataclass(frozen=True)
class RankSpec:
    """What a rank lane computes. `arrival` lanes count tuples as they come and need no order."""

    layout: Layout
    number: tuple[int, ...]
    windows: tuple[RowsWindow, ...]
    arrival: bool
    scoped: bool
    edges: Edges

    @property
    def longest(self) -> int:
        """The most positions a window looks back."""
        return max(window.size for window in self.windows)


def rank_spec(
    layout: Layout, number: tuple[int, ...], windows: tuple[RowsWindow, ...], *, scoped: bool
) -> RankSpec:
    """The edges, in positions, for these windows; all of them have the same order and partition."""
    edges = edges_of([Sliding(w.size, w.slide, -w.size) for w in windows])
    arrival = windows[0].order == "arrival"
    return RankSpec(layout, number, windows, arrival, scoped, edges)


@dataclass(frozen=True, slots=True)
class _View:
    """The table that answers are read from, and counts per scope.

    How many tuples the table holds, how many are below the punctuation, how many were settled before, and
    the position of the first that just arrived.
    """

    table: SliceTable
    total: Ints
    closed: Ints
    before: Ints
    least: Ints | None

    def touched(self, end: Ints, scope: Ints) -> Bools:
        """Which windows a new tuple lies in or has shifted."""
        return np.zeros(len(end), np.bool_) if self.least is None else end > self.least[scope]


@dataclass(frozen=True)
class RankLane:
    """Slices by position, tuples that wait, and per scope how many are settled and how many answered."""

    spec: RankSpec
    table: SliceTable
    pending: Tuples
    settled: Ints
    done: Ints
    ledger: Ledger

    def step(self, tuples: Tuples, group: Group, moment: Moment) -> tuple[RankLane, list[Emission]]:
        """Settle, answer the windows whose last position is known, forget the rest."""
        lane = self._grown(group.n_scopes)
        if self.spec.arrival:
            none = tuples.take(np.arange(0))
            s = Settling(tuples, none, np.ones(len(tuples), np.bool_), np.zeros(0, np.bool_))
        else:
            s = settle(lane.pending, tuples, moment.settled)
        table, settled = lane._insert(lane.table, lane.settled, s.settled, group)
        view = _View(table, settled, settled, lane.settled, None)
        if moment.lateness or moment.early:
            whole, total = lane._insert(table, settled, s.waiting, group)
            closed = settled + _per_scope(s.waiting.take(s.waiting.time < moment.bound), group)
            view = _View(whole, total, closed, lane.settled, _first_fresh(s, lane.settled, group))
        kept = replace(lane, table=table, settled=settled, pending=s.waiting)
        answered, answers = kept._answer(view, group, moment)
        return answered._forget(group), answers

    def _grown(self, n_scopes: int) -> RankLane:
        more = n_scopes - len(self.settled)
        if more <= 0:
            return self
        zeros = np.zeros(more, np.int64)
        return replace(
            self, settled=np.concatenate([self.settled, zeros]), done=np.concatenate([self.done, zeros])
        )

    def _insert(
        self, table: SliceTable, counts: Ints, tuples: Tuples, group: Group
    ) -> tuple[SliceTable, Ints]:
        if len(tuples) == 0:
            return table, counts
        counts = counts.copy()
        rank = kernels.number_tuples(group.scope(tuples.key), counts)
        rows = fold(
            self.spec.layout, tuples, rank, self.spec.edges, group.n_keys, rising=not self.spec.scoped
        )
        return table.insert(rows), counts

    def _answer(self, view: _View, group: Group, moment: Moment) -> tuple[RankLane, list[Emission]]:
        layout, lane = self.spec.layout, self
        drained = moment.bound == ALWAYS
        beyond = view.total + self.spec.longest - 1
        upto = beyond if drained else view.closed
        revise = moment.lateness > 0 and not self.spec.arrival
        listed = self._windows(view.before if revise else self.done, upto, view.total)
        table, pairs = self._extents(view.table, listed, group)
        if revise:
            windows = identities(listed, pairs)
            touched = view.touched(listed.high[pairs.window], group.scope(pairs.key))
            now = Standing(table, windows, pairs.low, pairs.high, touched, windows.end)
            answers, ledger = reconcile(layout, now, self.ledger)
            lane = replace(self, ledger=ledger)
        else:
            answers = [first_answers(layout, table, listed, pairs, final=True)]
        if moment.early and not drained:
            listed = self._windows(view.closed, beyond, view.total)
            table, pairs = self._extents(view.table, listed, group)
            pairs = pairs.take(view.touched(listed.high[pairs.window], group.scope(pairs.key)))
            answers.append(first_answers(layout, table, listed, pairs, final=False))
        return replace(lane, done=np.maximum(self.done, upto)), [a for a in answers if len(a)]

    def _windows(self, after: Ints, upto: Ints, total: Ints) -> WindowList:
        """The windows with `after < end <= upto` of every scope that hold a position below `total`."""
        changed = np.nonzero(upto > after)[0]
        size = np.array([window.size for window in self.spec.windows], np.int64)
        slide = np.array([window.slide for window in self.spec.windows], np.int64)
        last = np.minimum(upto[changed][:, None], total[changed][:, None] + size - 1) // slide
        first = after[changed][:, None] // slide + 1
        sizes = np.maximum(last - first + 1, 0).ravel()
        cell = np.repeat(np.arange(len(sizes)), sizes)
        which = cell % len(size)
        step = np.arange(len(cell)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        end = (first.ravel()[cell] + step) * slide[which]
        scope = changed[cell // len(size)] if self.spec.scoped else np.full(len(cell), -1, np.int64)
        start = end - size[which]
        definition = np.array(self.spec.number, np.int64)[which]
        # built scope by scope, definition by definition, with rising ends: sorted as a list must be
        return WindowList(definition, start, end, start, end, scope)

    def _extents(self, view: SliceTable, listed: WindowList, group: Group) -> tuple[Rows, Extents]:
        if len(listed) == 0:  # most small batches close none, and must not cost what the table costs
            return no_rows(self.spec.layout), extents(no_rows(self.spec.layout), listed)
        table = view.for_windows(np.sort(np.concatenate([listed.low, listed.high])), group.n_keys)
        return table, extents(table, listed, group.scope_of_key if self.spec.scoped else None)

    def _forget(self, group: Group) -> RankLane:
        """Drop slices that no window to come can hold; a scope at rest keeps its last positions."""
        horizon = np.minimum(self.settled, self.done) - self.spec.longest
        ledger = self.ledger
        if len(ledger):
            scope = group.scope(ledger.windows.key)
            ledger = ledger.select(ledger.closes > self.settled[scope])
        if group.scope_of_key is None:
            edge = int(self.spec.edges.floor(horizon[:1])[0])
            return replace(self, table=self.table.forget(edge, None), ledger=ledger)
        return replace(self, table=self._swept(horizon, group), ledger=ledger)

    def _swept(self, horizon: Ints, group: Group) -> SliceTable:
        """Scopes advance at their own pace, so stale rows are swept out once they could be the majority."""
        live = int(np.minimum(self.settled, 2 * self.spec.longest).sum())
        if len(self.table) <= 2 * live + 1024 or not self.table.segments:
            return self.table
        segments = []
        for segment in self.table.segments:
            edge = self.spec.edges.floor(horizon[group.scope(segment.rows.key)])
            rows = segment.rows.take(segment.rows.start >= edge)
            segments += [replace(segment, rows=rows)] if len(rows) else []
        return replace(self.table, segments=tuple(segments))

    @property
    def nbytes(self) -> int:
        """Memory held by slices, waiting tuples, counters and answers that may be revised."""
        counters = self.settled.nbytes + self.done.nbytes
        return self.table.nbytes + tuple_bytes(self.pending) + counters + self.ledger.nbytes


def _per_scope(tuples: Tuples, group: Group) -> Ints:
    return np.bincount(group.scope(tuples.key), minlength=group.n_scopes).astype(np.int64)


def _first_fresh(s: Settling, counts: Ints, group: Group) -> Ints:
    """Per scope the position of the first tuple that just arrived; ALWAYS where none did."""
    counts = counts.copy()
    least = np.full(len(counts), ALWAYS, np.int64)
    for tuples, fresh in ((s.settled, s.settled_fresh), (s.waiting, s.waiting_fresh)):
        scope = group.scope(tuples.key)
        rank = kernels.number_tuples(scope, counts)
        np.minimum.at(least, scope[fresh], rank[fresh])
    return least


def new_rank_lane(spec: RankSpec) -> RankLane:
    """A lane that has seen nothing."""
    none = np.zeros(0, np.int64)
    return RankLane(spec, SliceTable(spec.layout), no_tuples(), none, none, empty_ledger())
