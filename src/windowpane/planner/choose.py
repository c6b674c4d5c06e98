"""Choose: a workload becomes decisions, purely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.core.aggregates import BoundAggregate, bind
from windowpane.plan.nodes import Plan, WindowQuery
from windowpane.planner import rules
from windowpane.planner.rules import Lane, Rule
from windowpane.planner.workload import Workload, workload
from windowpane.values.windows import Window


@dataclass(frozen=True)
class Decision:
    """What was decided for one window of one query, and the rules that decided it."""

    query: WindowQuery
    window: Window
    workload: Workload
    store: Rule
    split: Rule
    remove: Rule
    lane: Rule
    final: tuple[Rule, ...]

    @property
    def lane_kind(self) -> Lane:
        """Which part of the core does the work."""
        assert isinstance(self.lane.then, Lane)
        return self.lane.then


def bound_aggregates(plan: Plan, query: WindowQuery) -> tuple[BoundAggregate, ...]:
    """The aggregates of a query with the types of the stream."""
    types = dict(plan.stream.types)
    return tuple(bind(aggregate, types) for aggregate in query.aggregates)


def decide(plan: Plan, query: WindowQuery, window: Window, bound: Sequence[BoundAggregate]) -> Decision:
    """The decisions for one window; `bound` are the query's aggregates."""
    known = workload(plan.stream, query, window, bound)
    return Decision(
        query,
        window,
        known,
        store=rules.first_match(rules.STORE, known),
        split=rules.first_match(rules.SPLIT, known),
        remove=rules.first_match(rules.REMOVE, known),
        lane=rules.first_match(rules.LANE, known),
        final=rules.every_match(rules.FINAL, known),
    )


def decisions(plan: Plan) -> tuple[Decision, ...]:
    """The decisions for every window of every query, in order."""
    return tuple(
        decide(plan, query, window, bound)
        for query in plan.queries
        for bound in (bound_aggregates(plan, query),)
        for window in query.windows
    )
