"""Explain: a plan and its decisions as text. It prints the planner's own reasons, so it cannot lie."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from windowpane.plan.nodes import AnyAggregate, Plan, Stream
from windowpane.planner.choose import Decision, decisions
from windowpane.planner.compile import compile_plan
from windowpane.planner.rules import Rule
from windowpane.values.aggregates import Aggregate
from windowpane.values.durations import render
from windowpane.values.punctuation import Delay, External, Heartbeat, Manual, Melded, Policy, Slack
from windowpane.values.windows import (
    OWN_KEYS,
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

_MOST = 4
"""Windows with the same decisions that are listed one by one; more are summed up."""


def explain_plan(plan: Plan) -> str:
    """The plan as an aligned text; windows that are treated alike share one set of reasons."""
    stream = plan.stream
    lines = [f"{stream.name} on {stream.time}, {_policy(stream.policy)}{_lateness(stream)}"]
    placed = compile_plan(plan)[1]
    lanes = Counter(p.lane_name for p in placed)
    known = list(zip(decisions(plan), placed, strict=True))
    width = max((len(rule.then.value) for d, _ in known for _, rule in _rules(d)), default=0)
    for query in plan.queries:
        names = ", ".join(_call(a) for a in query.aggregates)
        by = f" by {', '.join(query.grouping)}" if query.grouping else ""
        lines.append(f"└ {query.name}: {names}{by}")
        mine = [pair for pair in known if pair[0].query is query]
        for _, group in groupby(mine, lambda pair: (pair[1].lane_name, _rules(pair[0]))):
            alike = [decision for decision, _ in group]
            lines += _windows(alike, lanes[mine[0][1].lane_name] - 1)
            lines += [
                f"      {label:<8}{r.then.value:<{width}}  because {r.because}"
                for label, r in _rules(alike[0])
            ]
    return "\n".join(lines) + "\n"


def _rules(decision: Decision) -> tuple[tuple[str, Rule], ...]:
    return (
        ("keep", decision.store),
        ("split", decision.split),
        ("remove", decision.remove),
        ("lane", decision.lane),
        ("final", decision.final),
    )


def _windows(alike: list[Decision], sharing: int) -> list[str]:
    shared = f", shares its slices with {sharing} other window{'s' * (sharing > 1)}" if sharing else ""
    kind = f"({alike[0].workload.context.value}{shared})"
    listed = alike if len(alike) <= _MOST else alike[: _MOST - 1]
    lines = [f"  └ {window_text(decision.window)} {kind}" for decision in listed]
    more = len(alike) - len(listed)
    return [*lines, f"  └ and {more} more windows of this kind"] if more else lines


def window_text(window: Window) -> str:  # noqa: PLR0911 - one line per window type
    """A window in words."""
    match window:
        case Sliding(size, slide, _, on) if size == slide:
            return f"tumbling {_length(size, on)}"
        case Sliding(size, slide, _, on):
            return f"sliding {_length(size, on)} every {_length(slide, on)}"
        case Landmark(slide, _, _, on):
            return f"landmark every {_length(slide, on)}"
        case Cumulative(step, period, _, on):
            return f"cumulative by {_length(step, on)} within {_length(period, on)}"
        case Session(gap, on):
            return f"session with gaps up to {_length(gap, on)}"
        case Rows(size, slide, order, partition):
            return f"{size} rows every {slide} rows by {order}{_per(partition)}"
        case Delimited(start, end):
            return f"delimited by {' and '.join(c for c in (start, end) if c)}"
        case PerRow(size, every, order, partition):
            which = "every row" if every == 1 else f"every {every} rows by {order}"
            return f"{render(size)} up to {which}{_per(partition)}"
        case LastRows(size, every, _, partition):
            return f"last {size} rows every {render(every)}{_per(partition)}"
        case _:
            return repr(window)


def _per(partition: tuple[str, ...]) -> str:
    return f" per {'key' if partition == OWN_KEYS else ', '.join(partition)}" if partition else ""


def _length(length: int, on: str | None) -> str:
    return render(length) if on is None else f"{length} {on}"


def _call(aggregate: AnyAggregate) -> str:
    """The call as a user writes it, and the column's name if it has one of its own."""
    parts = [*aggregate.columns]
    if isinstance(aggregate, Aggregate) and aggregate.function != "median":
        parts += [f"{name}={value}" for name, value in aggregate.parameters]
    call = f"{aggregate.function}({', '.join(parts)})"
    return call if aggregate.output is None else f"{aggregate.output} = {call}"


def _lateness(stream: Stream) -> str:
    return f", revised for {render(stream.lateness)} after that" if stream.lateness else ""


def _policy(policy: Policy) -> str:  # noqa: PLR0911 - one line per policy
    match policy:
        case Delay(0):
            return "in order"
        case Delay(length):
            return f"out of order by up to {render(length)}"
        case Slack(rows):
            return f"out of order by up to {rows} rows"
        case External(column):
            return f"punctuated by column {column}"
        case Manual():
            return "punctuated by hand"
        case Heartbeat(idle, lag, inner):
            return f"{_policy(inner)}, by the clock minus {render(lag)} after {render(idle)} of silence"
        case Melded(source, inner):
            return f"melded by {source}, each {_policy(inner)}"
