"""The choice of a technique within a memory budget in words: the numbers behind it, for `explain`."""

from __future__ import annotations

import pyarrow as pa

from windowpane.plan.nodes import Plan
from windowpane.planner.spill import (
    Seen,
    SpillChoice,
    choose,
    feeds_of,
    groupings_of,
    keeps_values,
    need_spillable,
    pane_of,
    spans_of,
)
from windowpane.values.sizes import Budget


def explain_memory(plan: Plan, budget: Budget, rate: float, groups: float) -> str:
    """The choice for a stream of which only this is known; `rate` is per second of time."""
    need_spillable(plan)
    measured = pa.types.is_integer(plan.stream.type(plan.stream.time))
    per_unit = rate if measured else rate / 1e6
    pane = pane_of(spans_of(plan))
    known = [1.0 if not grouping else groups for grouping in groupings_of(plan)]
    active = tuple(min(g, max(1.0, per_unit * pane)) if pane else g for g in known)
    seen = Seen(per_unit, tuple(known), active)
    return explain_choice(plan, budget, choose(plan, budget, seen), seen)


def explain_choice(plan: Plan, budget: Budget, choice: SpillChoice, seen: Seen) -> str:
    """The numbers behind the choice, as lines for `explain`."""
    spans = spans_of(plan)
    values = keeps_values(plan)
    two = "keeps no values" if values else "needs panes"
    if choice.two_level is not None:
        two = _bytes(choice.two_level)
    more = ", and 16 B for each distinct value of a key in a window" if values else ""
    if any(feed.texts for feed in feeds_of(plan)):
        more += ", and the texts"
    measured = pa.types.is_integer(plan.stream.type(plan.stream.time))
    rate = (
        f"{seen.rate:,.6g} tuples per {plan.stream.time}" if measured else f"{seen.rate * 1e6:,.6g} tuples/s"
    )
    keys = ", ".join(f"{groups:,.0f}" for groups in seen.groups)
    count = f"{len(spans)} window{'s' * (len(spans) > 1)}"
    lines = [
        f"      memory  {_bytes(budget.memory)} for {count}, at {rate} and {keys} keys",
        f"      1W      {_bytes(choice.one_window)}  by formula 2.2{more}",
        f"      2LA     {two}  by formula 2.1",
        f"      choose  {choice.technique}  because {choice.because}",
    ]
    return "\n".join(lines) + "\n"


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"
