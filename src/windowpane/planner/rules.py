"""The decision tables: figures 4, 5 and 6 of Traub et al. 2019 as data, each row with its reason.

The first row that matches decides; `explain` prints `because`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from windowpane.planner.workload import Context, Measure, Workload


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
    """Figure 6: how a tuple leaves a slice."""

    NEVER = "never"
    INVERT = "by inverting"
    RECOMPUTE = "by recomputing"


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
    Rule(lambda w: w.invertible, Remove.INVERT, "the aggregate is invertible: running totals are subtracted"),
    Rule(
        lambda w: True, Remove.RECOMPUTE, "the aggregate is not invertible: unsettled slices are folded anew"
    ),
)

LANE = (
    Rule(lambda w: w.measure is not Measure.TIME, Lane.RANK, "the window counts tuples"),
    Rule(lambda w: w.context is Context.FORWARD_FREE, Lane.MARKERS, "markers in the data delimit the window"),
    Rule(lambda w: w.context is Context.FORWARD_AWARE, Lane.TUPLES, "the window needs its tuples"),
    Rule(lambda w: not w.commutative, Lane.ORDERED, "the aggregate depends on the order of tuples"),
    Rule(lambda w: True, Lane.SLICES, "tuples fold into slices in any order"),
)

FINAL = (
    Rule(lambda w: w.holistic, Final.RUNS, "the partial has no constant bound"),
    Rule(
        lambda w: w.invertible, Final.DIFFERENCE, "one subtraction per window, however many slices it spans"
    ),
    Rule(lambda w: True, Final.TREE, "a logarithmic number of combinations per window"),
)


def first_match(rules: tuple[Rule, ...], workload: Workload) -> Rule:
    """The rule that decides."""
    return next(rule for rule in rules if rule.when(workload))
