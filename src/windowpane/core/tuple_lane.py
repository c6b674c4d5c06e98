"""The tuple lane: windows whose start or end only later tuples reveal (forward context aware).

Tuples are kept, in event-time order and already lifted to partials: a tuple is a slice of one row. Each
step lists the windows that the punctuation closed and aggregates their row ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windowpane.core.arrays import ALWAYS, NEVER, Bools, Column, Ints, Tuples, no_tuples
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
from windowpane.core.forward import ARRIVAL, Forward, Known, closing_time, list_windows, reach
from windowpane.core.kernels import ranks as kernels
from windowpane.core.ledger import Ledger, empty_ledger
from windowpane.core.ordered_lane import tuple_bytes
from windowpane.core.pending import settle
from windowpane.core.rows import Layout, Rows, key_order
from windowpane.values.windows import ContextAwareWindow, LastRows


@dataclass(frozen=True)
class TupleSpec:
    """What a tuple lane computes; all its windows count positions in the same scope."""

    layout: Layout
    number: tuple[int, ...]
    windows: tuple[Forward, ...]
    scoped: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """The windows of one definition with their rows, and which of them just got a tuple."""

    listed: WindowList
    rows: Rows
    pairs: Extents
    touched: Bools


@dataclass(frozen=True)
class TupleLane:
    """Kept tuples in event-time order, and per scope how many came and how many were forgotten."""

    spec: TupleSpec
    kept: Tuples
    arrived: Ints
    forgotten: Ints
    ledger: Ledger

    def step(self, tuples: Tuples, group: Group, moment: Moment) -> tuple[TupleLane, list[Emission]]:
        """Sort the batch in, answer the windows that closed, forget tuples that no window can reach."""
        lane = self._grown(group.n_scopes)
        arrived, tuples = lane._numbered(tuples, group)
        s = settle(lane.kept, tuples, NEVER)
        lane = replace(lane, kept=s.waiting, arrived=arrived)
        known = lane._known(group)
        answered, answers = lane._answer(known, s.waiting_fresh, group, moment)
        return answered._forget(known, moment), answers

    def _grown(self, n_scopes: int) -> TupleLane:
        zeros = np.zeros(max(0, n_scopes - len(self.arrived)), np.int64)
        return replace(
            self,
            arrived=np.concatenate([self.arrived, zeros]),
            forgotten=np.concatenate([self.forgotten, zeros]),
        )

    def _numbered(self, tuples: Tuples, group: Group) -> tuple[Ints, Tuples]:
        if len(tuples) == 0:
            return self.arrived, tuples
        counts = self.arrived.copy()
        position = kernels.number_tuples(group.scope(tuples.key), counts)
        return counts, replace(tuples, columns={**tuples.columns, ARRIVAL: Column(position)})

    def _known(self, group: Group) -> Known:
        """The kept tuples with their scope and rank."""
        scope = group.scope(self.kept.key)
        rank = kernels.number_tuples(scope, self.forgotten.copy())
        return Known(self.kept, scope, rank)

    def _answer(
        self, known: Known, fresh: Bools, group: Group, moment: Moment
    ) -> tuple[TupleLane, list[Emission]]:
        open_ = moment if not moment.lateness else replace(moment, before=moment.revisable)
        answers: list[Emission] = []
        lane = self
        closing = self._extents(self._list(known, open_), known, fresh, group)
        for number, window, found in zip(self.spec.number, self.spec.windows, closing, strict=False):
            if moment.lateness:
                lane, more = lane._reconciled(number, window, found)
                answers += more
            else:
                answers.append(
                    first_answers(self.spec.layout, found.rows, found.listed, found.pairs, final=True)
                )
        if moment.early and moment.bound < ALWAYS:
            rest = self._list(known, replace(moment, before=moment.bound, bound=ALWAYS))
            for found in self._extents(rest, known, fresh, group):
                some = found.pairs.take(found.touched)
                answers.append(first_answers(self.spec.layout, found.rows, found.listed, some, final=False))
        return lane, [a for a in answers if len(a)]

    def _list(self, known: Known, ends: Moment) -> list[WindowList]:
        return [
            list_windows(number, window, known, ends, scoped=self.spec.scoped)
            for number, window in zip(self.spec.number, self.spec.windows, strict=True)
        ]

    def _extents(self, listed: list[WindowList], known: Known, fresh: Bools, group: Group) -> list[_Found]:
        """The rows of each definition's windows; last rows are found by rank, the others by time."""
        if not any(len(windows) for windows in listed) and not len(self.ledger):
            return []
        order = key_order(known.tuples.key, group.n_keys)
        order = np.arange(len(known.tuples)) if order is None else order
        sorted_ = known.tuples.take(order)
        partials = tuple(p.fold(sorted_, np.arange(len(sorted_)), len(sorted_)) for p in self.spec.layout)
        running = np.concatenate([[0], np.cumsum(fresh[order])])
        found = []
        for definition, windows in zip(self.spec.windows, listed, strict=True):
            measure = known.rank[order] if isinstance(definition, LastRows) else sorted_.time
            rows = Rows(measure, sorted_.key, partials)
            scope = group.scope_of_key if self.spec.scoped else None
            if isinstance(definition, ContextAwareWindow):
                scope = np.arange(group.n_keys)
            pairs = extents(rows, windows, scope)
            touched = running[pairs.high] > running[pairs.low]
            if isinstance(definition, LastRows):
                touched = _pushed(known, fresh, windows, self.spec.scoped)[pairs.window]
            found.append(_Found(windows, rows, pairs, touched))
        return found

    def _reconciled(self, number: int, window: Forward, found: _Found) -> tuple[TupleLane, list[Emission]]:
        mine = self.ledger.windows.definition == number
        current = identities(found.listed, found.pairs)
        ranges = (found.pairs.low, found.pairs.high)
        now = Standing(found.rows, current, *ranges, found.touched, closing_time(window, current.end))
        answers, known = reconcile(self.spec.layout, now, self.ledger.select(mine))
        others = self.ledger.select(~mine)
        return replace(self, ledger=others.record(known.windows, known.revision, known.closes)), answers

    def _forget(self, known: Known, moment: Moment) -> TupleLane:
        if moment.bound == ALWAYS:
            return replace(self, kept=no_tuples(), ledger=empty_ledger())
        settled = moment.settled
        ledger = self.ledger.select(self.ledger.closes > settled) if len(self.ledger) else self.ledger
        if settled == NEVER or len(self.kept) == 0:
            return replace(self, ledger=ledger)
        keep = np.zeros(len(self.kept), np.bool_)
        for window in self.spec.windows:
            keep |= reach(window, known, settled, len(self.arrived))
        if bool(keep.all()):
            return replace(self, ledger=ledger)
        gone = np.bincount(known.scope[~keep], minlength=len(self.forgotten))
        return replace(self, kept=self.kept.take(keep), forgotten=self.forgotten + gone, ledger=ledger)

    @property
    def nbytes(self) -> int:
        """Memory held by tuples, counters and answers that may be revised."""
        return tuple_bytes(self.kept) + self.arrived.nbytes + self.forgotten.nbytes + self.ledger.nbytes


def _pushed(known: Known, fresh: Bools, windows: WindowList, scoped: bool) -> Bools:  # noqa: FBT001
    """Which windows over ranks got a tuple of any key, which may have pushed one of another key out."""
    order = np.argsort(known.scope, kind="stable")
    scope, rank = known.scope[order], known.rank[order]
    running = np.concatenate([[0], np.cumsum(fresh[order])])
    mine = windows.scope if scoped else np.zeros(len(windows), np.int64)
    head, tail = np.searchsorted(scope, mine, side="left"), np.searchsorted(scope, mine, side="right")
    first = rank[head]
    low = head + np.maximum(windows.low - first, 0)
    high = np.minimum(head + windows.high - first, tail)
    pushed: Bools = running[high] > running[np.minimum(low, tail)]
    return pushed


def new_tuple_lane(spec: TupleSpec) -> TupleLane:
    """A lane that has seen nothing."""
    none = np.zeros(0, np.int64)
    return TupleLane(spec, no_tuples(), none, none, empty_ledger())
