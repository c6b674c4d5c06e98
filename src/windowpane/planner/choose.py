"""Choose: a workload becomes decisions, purely."""

from __future__ import annotations

from dataclasses import dataclass

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
    final: Rule

    @property
    def lane_kind(self) -> Lane:
        """Which part of the core does the work."""
        assert isinstance(self.lane.then, Lane)
        return self.lane.then


def decide(plan: Plan, query: WindowQuery, window: Window) -> Decision:
    """The decisions for one window."""
    known = workload(plan.stream, query, window)
    return Decision(
        query,
        window,
        known,
        *(
            rules.first_match(t, known)
            for t in (rules.STORE, rules.SPLIT, rules.REMOVE, rules.LANE, rules.FINAL)
        ),
    )


def decisions(plan: Plan) -> tuple[Decision, ...]:
    """The decisions for every window of every query, in order."""
    return tuple(decide(plan, query, window) for query in plan.queries for window in query.windows)
