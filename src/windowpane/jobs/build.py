"""Build a job's queries over a Spark session, and start them. Errors carry the line they are about."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import windowpane as wp
from windowpane.jobs.document import Node
from windowpane.jobs.fields import located
from windowpane.jobs.job import Job, QuerySpec, Source
from windowpane.plan.nodes import Stream
from windowpane.query import Query
from windowpane.spark.session import ERRORS, observed_input, reason

_OF_RECORD = ("topic", "partition", "offset")
"""Columns of Kafka's own that stay beside those of the value."""


def read(job: Job, session: Any) -> Any:
    """The source as a DataFrame, streaming unless the trigger is `batch`."""
    source, node = job.source, job.section("source")

    def frame() -> Any:
        reader = (session.readStream if job.streaming else session.read).format(source.format)
        value = source.schema is not None and source.format in {"kafka", "socket"}
        schema = source.schema
        if schema is None and source.format == "parquet" and source.path is not None:
            schema = session.read.parquet(source.path).schema
        if schema is not None and not value:
            reader = reader.schema(schema)
        reader = reader.options(**source.options)
        found = reader.load() if source.path is None else reader.load(source.path)
        if value:
            own = session.createDataFrame([], source.schema).columns
            about = [name for name in _OF_RECORD if name in found.columns and name not in own]
            parsed = f"inline(array(from_json(cast(value as string), {_text(source.schema)})))"
            found = found.selectExpr(parsed, *about)
        found = found.selectExpr(*source.select) if source.select else found
        return found.where(source.where) if source.where else found

    return sparks(node, frame)


def _text(text: str | None) -> str:
    """A text as Spark SQL writes it."""
    escaped = (text or "").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def sparks(node: Node, make: Callable[[], Any]) -> Any:
    """What `make` gives; an error of Spark is told in a line with the place in the job file."""
    try:
        return make()
    except ERRORS as error:
        raise node.error(reason(error)) from error


def queries(job: Job, source: Any = None, **how: Any) -> list[Query]:
    """The job's queries over a source, in the order of the file."""
    node = job.section("stream")
    stream = located(node, lambda: wp.stream(source, **job.stream, **how))
    stream = replace(stream, node=_derived(stream.node, job.source))
    return [located(spec.node, partial(_query, stream, spec)) for spec in job.queries]


def _derived(stream: Stream, source: Source) -> Stream:
    """The stream with the texts that its rows come from: a restart with others is refused."""
    for text in source.select:
        alias = re.fullmatch(r"(?is)(.+?)\s+as\s+`?(\w+)`?\s*", text)
        if alias:
            stream = stream.computing({alias[2]: alias[1]})
        elif not re.fullmatch(r"[\w.`*\s]+", text):
            stream = stream.where(f"select {text}")
    return stream if source.where is None else stream.where(source.where)


def _query(stream: Any, spec: QuerySpec) -> Query:
    query: Query = stream.window(*spec.windows, keys=spec.keys).agg(
        *spec.aggregates, name=spec.name, emit=spec.emit
    )
    return query


def answers(job: Job, session: Any) -> list[tuple[QuerySpec, Any]]:
    """Each query with the DataFrame of its answers."""
    frame = read(job, session)
    if job.streaming:
        frame = observed_input(frame, job.stream["time"])
    found = []
    for spec, query in zip(job.queries, queries(job, frame), strict=True):
        make = partial(query.to_spark, control=job.control(spec), memory=job.memory)
        found.append((spec, located(spec.node, partial(sparks, spec.node, make))))
    return found
