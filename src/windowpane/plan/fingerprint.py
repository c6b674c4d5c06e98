"""Fingerprint: what of a plan its state depends on, as plain text that can be stored and compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windowpane.plan.identity import identity
from windowpane.plan.nodes import Plan, Stream, WindowQuery
from windowpane.values.errors import BadState

Fingerprint = dict[str, Any]


def fingerprint(plan: Plan) -> Fingerprint:
    """The stream and the queries, each part as text; equal for plans that can share state."""
    return {
        "stream": fingerprint_of(plan.stream),
        "queries": {query.name: _query(query) for query in plan.queries},
    }


def fingerprint_of(stream: Stream) -> dict[str, str]:
    """The part of the stream."""
    return {
        **{f"type of column {name!r}": str(kind) for name, kind in stream.types},
        "columns": identity(stream.columns),
        "time": stream.time,
        "punctuation": identity(stream.policy),
        "lateness": str(stream.lateness),
        "max_ahead": str(stream.max_ahead),
        "ties": str(stream.ties),
        **({"required": identity(stream.required)} if stream.required else {}),
        **({"ids": identity(stream.ids)} if stream.ids else {}),
        **_derived(stream),
    }


def _derived(stream: Stream) -> dict[str, str]:
    """How rows and the columns that are read come from the source."""
    conditions = [text for column, text in stream.derived if not column]
    computed = {f"text of column {c!r}": text for c, text in stream.derived if c in stream.columns}
    return ({"where": " and ".join(conditions)} if conditions else {}) | computed


def _query(query: WindowQuery) -> dict[str, str]:
    return {
        "window": identity(query.windows),
        "aggregates": identity(query.aggregates),
        "keys": identity(query.keys),
        "emit": query.emit,
    }


def need_same(stored: Fingerprint, plan: Plan) -> None:
    """An error that says what changed, if another plan wrote the state."""
    now = fingerprint(plan)
    then, today = stored["queries"], now["queries"]
    # state is kept by the place of a query, so that their order counts, which comparing dicts leaves out
    if stored == now and list(then) == list(today):
        return
    changes = changes_of_stream(stored["stream"], now["stream"])
    changes += [f"query {name!r} is gone" for name in then if name not in today]
    changes += [f"query {name!r} is new" for name in today if name not in then]
    for name in then:
        if name in today:
            changes += _changes(f"of query {name!r}", then[name], today[name])
    order = f"the queries were in the order {', '.join(then)}, and are now in the order {', '.join(today)}"
    told = "; ".join(changes) or order
    remedy = "Resume with the old plan, or start anew."
    raise BadState(f"the snapshot was written by another plan: {told}. {remedy}")


def changes_of_stream(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What changed between two fingerprints of a stream, in words."""
    return _changes("of the stream", then, now)


def _changes(of: str, then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    names = dict.fromkeys([*then, *now])
    return [
        f"{name} {of} was {then.get(name, 'absent')}, is now {now.get(name, 'absent')}"
        for name in names
        if then.get(name) != now.get(name)
    ]
