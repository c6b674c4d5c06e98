"""Plans within a memory budget: which queries can run over a store, and how (Mendes et al., section 2.2).

1W keeps tuples: its space follows the rate. 2LA keeps one slice for each key and pane: its space follows the
keys. Which is smaller is a matter of numbers, so both are computed, by formulas 2.2 and 2.1. A query without
keys needs neither: its slices are as many as panes, which is known before it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd
from typing import Literal

import numpy as np

from windowpane.core.aggregates import BoundAggregate
from windowpane.core.arrays import NEVER, Ints
from windowpane.core.operator import QueryEntry
from windowpane.core.partials.base import Partial
from windowpane.core.partials.runs import ValueCounts
from windowpane.core.rows import Layout
from windowpane.core.spill.codec import BlockLayout
from windowpane.core.spill.feed import Feed, can_roll
from windowpane.core.spill.formulas import Load, space_1w, space_2la
from windowpane.core.spill.lane import Lane, Span
from windowpane.core.spill.operator import SpillOperator, Wanted
from windowpane.core.spill.rolling import Rolling
from windowpane.core.spill.shapes import Shape, SliceShape, TupleShape
from windowpane.core.spill.store import BlockStore
from windowpane.plan.nodes import Plan, WindowQuery
from windowpane.planner.choose import bound_aggregates
from windowpane.planner.compile import point_type
from windowpane.values.errors import BadQuery, OverBudget
from windowpane.values.punctuation import Delay, Heartbeat, Policy
from windowpane.values.sizes import Budget
from windowpane.values.windows import PerRow, Sliding, Window

Chosen = Literal["slices", "1W", "2LA"]
MakeStore = Callable[[int, BlockLayout], BlockStore]
"""The store of a lane, by the lane's number and the columns of its blocks."""


@dataclass(frozen=True)
class Seen:
    """What is known of a stream: tuples per unit of its measure, and keys (of each grouping)."""

    rate: float
    groups: tuple[float, ...]
    active_groups: tuple[float, ...]


@dataclass(frozen=True)
class SpillChoice:
    """Which technique, the bytes that each would need, and why."""

    technique: Chosen
    one_window: float
    two_level: float | None
    because: str


def span_of(query: WindowQuery, window: Window) -> Span:
    """What a window is to a store; an error if it can have none."""
    match window:
        case Sliding(size, slide, origin, None):
            return Span(size, slide, origin)
        case PerRow(size, 1, _, _) if query.partition(window) in {(), query.keys}:
            return Span(size, 0, own=bool(query.keys) and query.partition(window) == query.keys)
    raise BadQuery(
        "memory= serves sliding windows, tumbling windows and per_row(...) with every=1, per the query's "
        f"keys or none; query {query.name!r} has {window}. Leave memory= out for it."
    )


def need_spillable(plan: Plan) -> None:
    """An error that says why, if a plan cannot run within a budget."""
    if plan.stream.lateness:
        raise BadQuery(
            "memory= does not go with an allowed lateness: answers over a store are not revised. "
            "Use a delay instead, or leave memory= out."
        )
    if plan.stream.ids:
        raise BadQuery(
            f"memory= does not go with ids ({', '.join(plan.stream.ids)}): they are remembered in memory. "
            "Leave memory= out."
        )
    for query in plan.queries:
        if query.emit != "final":
            raise BadQuery(f"query {query.name!r} has emit='update', but memory= gives final answers only.")
        for window in query.windows:
            span_of(query, window)
        for aggregate, bound in zip(query.aggregates, bound_aggregates(plan, query), strict=True):
            if not all(can_roll(partial) for partial in bound.partials):
                raise BadQuery(
                    f"{aggregate.function}() of query {query.name!r} cannot run within memory=: it has no "
                    "exact way to take a tuple out again in bounded memory. There are count, sum, mean, "
                    "weighted_mean, geometric_mean, variance, stddev, min, max, median, quantile, distinct, "
                    "top_k and heavy_hitters."
                )


def need_technique(plan: Plan, budget: Budget) -> None:
    """An error that says why, if slices are asked for where there can be none."""
    if budget.technique != "2LA":
        return
    if not pane_of(spans_of(plan)):
        raise BadQuery("2LA needs windows that slide by time, but per_row() slides by tuple. Use 1W.")
    if keeps_values(plan):
        raise BadQuery(
            "2LA keeps slices of a fixed width, but median, quantile, distinct, top_k and heavy_hitters need "
            "all values. Use technique='1W'."
        )


def keeps_values(plan: Plan) -> bool:
    """Whether an aggregate needs to know how often each value came."""
    return any(feed.values for feed in feeds_of(plan))


