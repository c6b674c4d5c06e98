"""Workload: what is known of the stream, a window and its aggregates (Traub et al. 2019, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from windowpane.core.aggregates import BoundAggregate
from windowpane.core.partials.lists import Lists
from windowpane.core.partials.runs import ValueCounts
from windowpane.plan.nodes import Stream, WindowQuery
from windowpane.values.windows import (
    ContextFreeWindow,
    Cumulative,
    Delimited,
    Landmark,
    Rows,
    Session,
    Sliding,
    Window,
)


class Context(Enum):
    """What must be known to place the edges of a window (Li 2008, section 6.1.2)."""

    FREE = "context free"
    FORWARD_FREE = "forward context free"
    FORWARD_AWARE = "forward context aware"
    SESSION = "session"


class Measure(Enum):
    """What a window is measured in."""

    TIME = "time"
    ARRIVAL = "arrival position"
    RANK = "event-time rank"


class Demand(Enum):
    """What the most demanding partial of an aggregate asks of final aggregation."""

    SUBTRACT = "an exact inverse"
    COMBINE = "combinations"
    MERGE = "merged values"
    JOIN = "joined lists"


@dataclass(frozen=True)
class Workload:
    """The characteristics that the decision tables ask about."""

    in_order: bool
    context: Context
    measure: Measure
    commutative: bool
    demands: frozenset[Demand]

    @property
    def invertible(self) -> bool:
        """Whether the core answers every aggregate by an exact difference; floats never are."""
        return self.demands == {Demand.SUBTRACT}


def context_of(window: Window) -> Context:
    """The class of a window."""
    match window:
        case Sliding() | Landmark() | Cumulative() | ContextFreeWindow() | Rows():
            return Context.FREE
        case Session():
            return Context.SESSION
        case Delimited():
            return Context.FORWARD_FREE
        case _:
            return Context.FORWARD_AWARE


def measure_of(window: Window) -> Measure:
    """The measure of a window; multi-measure windows find their tuples by time."""
    if isinstance(window, Rows):
        return Measure.ARRIVAL if window.order == "arrival" else Measure.RANK
    return Measure.TIME


def demand_of(aggregate: BoundAggregate) -> Demand:
    """Asked of the partials, which know the types: a sum of integers is subtracted, one of floats is not."""
    if any(isinstance(partial, Lists) for partial in aggregate.partials):
        return Demand.JOIN
    if any(isinstance(partial, ValueCounts) for partial in aggregate.partials):
        return Demand.MERGE
    exact = all(partial.invertible for partial in aggregate.partials)
    return Demand.SUBTRACT if exact else Demand.COMBINE


def workload(stream: Stream, query: WindowQuery, window: Window, bound: Sequence[BoundAggregate]) -> Workload:
    """The characteristics of one window of a query; `bound` are the query's aggregates."""
    return Workload(
        in_order=stream.in_order,
        context=context_of(window),
        measure=measure_of(window),
        commutative=all(aggregate.algebra.commutative for aggregate in query.aggregates),
        demands=frozenset(demand_of(aggregate) for aggregate in bound),
    )
