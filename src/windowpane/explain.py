"""Explain: a plan and its decisions as text. It prints the planner's own reasons, so it cannot lie."""

from __future__ import annotations

from windowpane.plan.nodes import Plan, Stream
from windowpane.planner.choose import Decision, decisions
from windowpane.planner.compile import compile_plan
from windowpane.values.durations import render
from windowpane.values.punctuation import Delay, External, Heartbeat, Manual, Melded, Policy, Slack
from windowpane.values.windows import (
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
"""Windows of one kind that are listed one by one; more are summed up."""


def explain_plan(plan: Plan) -> str:
    """The plan as an aligned text."""
    stream = plan.stream
    lines = [f"{stream.name} on {stream.time}, {_policy(stream.policy)}{_lateness(stream)}"]
    placed = compile_plan(plan)[1]
    lanes = [p.lane_name for p in placed]
    for query in plan.queries:
        names = ", ".join(_call(a) for a in query.aggregates)
        lines.append(
            f"└ {query.name}: {names}" + (f" by {', '.join(query.grouping)}" if query.grouping else "")
        )
        mine = [(d, p.lane_name) for d, p in zip(decisions(plan), placed, strict=True) if d.query is query]
        for decision, lane in mine[:_MOST]:
            lines += _window(decision, lanes.count(lane) - 1)
        if len(mine) > _MOST:
            lines.append(f"  └ and {len(mine) - _MOST} more windows")
    return "\n".join(lines) + "\n"


def _window(decision: Decision, sharing: int) -> list[str]:
    shared = f", shares its slices with {sharing} other window{'s' * (sharing > 1)}" if sharing else ""
    lines = [f"  └ {window_text(decision.window)} ({decision.workload.context.value}{shared})"]
    for label, rule in (
        ("keep", decision.store),
        ("split", decision.split),
        ("remove", decision.remove),
        ("lane", decision.lane),
        ("final", decision.final),
    ):
        lines.append(f"      {label:<8}{rule.then.value:<44} because {rule.because}")
    return lines


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
            return f"{render(size)} up to every {every}. row by {order}{_per(partition)}"
        case LastRows(size, every, _, partition):
            return f"last {size} rows every {render(every)}{_per(partition)}"
        case _:
            return repr(window)


def _per(partition: tuple[str, ...]) -> str:
    return f" per {', '.join(partition)}" if partition else ""


def _length(length: int, on: str | None) -> str:
    return render(length) if on is None else f"{length} {on}"


def _call(aggregate: object) -> str:
    name = getattr(aggregate, "name", "")
    call = f"{getattr(aggregate, 'function', name)}({', '.join(getattr(aggregate, 'columns', ()))})"
    return call if call.startswith(name) or name.startswith(call.split("(", maxsplit=1)[0]) else f"{name} = {call}"


def _lateness(stream: Stream) -> str:
    return f", revised for {render(stream.lateness)} after that" if stream.lateness else ""


def _policy(policy: Policy) -> str:
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
