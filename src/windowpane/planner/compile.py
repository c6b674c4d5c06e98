"""Compile: a plan and its decisions become the lanes of an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from windowpane.core.aggregates import BoundAggregate
from windowpane.core.arrays import NEVER
from windowpane.core.closing import Definitions
from windowpane.core.edges import ContextFree
from windowpane.core.forgetting import AnyLane
from windowpane.core.forward import Forward
from windowpane.core.hashing import hashable
from windowpane.core.mark_lane import new_mark_lane
from windowpane.core.operator import LaneEntry, Operator, QueryEntry
from windowpane.core.ordered_lane import new_ordered_lane
from windowpane.core.partials.base import Partial
from windowpane.core.partials.span import Span
from windowpane.core.pending import TIE
from windowpane.core.rank_lane import new_rank_lane, rank_spec
from windowpane.core.rows import Layout
from windowpane.core.slice_lane import SliceSpec, new_slice_lane, slice_spec
from windowpane.core.tuple_lane import TupleSpec, new_tuple_lane
from windowpane.plan.nodes import Plan, Stream, WindowQuery
from windowpane.planner.choose import bound_aggregates, decide
from windowpane.planner.rules import Lane
from windowpane.values.windows import (
    ContextAwareWindow,
    ContextFreeWindow,
    Cumulative,
    Delimited,
    Landmark,
    LastRows,
    PerRow,
    Rows,
    Session,
    Sliding,
    Window,
)


@dataclass(frozen=True)
class Placed:
    """One window of a query with its number, its lane, and the first time it looks at."""

    number: int
    query: WindowQuery
    window: Window
    lane: Lane
    since: int
    aggregates: tuple[BoundAggregate, ...]

    @property
    def lane_name(self) -> str:
        """Windows with the same name share a lane, and so one fold and one table.

        Slices of any age serve together; lanes that depend on order start afresh with an added query.
        """
        parts = [self.lane.name.lower(), ",".join(self.query.grouping)]
        if self.lane is Lane.MARKERS:
            parts.append(str(self.number))
        if self.lane in (Lane.RANK, Lane.TUPLES):
            parts.append("per " + ",".join(self.query.partition(self.window)))
        if self.lane is Lane.RANK:
            parts.append(getattr(self.window, "order", ""))
        if self.lane is not Lane.SLICES and self.since > NEVER:
            parts.append(f"since {self.since}")
        return "|".join(parts)


def place(plan: Plan, query: WindowQuery, first: int, since: int) -> list[Placed]:
    """Number the windows of a query from `first` and choose their lanes."""
    bound = bound_aggregates(plan, query)
    return [
        Placed(first + i, query, window, decide(plan, query, window, bound).lane_kind, since, bound)
        for i, window in enumerate(query.windows)
    ]


def point_type(stream: Stream, query: WindowQuery) -> pa.DataType:
    """The type of window starts and ends: positions, an integer measure, or times in the column's zone."""
    kind = stream.type(stream.time)
    if isinstance(query.windows[0], Rows) or pa.types.is_integer(kind):
        return pa.int64()
    return pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None)


def compile_plan(plan: Plan) -> tuple[Operator, list[Placed]]:
    """An operator that has seen nothing, and where each window went."""
    placed: list[Placed] = []
    for query in plan.queries:
        placed += place(plan, query, len(placed), NEVER)
    return assemble(plan, placed), placed


def assemble(plan: Plan, placed: Sequence[Placed]) -> Operator:
    """An operator for windows that are placed already."""
    columns = dict.fromkeys(c for p in placed for c in _columns(p))
    needs_order = any(p.lane is not Lane.SLICES for p in placed)
    tie = tie_columns(plan.stream) if needs_order else None
    operator = Operator(dict(plan.stream.types), tuple(columns), tie, plan.stream.ties)
    names = dict.fromkeys(p.lane_name for p in placed)
    operator.lanes = [_lane([p for p in placed if p.lane_name == name]) for name in names]
    operator.queries = [_query(plan.stream, [p for p in placed if p.query is q]) for q in plan.queries]
    return operator


def tie_columns(stream: Stream) -> tuple[str, ...]:
    """What orders tuples of equal time: the content of every other column, whatever the queries read."""
    return tuple(sorted(name for name, kind in stream.types if name != stream.time and hashable(kind)))


def _columns(placed: Placed) -> list[str]:
    found = [c for aggregate in placed.query.aggregates for c in aggregate.columns]
    if isinstance(placed.window, Delimited):
        found += [c for c in (placed.window.start, placed.window.end) if c is not None]
    if isinstance(placed.window, ContextAwareWindow):
        found += placed.window.columns
    return found


def _query(stream: Stream, placed: list[Placed]) -> QueryEntry:
    query = placed[0].query
    return QueryEntry(
        query.name,
        query.grouping,
        tuple(p.number for p in placed),
        placed[0].aggregates,
        point_type(stream, query),
        many=len(query.windows) > 1,
        early=query.emit == "update",
    )


def layout_of(placed: Sequence[Placed]) -> Layout:
    """Each partial once, however many aggregates and windows share it."""
    found: dict[Partial, None] = {}
    for p in placed:
        if isinstance(p.window, Session):
            found[Span()] = None
        found |= dict.fromkeys(partial for aggregate in p.aggregates for partial in aggregate.partials)
    return tuple(found)


def _lane(placed: list[Placed]) -> LaneEntry:
    first = placed[0]
    partition = first.query.partition(first.window)
    ordered = first.lane in (Lane.RANK, Lane.TUPLES)
    scope = partition if ordered and partition else None
    since = NEVER if first.lane is Lane.SLICES else first.since
    columns = dict.fromkeys(c for p in placed for c in _columns(p))
    if first.lane is not Lane.SLICES:
        columns[TIE] = None
    state = _state(placed, scoped=scope is not None)
    return LaneEntry(first.lane_name, first.query.grouping, scope, tuple(columns), since, state)


def _state(placed: list[Placed], *, scoped: bool) -> AnyLane:
    layout = layout_of(placed)
    numbers = tuple(p.number for p in placed)
    match placed[0].lane:
        case Lane.SLICES:
            return new_slice_lane(slices_of(layout, placed))
        case Lane.ORDERED:
            return new_ordered_lane(slices_of(layout, placed))
        case Lane.RANK:
            rows = tuple(p.window for p in placed if isinstance(p.window, Rows))
            return new_rank_lane(rank_spec(layout, numbers, rows, scoped=scoped))
        case Lane.MARKERS:
            window = placed[0].window
            assert isinstance(window, Delimited)
            return new_mark_lane(layout, numbers[0], window)
        case Lane.TUPLES:
            forward: tuple[Forward, ...] = tuple(
                p.window for p in placed if isinstance(p.window, PerRow | LastRows | ContextAwareWindow)
            )
            return new_tuple_lane(TupleSpec(layout, numbers, forward, scoped))


def slices_of(layout: Layout, placed: Sequence[Placed]) -> SliceSpec:
    """The specification of a slice lane."""
    sessions = tuple((p.number, p.window.gap, p.since) for p in placed if isinstance(p.window, Session))
    free: list[tuple[int, ContextFree, int]] = [
        (p.number, p.window, p.since)
        for p in placed
        if isinstance(p.window, Sliding | Landmark | Cumulative | ContextFreeWindow)
    ]
    definitions = Definitions(
        tuple(n for n, _, _ in free), tuple(w for _, w, _ in free), tuple(s for _, _, s in free)
    )
    return slice_spec(layout, definitions, sessions)
