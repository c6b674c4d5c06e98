"""Forgetting: keys and texts that no open window needs leave no trace.

Keys and texts are dense ids. When an index has grown to twice what is still in use, the ids in use are
numbered anew, in the same order, and every id in the state of the lanes is replaced. The cost is spread
over the growth, so it is constant per new key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import singledispatch

import numpy as np

from windowpane.core.arrays import NEVER, Bools, Cells, Column, Columns, Ints, Ragged, Tuples
from windowpane.core.ledger import Ledger, Windows
from windowpane.core.mark_lane import Markers, MarkLane
from windowpane.core.ordered_lane import OrderedLane
from windowpane.core.rank_lane import RankLane
from windowpane.core.rows import Layout, Rows
from windowpane.core.slice_lane import SliceLane
from windowpane.core.slices import Segment, SliceTable
from windowpane.core.tuple_lane import TupleLane

AnyLane = SliceLane | OrderedLane | RankLane | MarkLane | TupleLane
SPARE = 1024
"""Ids that an index may hold beyond twice those in use before it is compacted."""


@singledispatch
def parts(lane: object) -> Iterator[tuple[Layout, Rows] | Tuples | Ledger]:
    """The tables of a lane that hold keys and texts."""
    raise TypeError(f"{type(lane).__name__} is no lane")


@parts.register
def _(lane: SliceLane) -> Iterator[tuple[Layout, Rows] | Tuples | Ledger]:
    yield from ((lane.spec.layout, segment.rows) for segment in lane.table.segments)
    yield from ((lane.spec.layout, sessions.rows) for sessions in lane.sessions)
    yield lane.ledger


@parts.register
def _(lane: OrderedLane) -> Iterator[tuple[Layout, Rows] | Tuples | Ledger]:
    yield from parts(lane.slices)
    yield lane.pending


@parts.register
def _(lane: RankLane) -> Iterator[tuple[Layout, Rows] | Tuples | Ledger]:
    yield from ((lane.spec.layout, segment.rows) for segment in lane.table.segments)
    yield lane.pending
    yield lane.ledger


@parts.register
def _(lane: MarkLane) -> Iterator[tuple[Layout, Rows] | Tuples | Ledger]:
    yield lane.layout, lane.rows
    yield lane.pending
    yield lane.ledger


@parts.register
def _(lane: TupleLane) -> Iterator[tuple[Layout, Rows] | Tuples | Ledger]:
    yield lane.kept
    yield lane.ledger


def most_keys(lane: AnyLane) -> int:
    """At most so many keys are in use; cheap to tell."""
    marked = 0
    if isinstance(lane, MarkLane) and lane.window.start is None:
        marked = int(np.count_nonzero(lane.markers.begin > NEVER))
    return marked + sum(len(part[1] if isinstance(part, tuple) else part) for part in parts(lane))


def most_texts(lane: AnyLane) -> int:
    """At most so many texts of one column are in use; cheap to tell."""
    total = 0
    for part in parts(lane):
        if isinstance(part, tuple):
            cells = [c[at] for p, c in zip(part[0], part[1].partials, strict=True) for at in p.id_columns()]
            total += sum(len(c.values) if isinstance(c, Ragged) else len(c) for c in cells)
        else:
            total += len(part)
    return total


def live_keys(lane: AnyLane, n_keys: int) -> Bools:
    """Which keys the state of a lane speaks of."""
    live = np.zeros(n_keys, np.bool_)
    for part in parts(lane):
        live[_keys(part)] = True
    if isinstance(lane, MarkLane):
        marks = lane.markers
        # a window that only an end marker closes begins where the one before ended
        waits = marks.is_open if lane.window.start is not None else marks.begin > NEVER
        live[np.nonzero(waits)[0]] = True
    return live


def _keys(part: tuple[Layout, Rows] | Tuples | Ledger) -> Ints:
    if isinstance(part, Ledger):
        return part.windows.key
    return part.key if isinstance(part, Tuples) else part[1].key


def live_texts(lane: AnyLane, column: str, n_texts: int) -> Bools:
    """Which texts of a column the state of a lane holds."""
    live = np.zeros(n_texts, np.bool_)
    for part in parts(lane):
        if isinstance(part, Tuples) and column in part.columns:
            live[part.columns[column].values] = True
        elif isinstance(part, tuple):
            for partial, columns in zip(part[0], part[1].partials, strict=True):
                for at in (i for i, name in partial.id_columns().items() if name == column):
                    cells = columns[at]
                    live[cells.values if isinstance(cells, Ragged) else cells] = True
    return live


def rekeyed(lane: AnyLane, place: Ints) -> AnyLane:
    """The lane with every key replaced by its new id."""
    moved = _changed(
        lane, lambda rows, _: Rows(rows.start, place[rows.key], rows.partials), _rekeyed(place), place
    )
    if isinstance(moved, MarkLane):
        at = np.nonzero(place[: len(moved.markers.ordinal)] >= 0)[0]
        m = moved.markers
        return replace(moved, markers=Markers(m.is_open[at], m.ordinal[at], m.begin[at], m.latest[at]))
    return moved


def _rekeyed(place: Ints) -> Callable[[Tuples], Tuples]:
    return lambda tuples: replace(tuples, key=place[tuples.key])


def retexted(lane: AnyLane, column: str, place: Ints) -> AnyLane:
    """The lane with every text id of a column replaced by its new id."""

    def rows(table: Rows, layout: Layout) -> Rows:
        partials = tuple(
            _retexted(columns, {i for i, name in p.id_columns().items() if name == column}, place)
            for p, columns in zip(layout, table.partials, strict=True)
        )
        return Rows(table.start, table.key, partials)

    def tuples(batch: Tuples) -> Tuples:
        if column not in batch.columns:
            return batch
        old = batch.columns[column]
        return replace(
            batch, columns={**batch.columns, column: Column(place[old.values], old.valid, old.order)}
        )

    return _changed(lane, rows, tuples, None)


def _retexted(columns: Columns, which: set[int], place: Ints) -> Columns:
    def moved(cells: Cells) -> Cells:
        if isinstance(cells, Ragged):
            return Ragged(cells.offsets, place[cells.values], cells.weights)
        # rows without a value hold id 0, which may be forgotten
        new: Ints = np.maximum(place[cells], 0)
        return new

    return tuple(moved(cells) if i in which else cells for i, cells in enumerate(columns))


def _changed(
    lane: AnyLane,
    rows: Callable[[Rows, Layout], Rows],
    tuples: Callable[[Tuples], Tuples],
    place: Ints | None,
) -> AnyLane:
    """The lane with every table passed through a function."""

    def table(old: SliceTable) -> SliceTable:
        return replace(old, segments=tuple(Segment(s.layout, rows(s.rows, s.layout)) for s in old.segments))

    match lane:
        case SliceLane():
            sessions = tuple(replace(s, rows=rows(s.rows, s.layout)) for s in lane.sessions)
            return replace(
                lane, table=table(lane.table), sessions=sessions, ledger=_ledger(lane.ledger, place)
            )
        case OrderedLane():
            slices = _changed(lane.slices, rows, tuples, place)
            assert isinstance(slices, SliceLane)
            return replace(lane, slices=slices, pending=tuples(lane.pending))
        case RankLane():
            ledger = _ledger(lane.ledger, place)
            return replace(lane, table=table(lane.table), pending=tuples(lane.pending), ledger=ledger)
        case MarkLane():
            ledger = _ledger(lane.ledger, place)
            return replace(
                lane, rows=rows(lane.rows, lane.layout), pending=tuples(lane.pending), ledger=ledger
            )
        case TupleLane():
            return replace(lane, kept=tuples(lane.kept), ledger=_ledger(lane.ledger, place))


def _ledger(ledger: Ledger, place: Ints | None) -> Ledger:
    if place is None or len(ledger) == 0:
        return ledger
    w = ledger.windows
    return replace(ledger, windows=Windows(w.definition, place[w.key], w.start, w.end))
