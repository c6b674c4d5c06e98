"""The decision tables: figures 4, 5 and 6 of Traub et al. 2019 as data, each row with its reason.

The first row that matches decides; `explain` prints `because`. Of FINAL every row that matches counts, as
each aggregate of a query is answered in its own way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from windowpane.planner.workload import Context, Demand, Measure, Workload


class Keep(Enum):
    """Figure 4: what is stored."""

    PARTIALS = "partials"
    UNSETTLED = "partials, and tuples until they are settled"
    TUPLES = "tuples"


class Split(Enum):
    """Figure 5: whether a slice may have to be cut later."""

    NEVER = "never"
    UNSETTLED = "only among unsettled tuples"
    ANYWHERE = "at any tuple"


class Remove(Enum):
    """Figure 6: whether a tuple may have to leave its slice, and what that costs.

    Here no tuple leaves a kept slice: those that may are not settled and wait outside (decisions/0008). The
    figure's two ways, incremental and recomputing, are the two in which windows are then answered.
    """

    NEVER = "never"
    INVERT = "among unsettled tuples, then differences"
    RECOMPUTE = "among unsettled tuples, then recombining"


class Lane(Enum):
    """Which part of the core does the work."""

    SLICES = "slices"
    ORDERED = "slices in event-time order"
    RANK = "slices by position"
    MARKERS = "marked windows"
    TUPLES = "kept tuples"


class Final(Enum):
    """How slices become windows."""

    DIFFERENCE = "differences of running totals"
    TREE = "a tree over the slices of closing windows"
    RUNS = "run-length-encoded sorted values"
    LISTS = "lists joined in order"
    ROW = "the one row of the window"


Choice = Keep | Split | Remove | Lane | Final


@dataclass(frozen=True)
class Rule:
    """If `when` holds, choose `then`."""

    when: Callable[[Workload], bool]
    then: Choice
    because: str


STORE = (  # figure 4
    Rule(
        lambda w: w.context is Context.FORWARD_AWARE,
        Keep.TUPLES,
        "later tuples reveal where this window begins or ends, so it may be cut at any tuple",
    ),
    Rule(lambda w: w.measure is Measure.ARRIVAL, Keep.PARTIALS, "a tuple's arrival position never changes"),
    Rule(lambda w: w.in_order, Keep.PARTIALS, "the stream is in order, so no tuple can reach a closed slice"),
    Rule(
        lambda w: w.measure is Measure.RANK,
        Keep.UNSETTLED,
        "a late tuple shifts the rank of every tuple after it, until the punctuation settles them",
    ),
    Rule(
        lambda w: w.context is Context.FORWARD_FREE,
        Keep.UNSETTLED,
        "a late marker moves the edges after it, until the punctuation settles them",
    ),
    Rule(
        lambda w: not w.commutative,
        Keep.UNSETTLED,
        "the aggregate is not commutative, so a late tuple must be combined in its place",
    ),
    Rule(
        lambda w: w.context is Context.SESSION,
        Keep.PARTIALS,
        "sessions only ever merge, so nothing is recomputed",
    ),
    Rule(lambda w: True, Keep.PARTIALS, "a late tuple folds into the partial of its slice"),
)

SPLIT = (  # figure 5
    Rule(lambda w: w.context is Context.FREE, Split.NEVER, "the edges are known in advance"),
    Rule(lambda w: w.context is Context.FORWARD_AWARE, Split.ANYWHERE, "the edges follow from later tuples"),
    Rule(
        lambda w: w.context is Context.SESSION, Split.NEVER, "slices no wider than the gap never need a cut"
    ),
    Rule(lambda w: w.in_order, Split.NEVER, "in order, every marker is known before the tuples after it"),
    Rule(lambda w: True, Split.UNSETTLED, "a late marker may cut what came before it"),
)

REMOVE = (  # figure 6
    Rule(lambda w: w.measure is not Measure.RANK, Remove.NEVER, "no tuple changes its slice"),
    Rule(lambda w: w.in_order, Remove.NEVER, "in order, no tuple changes its rank"),
    Rule(
        lambda w: w.invertible,
        Remove.INVERT,
        "a late tuple shifts ranks, so unsettled tuples are numbered anew; all partials are invertible",
    ),
    Rule(
        lambda w: True,
        Remove.RECOMPUTE,
        "a late tuple shifts ranks, so unsettled tuples are numbered anew; not all partials are invertible",
    ),
)

LANE = (
    Rule(lambda w: w.measure is not Measure.TIME, Lane.RANK, "the window counts tuples"),
    Rule(lambda w: w.context is Context.FORWARD_FREE, Lane.MARKERS, "markers in the data delimit the window"),
    Rule(lambda w: w.context is Context.FORWARD_AWARE, Lane.TUPLES, "the window needs its tuples"),
    Rule(lambda w: not w.commutative, Lane.ORDERED, "the aggregate depends on the order of tuples"),
    Rule(lambda w: True, Lane.SLICES, "tuples fold into slices in any order"),
)


def _one_row(w: Workload) -> bool:
    """Whether a window is combined while it grows, so that no slices are left to combine."""
    return w.context in (Context.SESSION, Context.FORWARD_FREE)


def _demands(demand: Demand) -> Callable[[Workload], bool]:
    return lambda w: demand in w.demands and not _one_row(w)


FINAL = (  # every row that matches
    Rule(_one_row, Final.ROW, "tuples are combined into it as they come"),
    Rule(
        _demands(Demand.SUBTRACT),
        Final.DIFFERENCE,
        "counts and integer sums are exact: one subtraction per window",
    ),
    Rule(
        _demands(Demand.COMBINE),
        Final.TREE,
        "without an exact inverse: a logarithmic number of combinations per window",
    ),
    Rule(
        _demands(Demand.MERGE),
        Final.RUNS,
        "every distinct value counts, so those of the slices are merged",
    ),
    Rule(_demands(Demand.JOIN), Final.LISTS, "every value is kept, in the order of its slice"),
)


def first_match(rules: tuple[Rule, ...], workload: Workload) -> Rule:
    """The rule that decides."""
    return next(rule for rule in rules if rule.when(workload))


def every_match(rules: tuple[Rule, ...], workload: Workload) -> tuple[Rule, ...]:
    """All rules that hold."""
    return tuple(rule for rule in rules if rule.when(workload))
