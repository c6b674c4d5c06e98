"""Load a job file: its tree becomes a `Job`, checked as far as that goes without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from windowpane.jobs.calls import Call, Kind, make, parse
from windowpane.jobs.document import BadJob, Node, read_document, shortened
from windowpane.jobs.ends import read_sink, read_source, resolved
from windowpane.jobs.fields import (
    SPLIT,
    Fields,
    choice,
    items_of,
    literal,
    located,
    shown,
    text_of,
    texts_of,
)
from windowpane.jobs.job import Job, NullKeys, QuerySpec, Sink, Source, Trigger, TriggerKind
from windowpane.jobs.provisional import need_steady
from windowpane.jobs.strays import need_apart, need_one_pass, with_strays
from windowpane.values.durations import microseconds
from windowpane.values.paths import local_path
from windowpane.values.sizes import size_in_bytes

_TOP = (
    *("source", "stream", "query", "queries", "sink", "late", "rejects", "trigger", "checkpoint", "memory"),
    *("master", "spark"),
)
_STREAM = (
    *("time", "keys", "null_keys", "delay", "punctuation", "lateness", "max_ahead", "ties", "required"),
    *("ids", "name"),
)
_STREAM_EXAMPLE = "stream: {time: ts, keys: [symbol], delay: 2 s}"
_QUERY = ("name", "window", "windows", "aggregates", "keys", "emit", "sink")
_TRIGGERS: tuple[TriggerKind, ...] = ("available_now", "drain", "once", "batch")
_KEEPS = ("console", "memory")
"""Sinks that forget when the job ends, so that it need not remember either."""


def load(file: Path) -> Job:
    """Read and check a job file; errors name its line and the remedy."""
    root = read_document(file)
    top = Fields(root, _TOP, "source:, stream:, query: and sink:")
    source = read_source(top.need("source"), file.parent)
    stream = _stream(top.need("stream"))
    trigger = _trigger(top.get("trigger"), source)
    queries = with_strays(_queries(top, file.parent), top, file.parent)
    need_apart(queries)
    if trigger.kind != "batch":
        need_one_pass(queries)
        need_steady(queries, stream["keys"])
    checkpoint = _checkpoint(top, queries, trigger, file.parent)
    settings = top.options("spark")
    memory = _memory(top.get("memory"), trigger)
    job = Job(source, stream, queries, trigger, checkpoint, top.text("master"), settings, memory, root)
    return replace(job, null_keys=_null_keys(top.need("stream")))


def _stream(node: Node) -> dict[str, Any]:
    fields = Fields(node, _STREAM, _STREAM_EXAMPLE)
    found: dict[str, Any] = {"time": text_of(fields.need("time")), "keys": fields.texts("keys") or ()}
    for name in ("delay", "lateness", "max_ahead"):
        length = fields.get(name)
        if length is not None:
            found[name] = _measured(length, partial(_microseconds, length))
    if "max_ahead" in fields and fields.get("max_ahead") is None:
        found["max_ahead"] = None
    for name in ("required", "ids"):
        if (columns := fields.texts(name)) is not None:
            found[name] = columns
    for name in ("ties", "name"):
        if (text := fields.text(name)) is not None:
            found[name] = text
    policy = fields.get("punctuation")
    if policy is not None:
        if "delay" in found:
            raise policy.error("delay is given too. Remove one of them: a delay is the policy delay(...).")
        found["punctuation"] = _made(policy, "policy")
    return found


def _null_keys(stream: Node) -> NullKeys:
    node = Fields(stream, _STREAM, _STREAM_EXAMPLE).get("null_keys")
    kept = node is not None and choice(node, ("reject", "keep")) == "keep"
    return "keep" if kept else "reject"


def _measured(node: Node, read: Callable[[], int]) -> int:
    """A length or a size; of too many digits Python itself makes nothing, and tells no line."""
    try:
        return located(node, read)
    except BadJob:
        raise
    except (ValueError, OverflowError):
        raise node.error(f"{shortened(str(node.value))!r} has too many digits. Write less.") from None


def _microseconds(node: Node) -> int:
    if isinstance(node.value, bool) or not isinstance(node.value, str | int):
        raise node.error(f"this must be a duration such as 2 s, not {shown(node)}.")
    return microseconds(node.value)


def _memory(node: Node | None, trigger: Trigger) -> int | None:
    if node is None:
        return None
    if trigger.kind == "batch":
        raise node.error("a batch job takes each bucket's rows in at once. Remove memory, or the trigger.")
    if isinstance(node.value, bool) or not isinstance(node.value, str | int):
        raise node.error(f"this must be a size such as 64 MB, not {shown(node)}.")
    size = node.value
    return _measured(node, lambda: size_in_bytes(size))


def _queries(top: Fields, folder: Path) -> tuple[QuerySpec, ...]:
    one, many = top.get("query"), top.get("queries")
    if (one is None) == (many is None):
        problem = "'query' is missing" if one is None else "both query and queries are there"
        raise top.node.error(f"{problem}. Write query: {{window: tumbling(1 min), aggregates: [count()]}}.")
    node = one or many
    assert node is not None
    items = items_of(node)
    if not items:
        raise node.error("the list is empty. Give at least one query.")
    shared = top.get("sink")
    names: dict[str, Node] = {}
    found = []
    for number, item in enumerate(items):
        fields = Fields(item, _QUERY, "{window: tumbling(1 min), aggregates: [count()]}")
        name = fields.text("name", "query" if len(items) == 1 else f"query_{number + 1}")
        if not name.isidentifier():
            raise item.error(f"{name!r} is no name for a query. Use letters, digits and underscores.")
        if name in names:
            raise item.error(f"two queries are named {name!r}. Give each its own name.")
        names[name] = item
        own = fields.get("sink") or shared
        if own is None:
            raise top.node.error("'sink' is missing. Write: sink: {format: console}.")
        alone = len(items) == 1 or fields.get("sink") is not None
        found.append(_query(fields, name, read_sink(own, folder, name, alone=alone)))
    return tuple(found)


def _query(fields: Fields, name: str, sink: Sink) -> QuerySpec:
    if fields.get("window") is not None and fields.get("windows") is not None:
        raise fields.node.error("both window and windows are there. Keep one; either may be a list.")
    windows = fields.get("windows") or fields.need("window")
    emit = fields.get("emit")
    return QuerySpec(
        name,
        tuple(_made(item, "window") for item in items_of(windows)),
        _aggregates(fields.need("aggregates")),
        fields.texts("keys") if fields.get("keys") is not None else None,
        "update" if emit is not None and choice(emit, ("final", "update")) == "update" else "final",
        sink,
        fields.node,
    )


def _aggregates(node: Node) -> tuple[Any, ...]:
    """A list of calls; or a mapping from result columns to calls."""
    if isinstance(node.value, dict):
        return tuple(_made(child, "aggregate").named(name) for name, child in node.value.items())
    return tuple(_made(item, "aggregate") for item in items_of(node))


def _made(node: Node, kind: Kind) -> Any:
    """The window, aggregate or policy that a text or a mapping writes."""
    return located(node, lambda: make(_call(node, kind), kind))


def _call(node: Node, kind: Kind) -> Call:
    if not isinstance(node.value, dict):
        text = text_of(node)
        if text.count("(") != text.count(")"):
            raise node.error(f"{shortened(text)!r} has brackets that do not match. {SPLIT}".strip())
        return parse(text, kind)
    values = dict(node.value)
    per, output = values.pop("per", None), values.pop("as", None)
    if len(values) != 1:
        raise node.error(f"a {kind} is one function and its arguments, such as {{session: {{gap: 30 s}}}}.")
    ((function, arguments),) = values.items()
    columns = None if per is None else texts_of(per)
    given, named = _arguments(arguments)
    return Call(function, given, named, columns, None if output is None else text_of(output))


def _arguments(node: Node) -> tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]:
    match node.value:
        case dict():
            return (), tuple((name, literal(child)) for name, child in node.value.items())
        case tuple():
            return tuple(literal(child) for child in node.value), ()
        case None:
            return (), ()
        case _:
            return (node.value,), ()


def _trigger(node: Node | None, source: Source) -> Trigger:
    if node is None:
        return Trigger()
    trigger = _trigger_of(node)
    if trigger.kind in {"batch", "drain"} and source.format in {"rate", "socket"}:
        raise node.error(f"the source {source.format} never ends, so that no {trigger.kind} can end it.")
    return trigger


def _trigger_of(node: Node) -> Trigger:
    if isinstance(node.value, dict):
        fields = Fields(node, ("processing_time",), "trigger: {processing_time: 2 s}")
        every = fields.need("processing_time")
        return Trigger("processing_time", _measured(every, partial(_microseconds, every)))
    text = text_of(node)
    if text.startswith("processing_time"):
        length = text.removeprefix("processing_time").strip().strip("()").strip()
        return Trigger("processing_time", _measured(node, partial(microseconds, length.strip("\"'"))))
    kinds = {str(kind): kind for kind in _TRIGGERS}
    return Trigger(kinds[choice(node, (*_TRIGGERS, "processing_time 2 s"))])


def _need_lasting(checkpoint: Node, queries: tuple[QuerySpec, ...], trigger: Trigger) -> None:
    """A sink in memory forgets what the checkpoint says was written, so Spark starts none from one."""
    if any(query.sink.format == "memory" for query in queries):
        other = (
            "use trigger: batch, which closes every window too" if trigger.kind == "drain" else "remove it"
        )
        raise checkpoint.error(
            "the sink memory forgets its answers when the job ends, so that none could go on from a "
            f"checkpoint. Choose another sink such as console, or {other}."
        )


def _checkpoint(top: Fields, queries: tuple[QuerySpec, ...], trigger: Trigger, folder: Path) -> str | None:
    node = top.get("checkpoint")
    if node is not None:
        if trigger.kind == "batch":
            raise node.error("a batch job keeps no checkpoint. Remove it, or choose another trigger.")
        found = resolved(text_of(node), folder)
        _need_lasting(node, queries, trigger)
        if trigger.kind == "drain" and local_path(found) is None:
            raise node.error("trigger: drain needs a checkpoint on a local or mounted path. Name one.")
        return found
    if trigger.kind == "drain":
        raise top.node.error(
            "'checkpoint' is missing, but trigger: drain needs it. Write: checkpoint: a-directory."
        )
    for sink in (sink for query in queries for sink in (query.sink, *query.strays.values())):
        if trigger.kind != "batch" and sink.format not in _KEEPS:
            raise top.node.error(
                f"'checkpoint' is missing, but the sink {sink.format} outlives the job, which must "
                "go on where it stopped. Write: checkpoint: a-directory."
            )
    return None
