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
from windowpane.core.emission import Emission, Moment, first_answers, identities, reconcile
from windowpane.core.extents import Extents, WindowList, extents
from windowpane.core.fold import fold
from windowpane.core.kernels import ranks as kernels
from windowpane.core.ledger import Ledger, empty_ledger
from windowpane.core.ordered_lane import tuple_bytes
from windowpane.core.pending import settle
from windowpane.core.rows import Layout, Rows
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


@dataclass(frozen=True)
class RankLane:
    """Slices by position, tuples that wait, and per scope how many are settled and how many answered."""

    spec: RankSpec
    table: SliceTable
    pending: Tuples
    settled: Ints
    done: Ints
    ledger: Ledger

    def step(
        self, tuples: Tuples, n_keys: int, scope_of_key: Ints | None, moment: Moment
    ) -> tuple[RankLane, list[Emission]]:
        """Settle, answer the windows whose last position is known, forget the rest."""
        n_scopes = 1 if scope_of_key is None else int(scope_of_key.max(initial=-1)) + 1
        lane = self._grown(n_scopes)
        bound = ALWAYS if self.spec.arrival else moment.settled
        s = settle(lane.pending, tuples, bound) if not self.spec.arrival else None
        ready = tuples if s is None else s.settled
        before = lane.settled
        table, settled = lane._insert(lane.table, lane.settled, ready, n_keys, scope_of_key)
        kept = replace(lane, table=table, settled=settled, pending=no_tuples() if s is None else s.waiting)
        if s is None or not (moment.lateness or moment.early):
            view, total, closed, least = table, settled, settled, None
        else:
            view, total = lane._insert(table, settled, s.waiting, n_keys, scope_of_key)
            closed = settled + _per_scope(s.waiting.take(s.waiting.time < moment.bound), n_scopes, scope_of_key)
            least = _first_fresh(s.settled_fresh, s.settled, s.waiting_fresh, s.waiting, before, scope_of_key)
        drained = moment.bound == ALWAYS
        answered, answers = kept._answer(view, total, closed, before, least, n_keys, scope_of_key, moment, drained)
        return answered._forget(scope_of_key), answers

    def _grown(self, n_scopes: int) -> RankLane:
        more = n_scopes - len(self.settled)
        if more <= 0:
            return self
        zeros = np.zeros(more, np.int64)
        return replace(
            self, settled=np.concatenate([self.settled, zeros]), done=np.concatenate([self.done, zeros])
        )

    def _insert(
        self, table: SliceTable, counts: Ints, tuples: Tuples, n_keys: int, scope_of_key: Ints | None
    ) -> tuple[SliceTable, Ints]:
        if len(tuples) == 0:
            return table, counts
        counts = counts.copy()
        scope = np.zeros(len(tuples), np.int64) if scope_of_key is None else scope_of_key[tuples.key]
        rank = kernels.number_tuples(scope, counts)
        return table.insert(fold(self.spec.layout, tuples, rank, self.spec.edges, n_keys)), counts

    def _answer(  # noqa: PLR0913 - one call, and every argument is a different array
        self,
        view: SliceTable,
        total: Ints,
        closed: Ints,
        before: Ints,
        least: Ints | None,
        n_keys: int,
        scope_of_key: Ints | None,
        moment: Moment,
        drained: bool,  # noqa: FBT001
    ) -> tuple[RankLane, list[Emission]]:
        layout, lane = self.spec.layout, self
        answers: list[Emission] = []
        upto = total + self.spec.longest - 1 if drained else closed
        if moment.lateness and least is not None:
            listed = self._windows(before, upto, total)
            table, pairs = self._extents(view, listed, n_keys, scope_of_key)
            touched = listed.high[pairs.window] > least[_scopes(pairs, scope_of_key)]
            found, known = reconcile(
                layout, table, identities(listed, pairs), (pairs.low, pairs.high), touched, self.ledger
            )
            for e in found:
                known = known.record(e.windows, e.revision, e.windows.end) if e.revision[0] >= 0 else known
            answers, lane = found, replace(self, ledger=known)
        else:
            listed = self._windows(self.done, upto, total)
            table, pairs = self._extents(view, listed, n_keys, scope_of_key)
            answers = [first_answers(layout, table, listed, pairs, final=True)]
        if moment.early and not drained:
            open_ = self._windows(closed, total + self.spec.longest - 1, total)
            table, pairs = self._extents(view, open_, n_keys, scope_of_key)
            if least is not None:
                pairs = pairs.take(open_.high[pairs.window] > least[_scopes(pairs, scope_of_key)])
            answers.append(first_answers(layout, table, open_, pairs, final=False))
        return replace(lane, done=np.maximum(self.done, upto)), [a for a in answers if len(a)]

    def _windows(self, after: Ints, upto: Ints, total: Ints) -> WindowList:
        """The windows with `after < end <= upto` of every scope that hold a position below `total`."""
        parts: list[tuple[Ints, Ints, Ints, Ints]] = []
        changed = np.nonzero(upto > after)[0]
        for number, window in zip(self.spec.number, self.spec.windows, strict=True):
            last = np.minimum(upto[changed], total[changed] + window.size - 1) // window.slide
            first = after[changed] // window.slide + 1
            sizes = np.maximum(last - first + 1, 0)
            scope = np.repeat(changed, sizes)
            step = np.arange(len(scope)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            end = (np.repeat(first, sizes) + step) * window.slide
            parts.append((np.full(len(end), number, np.int64), end - window.size, end, scope))
        definition, start, end, scope = (np.concatenate([p[i] for p in parts]) for i in range(4))
        if not self.spec.scoped:
            scope = np.full(len(scope), -1, np.int64)
        listed = WindowList(definition, start, end, start, end, scope)
        return listed.take(np.lexsort((end, definition, scope)))

    def _extents(
        self, view: SliceTable, listed: WindowList, n_keys: int, scope_of_key: Ints | None
    ) -> tuple[Rows, Extents]:
        table = view.for_windows(np.unique(np.concatenate([listed.low, listed.high])), n_keys)
        return table, extents(table, listed, scope_of_key if self.spec.scoped else None)

    def _forget(self, scope_of_key: Ints | None) -> RankLane:
        """Drop slices that no window to come can hold; a scope at rest keeps its last positions."""
        horizon = np.minimum(self.settled, self.done) - self.spec.longest
        ledger = self.ledger
        if len(ledger):
            scope = _scope(ledger.windows.key, scope_of_key)
            ledger = ledger.select(ledger.closes > self.settled[scope])
        if scope_of_key is None:
            edge = int(self.spec.edges.floor(np.array([int(horizon[0])]))[0])
            return replace(self, table=self.table.forget(edge, None), ledger=ledger)
        return replace(self, table=self._swept(horizon, scope_of_key), ledger=ledger)

    def _swept(self, horizon: Ints, scope_of_key: Ints) -> SliceTable:
        """Scopes advance at their own pace, so stale rows are swept out once they could be the majority."""
        live = int(np.minimum(self.settled, 2 * self.spec.longest).sum())
        if len(self.table) <= 2 * live + 1024 or not self.table.segments:
            return self.table
        segments = []
        for segment in self.table.segments:
            edge = self.spec.edges.floor(horizon[scope_of_key[segment.rows.key]])
            rows = segment.rows.take(segment.rows.start >= edge)
            segments += [replace(segment, rows=rows)] if len(rows) else []
        return replace(self.table, segments=tuple(segments))

    @property
    def nbytes(self) -> int:
        """Memory held by slices, waiting tuples and counters."""
        return self.table.nbytes + tuple_bytes(self.pending) + self.settled.nbytes + self.done.nbytes


def _scope(key: Ints, scope_of_key: Ints | None) -> Ints:
    return np.zeros(len(key), np.int64) if scope_of_key is None else scope_of_key[key]


def _scopes(pairs: Extents, scope_of_key: Ints | None) -> Ints:
    return _scope(pairs.key, scope_of_key)


def _per_scope(tuples: Tuples, n_scopes: int, scope_of_key: Ints | None) -> Ints:
    return np.bincount(_scope(tuples.key, scope_of_key), minlength=n_scopes).astype(np.int64)


def _first_fresh(  # noqa: PLR0913 - two parts of one sorted run
    fresh_a: Bools, a: Tuples, fresh_b: Bools, b: Tuples, counts: Ints, scope_of_key: Ints | None
) -> Ints:
    """Per scope the position of the first tuple that just arrived; ALWAYS where none did."""
    counts = counts.copy()
    least = np.full(len(counts), ALWAYS, np.int64)
    for tuples, fresh in ((a, fresh_a), (b, fresh_b)):
        scope = _scope(tuples.key, scope_of_key)
        rank = kernels.number_tuples(scope, counts)
        np.minimum.at(least, scope[fresh], rank[fresh])
    return least


def new_rank_lane(spec: RankSpec) -> RankLane:
    """A lane that has seen nothing."""
    none = np.zeros(0, np.int64)
    return RankLane(spec, SliceTable(spec.layout), no_tuples(), none, none, empty_ledger())
