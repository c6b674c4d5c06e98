"""Workload: what is known of the stream, a window and its aggregates (Traub et al. 2019, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

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


@dataclass(frozen=True)
class Workload:
    """The characteristics that the decision tables ask about."""

    in_order: bool
    context: Context
    measure: Measure
    commutative: bool
    invertible: bool
    holistic: bool


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


def workload(stream: Stream, query: WindowQuery, window: Window) -> Workload:
    """The characteristics of one window of a query."""
    algebras = [aggregate.algebra for aggregate in query.aggregates]
    return Workload(
        in_order=stream.in_order,
        context=context_of(window),
        measure=measure_of(window),
        commutative=all(a.commutative for a in algebras),
        invertible=all(a.invertible for a in algebras),
        holistic=any(a.size == "holistic" for a in algebras),
    )