def groupings_of(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """The distinct groupings of a plan, in order."""
    return tuple(dict.fromkeys(query.grouping for query in plan.queries))


def spans_of(plan: Plan) -> list[Span]:
    """The windows of all queries."""
    return [span_of(query, window) for query in plan.queries for window in query.windows]


def feeds_of(plan: Plan) -> tuple[Feed, ...]:
    """What each grouping's aggregates need."""
    return tuple(Feed(layout_of(plan, grouping)) for grouping in groupings_of(plan))


def layout_of(plan: Plan, grouping: tuple[str, ...]) -> Layout:
    """The partials of all queries with a grouping, each once."""
    found: dict[Partial, None] = {}
    for query in plan.queries:
        if query.grouping == grouping:
            bound: Sequence[BoundAggregate] = bound_aggregates(plan, query)
            found |= dict.fromkeys(partial for aggregate in bound for partial in aggregate.partials)
    return tuple(found)


def pane_of(spans: Sequence[Span]) -> int:
    """The longest slice that fits all sizes, slides and origins; 0 if a window slides by tuple."""
    if any(span.slide == 0 for span in spans):
        return 0
    shifts = [span.origin - spans[0].origin for span in spans]
    return reduce(gcd, [*(s.size for s in spans), *(s.slide for s in spans), *shifts])


def load_of(plan: Plan, grouping: int, seen: Seen) -> Load:
    """What formulas 2.1 and 2.2 ask, for one grouping; all its aggregates share rows and state."""
    feed, spans = feeds_of(plan)[grouping], spans_of(plan)
    pane = pane_of(spans)
    partial = SliceShape(feed, 0, max(pane, 1), 0, Budget.block_bytes).layout.row_bytes
    return Load(
        rate=seen.rate,
        window=max(span.size for span in spans),
        interval=max(pane, 1),
        tuple_bytes=tuple_shape(plan, Budget.block_bytes).layout.row_bytes,
        partial_tuple_bytes=partial,
        state_bytes=Rolling.key_bytes(feed) * len(set(spans)),
        partial_state_bytes=partial,
        groups=seen.groups[grouping],
        active_groups=seen.active_groups[grouping],
    )


def choose(plan: Plan, budget: Budget, seen: Seen) -> SpillChoice:
    """1W, 2LA or slices, by the numbers."""
    loads = [load_of(plan, g, seen) for g in range(len(groupings_of(plan)))]
    # tuples are stored once, whatever the number of groupings; slices once for each
    one = space_1w(loads[0]) + sum(load.groups * load.state_bytes for load in loads[1:])
    sliced = pane_of(spans_of(plan)) and not keeps_values(plan)
    two = sum(space_2la(load) for load in loads) if sliced else None
    need_technique(plan, budget)
    if budget.technique != "auto":
        return SpillChoice(budget.technique, one, two, "you said so")
    if keeps_values(plan):
        return SpillChoice("1W", one, two, "slices of a fixed width cannot hold all values")
    if two is None:
        return SpillChoice("1W", one, two, "a window that slides by tuple has no panes")
    if always_fits(plan, budget):
        return SpillChoice("slices", one, two, "without keys the slices are known to fit")
    if two <= one:
        return SpillChoice("2LA", one, two, "slices take less than tuples")
    return SpillChoice("1W", one, two, "tuples take less than slices of every key and aggregate")


def lag_of(policy: Policy) -> int | None:
    """How far the punctuation stays behind the largest time at most; None if nothing says."""
    match policy:
        case Delay(lag):
            return lag
        case Heartbeat():
            # the clock only moves the bound on
            return lag_of(policy.policy)
    return None


def always_fits(plan: Plan, budget: Budget) -> bool:
    """Whether slices in memory fit the budget whatever the stream brings."""
    pane, lag = pane_of(spans_of(plan)), lag_of(plan.stream.policy)
    if not pane or lag is None or any(groupings_of(plan)) or keeps_values(plan):
        return False
    # a window is open until the punctuation passes its end
    rows = (max(span.size for span in spans_of(plan)) + lag) // pane + 2
    width = 16 + sum(16 * len(p.identity(0)) for p in layout_of(plan, ()))
    # a slice table holds roll-ups beside its rows, and both versions while it changes
    return 4 * rows * width <= budget.memory


def tuple_shape(plan: Plan, block_bytes: int) -> TupleShape:
    """The rows of 1W."""
    return TupleShape(feeds_of(plan), plan.stream.types, block_bytes)


def shapes_of(plan: Plan, technique: Chosen, block_bytes: int) -> list[Shape]:
    """The rows of each lane: tuples for all groupings together, or slices for each."""
    if technique == "1W":
        return [tuple_shape(plan, block_bytes)]
    spans = spans_of(plan)
    return [
        SliceShape(feed, g, pane_of(spans), spans[0].origin, block_bytes)
        for g, feed in enumerate(feeds_of(plan))
    ]


def assemble_spill(
    plan: Plan,
    technique: Chosen,
    block_bytes: int,
    make: MakeStore,
    *,
    fresh: bool = True,
    since: Mapping[str, int] | None = None,
) -> SpillOperator:
    """An operator over stores; if not `fresh`, the windows come from a checkpoint.

    `since` says where queries begin that were added while the run went on.
    """
    groupings = groupings_of(plan)
    feeds = feeds_of(plan)
    columns = tuple(dict.fromkeys(column for feed in feeds for column in feed.columns))
    texts = tuple(dict.fromkeys(column for feed in feeds for column in feed.texts))
    operator = SpillOperator(dict(plan.stream.types), columns, groupings, texts)
    for i, shape in enumerate(shapes_of(plan, technique, block_bytes)):
        operator.lanes.append(Lane(shape, make(i, shape.layout)))
    for query in plan.queries:
        add_query(operator, plan, query, (since or {}).get(query.name, NEVER), fresh=fresh)
    return operator


def add_query(
    operator: SpillOperator, plan: Plan, query: WindowQuery, since: int, *, fresh: bool = True
) -> None:
    """Let an operator answer a query for the rows from `since` on; if not `fresh`, its windows are there."""
    g = operator.groupings.index(query.grouping)
    lane, local = (0, g) if isinstance(operator.lanes[0].shape, TupleShape) else (g, 0)
    number = first = 1 + max((wanted.number for wanted in operator.wanted), default=-1)
    entry = query_entry(plan, query, first)
    counted = any(isinstance(p, ValueCounts) for aggregate in entry.aggregates for p in aggregate.partials)
    for window in query.windows:
        span = span_of(query, window)
        span = replace(span, since=since, values=counted and span.slide == 0)
        operator.wanted.append(Wanted(number, span, g, lane))
        if fresh:
            operator.lanes[lane].add(span, (local,))
        number += 1
    operator.queries.append(entry)


def need_same_rows(old: Plan, new: Plan, technique: Chosen, name: str) -> None:
    """An error unless the rows that a store holds serve both plans, of which one has the query `name`."""
    need_spillable(new)
    if technique != "1W":
        raise BadQuery(
            f"query {name!r} cannot be added or removed: this run within memory= keeps slices. Start it with "
            "memory=Budget(..., technique='1W'), or start another run."
        )
    if groupings_of(old) != groupings_of(new) or feeds_of(old) != feeds_of(new):
        raise BadQuery(
            f"query {name!r} cannot be added or removed: it has keys or aggregates of its own, and the rows "
            "that a run within memory= keeps are made for those it began with. Start another run."
        )


def share_budget(operator: SpillOperator, budget: Budget) -> None:
    """Share what the sums leave of the budget among the stores."""
    lanes = operator.lanes
    left = budget.memory - operator.sums_bytes - sum(lane.store.slots.nbytes for lane in lanes)
    least = sum(lane.store.layout.block_bytes * (len(lane.sliders) + 1) for lane in lanes)
    if left < least:
        keys = ", ".join(f"{len(slots.index):,}" for slots in operator.keys)
        raise OverBudget(
            f"memory= is {budget.memory:,} bytes, but the sums of {keys} keys and what waits for "
            f"the punctuation leave {max(0, left):,} for blocks, of which {least:,} are needed. Give "
            f"at least {budget.memory - left + least:,} bytes."
        )
    share = left // len(lanes)
    for lane in lanes:
        frames = share // lane.store.layout.block_bytes
        lane.store.resize(frames if budget.blocks is None else min(frames, budget.blocks))


def query_entry(plan: Plan, query: WindowQuery, first: int) -> QueryEntry:
    """How the answers of a query become its table; its windows are numbered from `first`."""
    return QueryEntry(
        query.name,
        query.grouping,
        tuple(range(first, first + len(query.windows))),
        bound_aggregates(plan, query),
        point_type(plan.stream, query),
        many=len(query.windows) > 1,
        early=False,
    )


def seen_in(time: Ints, keys: Sequence[Ints], pane: int) -> Seen:
    """What a first batch tells: its rate, its keys, and its keys in one pane on average.

    A batch of one instant tells no rate; it is taken for all that a pane holds.
    """
    length = int(time.max()) - int(time.min())
    rate = len(time) / (length or max(pane, 1))
    groups = tuple(float(len(np.unique(key))) for key in keys)
    if pane == 0:
        return Seen(rate, groups, groups)
    panes, place = np.unique((time - time.min()) // pane, return_inverse=True)
    # a batch shorter than a pane shows fewer keys than the pane will hold, but never more
    active = tuple(len(np.unique(place * (int(key.max()) + 1) + key)) / len(panes) for key in keys)
    return Seen(rate, groups, active)
