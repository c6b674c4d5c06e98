"""Late rows and rejects in a job file: `late` and `rejects`, each a sink that any query's rows go to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from windowpane.jobs.document import Node
from windowpane.jobs.ends import DATABASES, FILES, ours, resolved
from windowpane.jobs.fields import Fields, text_of
from windowpane.jobs.job import QuerySpec, Sink
from windowpane.values.paths import local_path

STRAYS = {"late": "late rows", "rejects": "rejects"}
"""The outputs of a query beside its answers, and what they hold."""
_SINK = ("format", "path", "options", "partition_by", "rows")


def with_strays(queries: Sequence[QuerySpec], top: Fields, folder: Path) -> tuple[QuerySpec, ...]:
    """The queries with the sinks of their late rows and rejects; several get a directory each."""
    nodes = {name: node for name in STRAYS if (node := top.get(name)) is not None}
    found = []
    for query in queries:
        if query.name in nodes:
            raise query.node.error(f"the query has the name of the output {query.name!r}. Name it anew.")
        below = "" if len(queries) == 1 else f"/{query.name}"
        sinks = {name: _sink(node, name, folder, below) for name, node in nodes.items()}
        found.append(replace(query, strays=sinks))
    return tuple(found)


def _sink(node: Node, name: str, folder: Path, below: str) -> Sink:
    fields = Fields(node, _SINK, f"{name}: {{format: parquet, path: {name}}}")
    form = text_of(fields.need("format"))
    if form not in {*FILES, "console"}:
        raise fields.need("format").error(
            f"{STRAYS[name]} go to files or to the console, not to {form}. Write one of: "
            f"{', '.join((*FILES, 'console'))}."
        )
    path = None
    if form in FILES:
        path = resolved(text_of(fields.need("path")), folder)
        if local_path(path) is None:
            raise fields.need("path").error(
                f"{STRAYS[name]} need a local or mounted path, where a micro-batch can be published in one "
                "step. Name one, and copy from there."
            )
        path += below
    columns, rows = fields.texts("partition_by") or (), fields.whole("rows", 20)
    return Sink(form, path, None, fields.options("options"), columns, rows, node)


def need_apart(queries: Sequence[QuerySpec]) -> None:
    """Fail if two sinks of a job write to one place, or if late rows or rejects would lie among answers."""
    taken: list[tuple[str, str]] = []
    for what, sink, node in _sinks(queries):
        place = _place(sink)
        for other, theirs in taken:
            if place == theirs or (what != other and _within(place, theirs)):
                shown = f"the table {sink.table!r}" if sink.format in DATABASES else repr(place)
                raise node.error(
                    f"{shown} is for the {what} of a query, but {other} of the job go there too. Give each a "
                    "place of its own, not within that of another."
                )
        taken += [(what, place)] if place else []


def _within(place: str, other: str) -> bool:
    """Whether one of two places lies within the other."""
    return bool(place) and (f"{place}/".startswith(f"{other}/") or f"{other}/".startswith(f"{place}/"))


def _sinks(queries: Sequence[QuerySpec]) -> Iterator[tuple[str, Sink, Node]]:
    for query in queries:
        yield "answers", query.sink, query.sink.node or query.node
        for name, sink in query.strays.items():
            yield STRAYS[name], sink, sink.node or query.node


def _place(sink: Sink) -> str:
    """Where a sink writes, the same text for the same place; empty where that cannot be told."""
    if sink.path is None or sink.format not in {*FILES, *DATABASES}:
        return ""
    local = None if sink.format == "postgresql" else local_path(sink.path)
    path = sink.path.rstrip("/") if local is None else os.path.normpath(local)
    return f"{path}, table {sink.table}" if sink.format in DATABASES else path


def need_one_pass(queries: Sequence[QuerySpec]) -> None:
    """Fail if a sink of Spark's own cannot be written together with late rows and rejects."""
    for query in queries:
        if query.strays and not ours(query.sink) and query.sink.format != "kafka":
            raise (query.sink.node or query.node).error(
                f"Spark writes the sink {query.sink.format} by itself, so that no late rows or rejects can "
                "be written in the same pass. Use files on a local path, sqlite, postgresql, kafka or "
                "console, or remove late and rejects."
            )
