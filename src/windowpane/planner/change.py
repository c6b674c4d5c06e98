"""Change: add or remove queries while a stream runs. Decisions are taken anew; state that still serves stays.

An added query answers as if it had been started on the tuples above the largest time seen so far: for
those, and only those, no tuple of its windows can have come before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from windowpane.core.arrays import Tuples
from windowpane.core.forgetting import AnyLane
from windowpane.core.forward import ARRIVAL
from windowpane.core.ledger import Ledger
from windowpane.core.mark_lane import MarkLane
from windowpane.core.operator import Operator
from windowpane.core.ordered_lane import OrderedLane
from windowpane.core.rank_lane import RankLane
from windowpane.core.rows import Layout, Rows
from windowpane.core.slice_lane import SliceLane
from windowpane.core.slices import Segment, SliceTable
from windowpane.core.tuple_lane import TupleLane
from windowpane.plan.nodes import Plan
from windowpane.planner.compile import Placed, assemble, place

Running = tuple[Operator, list[Placed]]


def change(plan: Plan, running: Running, since: int) -> Running:
    """The operator for a changed plan, with the state of the old one; added queries look from `since` on."""
    operator, placed = running
    names = {query.name: query for query in plan.queries}
    kept = [replace(p, query=names[p.query.name]) for p in placed if p.query.name in names]
    number = max((p.number for p in placed), default=-1) + 1
    for query in plan.queries:
        if query.name not in {p.query.name for p in placed}:
            kept += place(plan, query, number, since)
            number += len(query.windows)
    return _moved(operator, assemble(plan, kept), [p.number for p in kept]), kept


def _moved(old: Operator, new: Operator, numbers: Collection[int]) -> Operator:
    new.keys, new.scopes = old.keys, old.scopes
    new.interners = {name: old.interners.get(name, empty) for name, empty in new.interners.items()}
    known = {entry.name: entry.lane for entry in old.lanes}
    for i, entry in enumerate(new.lanes):
        if entry.name in known:
            lane = _carried(known[entry.name], entry.lane, numbers)
            new.lanes[i] = replace(entry, lane=_reading(lane, entry.columns))
    return new


def _reading(lane: AnyLane, columns: Collection[str]) -> AnyLane:
    """The lane with its waiting tuples cut down to the columns that are still read."""

    def cut(tuples: Tuples) -> Tuples:
        own = {n: c for n, c in tuples.columns.items() if n in columns or n == ARRIVAL}
        return replace(tuples, columns=own)

    match lane:
        case SliceLane():
            return lane
        case TupleLane():
            return replace(lane, kept=cut(lane.kept))
        case _:
            return replace(lane, pending=cut(lane.pending))


def _carried(old: AnyLane, new: AnyLane, numbers: Collection[int]) -> AnyLane:
    """The new lane with the old one's state; lanes of one name are of one kind."""
    match old, new:
        case SliceLane(), SliceLane():
            return _slices(old, new, numbers)
        case OrderedLane(), OrderedLane():
            return OrderedLane(_slices(old.slices, new.slices, numbers), old.pending)
        case RankLane(), RankLane():
            table = _table(old.table, new.spec.layout)
            return replace(old, spec=new.spec, table=table, ledger=_ledger(old.ledger, numbers))
        case MarkLane(), MarkLane():
            return replace(old, layout=new.layout, rows=_rows(old.rows, old.layout, new.layout))
        case TupleLane(), TupleLane():
            return replace(old, spec=new.spec, ledger=_ledger(old.ledger, numbers))
    raise TypeError(f"a {type(old).__name__} cannot become a {type(new).__name__}")


def _slices(old: SliceLane, new: SliceLane, numbers: Collection[int]) -> SliceLane:
    layout = new.spec.layout
    known = {spec[0]: sessions for spec, sessions in zip(old.spec.sessions, old.sessions, strict=True)}
    sessions = tuple(
        replace(empty, rows=_rows(known[spec[0]].rows, old.spec.layout, layout))
        if spec[0] in known
        else empty
        for spec, empty in zip(new.spec.sessions, new.sessions, strict=True)
    )
    table = _table(old.table, layout) if new.spec.definitions.windows else new.table
    return SliceLane(new.spec, table, sessions, _ledger(old.ledger, numbers))


def _table(table: SliceTable, layout: Layout) -> SliceTable:
    segments = [Segment(layout, _rows(s.rows, table.layout, layout)) for s in table.segments]
    return SliceTable(layout, tuple(segments))


def _rows(rows: Rows, old: Layout, new: Layout) -> Rows:
    """The rows with the partials of another layout; a new partial has seen nothing yet."""
    partials = tuple(rows.partials[old.index(p)] if p in old else p.identity(len(rows)) for p in new)
    return Rows(rows.start, rows.key, partials)


def _ledger(ledger: Ledger, numbers: Collection[int]) -> Ledger:
    wanted: Sequence[int] = list(numbers)
    return ledger.select(np.isin(ledger.windows.definition, wanted)) if len(ledger) else ledger
