"""Explain: a plan and its decisions as text. It prints the rows of the planner's own tables."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pyarrow as pa

from windowpane.plan.identity import identity
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
    unit = stream.time if pa.types.is_integer(stream.type(stream.time)) else None
    known_by = f", duplicates known by {', '.join(stream.ids)}" if stream.ids else ""
    how = f"{_policy(stream.policy, unit)}{_lateness(stream, unit)}{known_by}"
    lines = [f"{stream.name} on {stream.time}, {how}"]
    placed = compile_plan(plan)[1]
    lanes = Counter(p.lane_name for p in placed)
    known = list(zip(decisions(plan), placed, strict=True))
    width = max((len(rule.then.value) for d, _ in known for _, rule in _rules(d)), default=0)
    for query in plan.queries:
        names = ", ".join(_call(a) for a in query.aggregates)
        by = f" by {', '.join(query.grouping)}" if query.grouping else ""
        lines.append(f"└ {query.name}: {names}{by}")
        mine = [(p.lane_name, decision) for decision, p in known if decision.query is query]
        for (lane, rules), group in groupby(mine, lambda pair: (pair[0], _rules(pair[1]))):
            lines += _windows([decision for _, decision in group], lanes[lane] - 1, unit)
            lines += [f"      {label:<8}{r.then.value:<{width}}  because {r.because}" for label, r in rules]
    return "\n".join(lines) + "\n"


def _rules(decision: Decision) -> tuple[tuple[str, Rule], ...]:
    return (
        ("keep", decision.store),
        ("split", decision.split),
        ("remove", decision.remove),
        ("lane", decision.lane),
        *(("final", rule) for rule in decision.final),
    )


def _windows(alike: list[Decision], sharing: int, unit: str | None) -> list[str]:
    shared = f", shares its state with {sharing} other window{'s' * (sharing > 1)}" if sharing else ""
    kind = f"({alike[0].workload.context.value}{shared})"
    listed = alike if len(alike) <= _MOST else alike[: _MOST - 1]
    lines = [f"  └ {window_text(decision.window, unit)} {kind}" for decision in listed]
    more = len(alike) - len(listed)
    return [*lines, f"  └ and {more} more windows of this kind"] if more else lines


def window_text(window: Window, unit: str | None = None) -> str:  # noqa: PLR0911 - one line per window type
    """A window in words; `unit` is what lengths count where the stream's measure is not a time."""
    match window:
        case Sliding(size, slide) if size == slide:
            return f"tumbling {_length(size, unit)}"
        case Sliding(size, slide):
            return f"sliding {_length(size, unit)} every {_length(slide, unit)}"
        case Landmark(slide, _):
            return f"landmark every {_length(slide, unit)}"
        case Cumulative(step, period):
            return f"cumulative by {_length(step, unit)} within {_length(period, unit)}"
        case Session(gap):
            return f"session with gaps up to {_length(gap, unit)}"
        case Rows(size, slide, order, partition):
            return f"{size} rows every {slide} rows by {order}{_per(partition)}"
        case Delimited(start, end):
            return f"delimited by {' and '.join(c for c in (start, end) if c)}"
        case PerRow(size, every, order, partition):
            which = "every row" if every == 1 else f"every {every} rows by {order}"
            return f"{_length(size, unit)} up to {which}{_per(partition)}"
        case LastRows(size, every, _, partition):
            return f"last {size} rows every {_length(every, unit)}{_per(partition)}"
        case _:
            return identity(window)


def _per(partition: tuple[str, ...]) -> str:
    return f" per {'key' if partition == OWN_KEYS else ', '.join(partition)}" if partition else ""


def _length(length: int, unit: str | None) -> str:
    return render(length) if unit is None else f"{length} {unit}"


def _call(aggregate: AnyAggregate) -> str:
    """The call as a user writes it, and the column's name if it has one of its own."""
    parts = [*aggregate.columns]
    if isinstance(aggregate, Aggregate) and aggregate.function != "median":
        parts += [f"{name}={value}" for name, value in aggregate.parameters]
    call = f"{aggregate.function}({', '.join(parts)})"
    return call if aggregate.output is None else f"{aggregate.output} = {call}"


def _lateness(stream: Stream, unit: str | None) -> str:
    return f", revised for {_length(stream.lateness, unit)} after that" if stream.lateness else ""


def _policy(policy: Policy, unit: str | None) -> str:  # noqa: PLR0911 - one line per policy
    match policy:
        case Delay(0):
            return "in order"
        case Delay(length):
            return f"out of order by up to {_length(length, unit)}"
        case Slack(rows):
            return f"out of order by up to {rows} rows"
        case External(column):
            return f"punctuated by column {column}"
        case Manual():
            return "punctuated by hand"
        case Heartbeat(idle, lag, inner):
            lull = f"by the clock minus {_length(lag, unit)} after {render(idle)} of silence"
            return f"{_policy(inner, unit)}, {lull}"
        case Melded(source, inner):
            return f"melded by {source}, each {_policy(inner, unit)}"
