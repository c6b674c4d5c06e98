"""The slice lane: context-free windows and sessions over partials, whatever the order of arrival.

One fold serves all: a batch becomes rows cut at every window edge and, where there are sessions, at
least once per gap. The slice table takes them merged back to window edges, sessions take them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from windowpane.core.arrays import ALWAYS, NEVER, Bools, Ints, Tuples
from windowpane.core.closing import Definitions, ending
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
from windowpane.core.extents import extents, relocate
from windowpane.core.fold import fold
from windowpane.core.ledger import Ledger, Windows, empty_ledger
from windowpane.core.rows import Layout, Rows, by_key, combined, no_rows
from windowpane.core.sessions import Sessions
from windowpane.core.slices import SliceTable
from windowpane.values.windows import Landmark, Session

_NO_BOOLS = np.empty(0, np.bool_)
SessionSpec = tuple[int, int, int]
"""Definition number, gap, and the first time looked at."""


@dataclass(frozen=True)
class SliceSpec:
    """What a slice lane computes; derived once when a query is added or removed."""

    layout: Layout
    definitions: Definitions
    sessions: tuple[SessionSpec, ...]
    window_edges: Edges
    fold_edges: Edges

    @cached_property
    def landmarks(self) -> Ints:
        """From where the windows without an end to their reach look, sorted."""
        lows = {
            max(since, NEVER if window.start is None else window.start)
            for window, since in zip(self.definitions.windows, self.definitions.since, strict=True)
            if isinstance(window, Landmark)
        }
        return np.array(sorted(lows), np.int64)


def slice_spec(layout: Layout, definitions: Definitions, sessions: tuple[SessionSpec, ...]) -> SliceSpec:
    """The edges for these windows.

    If the session gap adds few edges, the slice table keeps them too, which saves merging rows back.
    """
    cuts = [s for s in definitions.since if s > NEVER]
    own = edges_of(definitions.windows, cuts)
    gaps = [Session(gap) for _, gap, _ in sessions]
    all_ = edges_of([*definitions.windows, *gaps], [*cuts, *(s for _, _, s in sessions if s > NEVER)])
    horizon = 10**12
    shared = bool(definitions.windows) and all_.expected(0, horizon) <= 2 * own.expected(0, horizon)
    return SliceSpec(layout, definitions, sessions, all_ if shared else own, all_)


@dataclass(frozen=True)
class SliceLane:
    """State of the lane: the slice table, the sessions, and the answers that may be revised."""

    spec: SliceSpec
    table: SliceTable
    sessions: tuple[Sessions, ...]
    ledger: Ledger

    def step(self, tuples: Tuples, group: Group, moment: Moment) -> tuple[SliceLane, list[Emission]]:
        """Fold a batch in, answer what closed, forget what no window needs."""
        return self.step_rows(self.rows_of(tuples, group.n_keys), group, moment)

    def step_rows(self, fresh: Rows, group: Group, moment: Moment) -> tuple[SliceLane, list[Emission]]:
        """As `step`, for a batch that was folded already."""
        lane, answers = self.insert(fresh, group.n_keys).answer(fresh, group.n_keys, moment, self.table)
        return lane.forget(moment), answers

    def rows_of(self, tuples: Tuples, n_keys: int) -> Rows:
        """A batch as rows, cut at window edges and within session gaps."""
        edges = self.spec.fold_edges
        return fold(self.spec.layout, tuples, tuples.time, edges, n_keys, rising=tuples.rising)

    def insert(self, rows: Rows, n_keys: int) -> SliceLane:
        """Take in the rows of a batch."""
        if len(rows) == 0:
            return self
        table = self.table.insert(self._coarse(rows)) if self.spec.definitions.windows else self.table
        sorted_ = by_key(rows, n_keys) if self.sessions else rows
        return replace(self, table=table, sessions=tuple(s.insert(sorted_) for s in self.sessions))

    def _coarse(self, rows: Rows) -> Rows:
        """The same rows with session cuts merged away."""
        if len(rows) == 0 or self.spec.window_edges is self.spec.fold_edges:
            return rows
        start = self.spec.window_edges.floor(rows.start)
        return combined(self.spec.layout, Rows(start, rows.key, rows.partials))

    def answer(
        self, fresh: Rows, n_keys: int, moment: Moment, earlier: SliceTable
    ) -> tuple[SliceLane, list[Emission]]:
        """The answers that the punctuation, late tuples or early reporting call for.

        `earlier` is the table without the fresh rows: what it holds of a closed window was answered before.
        """
        lane, answers = self._answer_windows(fresh, n_keys, moment, earlier)
        for i, sessions in enumerate(self.sessions):
            touched = sessions.touched(fresh) if moment.lateness or moment.early else _NO_BOOLS
            lane, more = lane._answer_sessions(i, sessions, touched, moment)
            answers += more
        return lane, answers

    def _answer_windows(
        self, fresh: Rows, n_keys: int, moment: Moment, earlier: SliceTable
    ) -> tuple[SliceLane, list[Emission]]:
        definitions, layout = self.spec.definitions, self.spec.layout
        if not definitions.windows:
            return self, []
        answers: list[Emission] = []
        lane = self
        if moment.bound > moment.before:
            occupied = self.table.occupied()
            listed = ending(definitions, occupied, moment.before, moment.bound, moment.high)
            if len(listed):
                table = self.table.for_windows(_bounds(listed.low, listed.high), n_keys)
                answers.append(first_answers(layout, table, listed, extents(table, listed), final=True))
        if moment.lateness and len(fresh) and moment.before > NEVER:
            past = Moment(moment.revisable, moment.before)
            lane, revised = self._touched(fresh, n_keys, past, earlier)
            answers += revised
        if moment.early and len(fresh) and moment.bound < ALWAYS:
            rest = replace(moment, before=moment.bound, bound=ALWAYS)
            answers += self._touched(fresh, n_keys, rest, None)[1]
        return lane, [a for a in answers if len(a)]

    def _touched(
        self, fresh: Rows, n_keys: int, ends: Moment, earlier: SliceTable | None
    ) -> tuple[SliceLane, list[Emission]]:
        """Answers for windows that end within a moment and that new rows fall into (early: no `earlier`)."""
        fresh = self._coarse(fresh)
        starts = np.unique(fresh.start)
        listed = ending(self.spec.definitions, starts, ends.before, ends.bound, ends.high)
        pairs = extents(by_key(fresh, n_keys), listed)
        if len(pairs) == 0:
            return self, []
        bounds = _bounds(listed.low, listed.high)
        table, final = self.table.for_windows(bounds, n_keys), earlier is not None
        found = first_answers(self.spec.layout, table, listed, relocate(table, listed, pairs), final=final)
        if earlier is None:
            return self, [found]
        windows = identities(listed, pairs)
        before = relocate(earlier.for_windows(bounds, n_keys), listed, pairs)
        # the ledger knows revisions; a first answer is known by the rows that were there for it
        revision = np.maximum(self.ledger.revisions(windows), np.where(before.high > before.low, 0, -1)) + 1
        ledger = self.ledger.record(windows, revision, windows.end)
        return replace(self, ledger=ledger), [replace(found, revision=revision)]

    def _answer_sessions(
        self, i: int, sessions: Sessions, touched: Bools, moment: Moment
    ) -> tuple[SliceLane, list[Emission]]:
        number = self.spec.sessions[i][0]
        closed, ends = sessions.closed(moment.bound), sessions.ends()
        answers: list[Emission] = []
        lane = self
        if moment.lateness == 0:
            answers.append(_sessions(number, sessions, ends, closed, final=True))
        else:
            mine = self.ledger.windows.definition == number
            at = np.nonzero(closed)[0]
            current = _identities(number, sessions, ends, closed)
            # a tuple at the very end would still join
            now = Standing(sessions.rows, current, at, at + 1, touched[closed], current.end + 1)
            found, known = reconcile(sessions.layout, now, self.ledger.select(mine))
            answers += found
            lane = replace(self, ledger=_joined(self.ledger.select(~mine), known))
        if moment.early:
            answers.append(_sessions(number, sessions, ends, ~closed & touched, final=False))
        return lane, [a for a in answers if len(a)]

    def forget(self, moment: Moment) -> SliceLane:
        """Drop what no window that may still be answered can reach."""
        settled = moment.settled
        sessions = tuple(s.keep(~s.closed(settled)) for s in self.sessions)
        ledger = self.ledger
        if len(ledger):
            ledger = ledger.select(ledger.closes > settled)
        return replace(self, table=self._forgotten(settled), sessions=sessions, ledger=ledger)

    def _forgotten(self, settled: int) -> SliceTable:
        if settled == ALWAYS:
            return SliceTable(self.spec.layout)
        if settled == NEVER or not self.table.segments:
            return self.table
        landmarks = self.spec.landmarks
        reach = self.spec.definitions.reach
        horizon = int(self.spec.window_edges.floor(np.array([settled - reach]))[0])
        return self.table.forget(horizon, landmarks if len(landmarks) else None)

    @property
    def nbytes(self) -> int:
        """Memory held by slices, sessions and answers that may be revised."""
        return self.table.nbytes + sum(s.rows.nbytes for s in self.sessions) + self.ledger.nbytes


def _bounds(low: Ints, high: Ints) -> Ints:
    return np.sort(np.concatenate([low, high]))


def _identities(number: int, sessions: Sessions, ends: Ints, which: Bools) -> Windows:
    rows = sessions.rows
    return Windows(
        np.full(int(which.sum()), number, np.int64), rows.key[which], rows.start[which], ends[which]
    )


def _sessions(number: int, sessions: Sessions, ends: Ints, which: Bools, *, final: bool) -> Emission:
    at = np.nonzero(which)[0]
    windows = _identities(number, sessions, ends, which)
    return Emission(sessions.layout, sessions.rows, windows, at, at + 1, np.zeros(len(at), np.int64), final)


def _joined(a: Ledger, b: Ledger) -> Ledger:
    return a.record(b.windows, b.revision, b.closes)


def new_slice_lane(spec: SliceSpec) -> SliceLane:
    """A lane that has seen nothing."""
    sessions = tuple(
        Sessions(spec.layout, gap, since, no_rows(spec.layout)) for _, gap, since in spec.sessions
    )
    return SliceLane(spec, SliceTable(spec.layout), sessions, empty_ledger())
