"""Build a job's queries over a Spark session, and start them. Errors carry the line they are about."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import windowpane as wp
from windowpane.core.required import WELL_FORMED
from windowpane.jobs.document import Node
from windowpane.jobs.fields import located
from windowpane.jobs.job import Job, QuerySpec, Source
from windowpane.jobs.rows import Opened, opened
from windowpane.plan.nodes import Stream
from windowpane.query import Query
from windowpane.spark.outputs import Outputs
from windowpane.spark.session import ERRORS, observed_input, reason

_PLAIN = re.compile(r"\s*(\*|\w+|`([^`]|``)+`)\s*")
"""A column by its own name, which the plan has anyway. Of `bid.price` or `bid price` it has only `price`."""


def source_of(job: Job, session: Any) -> Opened:
    """The source, with its rows as a DataFrame, streaming unless the trigger is `batch`."""
    found: Opened = sparks(job.section("source"), lambda: opened(job, session))
    return found


def read(job: Job, session: Any) -> Any:
    """The rows of the source."""
    return source_of(job, session).frame


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
    return [located(spec.node, partial(_strict_query, stream, spec, job)) for spec in job.queries]


def _derived(stream: Stream, source: Source) -> Stream:
    """The stream with the texts that its rows come from: a restart with others is refused."""
    for text in source.select:
        alias = re.fullmatch(r"(?is)(.+?)\s+as\s+`?(\w+)`?\s*", text)
        if alias:
            stream = stream.computing({alias[2]: alias[1]})
        elif not _PLAIN.fullmatch(text):
            stream = stream.where(f"select {text}")
    return stream if source.where is None else stream.where(source.where)


def _strict_query(stream: Any, spec: QuerySpec, job: Job) -> Query:
    """The query, for which a malformed row is a reject, and one without a key unless the job keeps it."""
    query, node = _query(stream, spec), stream.node
    marks = (WELL_FORMED,) if WELL_FORMED in node.columns else ()
    keys = query.node.grouping if job.null_keys == "reject" else ()
    required = tuple(dict.fromkeys((*marks, *node.required, *keys)))
    return _query(replace(stream, node=replace(node, required=required)), spec)


def _query(stream: Any, spec: QuerySpec) -> Query:
    query: Query = stream.window(*spec.windows, keys=spec.keys).agg(
        *spec.aggregates, name=spec.name, emit=spec.emit
    )
    return query


def wholes(job: Job, frame: Any) -> list[tuple[QuerySpec, Outputs]]:
    """Each query of a batch job over its rows with its outputs, which hold the counts of them too."""
    found = []
    for spec, query in zip(job.queries, queries(job, frame), strict=True):
        make = partial(wp.to_spark, query, **_wanted(spec))
        found.append((spec, located(spec.node, partial(sparks, spec.node, make))))
    return found


def _wanted(spec: QuerySpec) -> dict[str, bool]:
    return dict.fromkeys(spec.strays, True)


def answers(job: Job, frame: Any) -> list[tuple[QuerySpec, Any]]:
    """Each query over the rows of a source with the DataFrame of its answers, or with all its outputs."""
    if job.streaming:
        frame = observed_input(frame, job.stream["time"])
    found = []
    for spec, query in zip(job.queries, queries(job, frame), strict=True):
        run = partial(wp.to_spark, query, **_wanted(spec)) if spec.strays else query.to_spark
        make = partial(run, control=job.control(spec), memory=job.memory)
        found.append((spec, located(spec.node, partial(sparks, spec.node, make))))
    return found
