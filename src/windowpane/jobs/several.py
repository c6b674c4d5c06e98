"""All outputs of a query in one pass: its answers, late rows and rejects, each to a sink of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from windowpane.core.required import WELL_FORMED
from windowpane.jobs.ends import need_partitions, need_plain
from windowpane.jobs.fields import located
from windowpane.jobs.files import BATCH_JOBS, COLUMN, Publisher
from windowpane.jobs.job import QuerySpec, Sink
from windowpane.jobs.objects import RECORD
from windowpane.jobs.strays import STRAYS
from windowpane.jobs.watch import Told
from windowpane.jobs.write import (
    EachBatch,
    append,
    each_batch,
    need_answers,
    once,
    printed,
    publisher,
    shaped,
)
from windowpane.spark import schema_of
from windowpane.spark.outputs import Outputs
from windowpane.spark.session import newest_of
from windowpane.values.errors import BadQuery

REASON = "reason"
"""The column of the rejects that says why."""


@dataclass(frozen=True)
class Stray:
    """Where the late rows or the rejects of a query go; nowhere to keep them means the console."""

    name: str
    title: str
    sink: Sink
    files: Publisher | None

    def need_owner(self, owner: str) -> None:
        """An error if the sink belongs to another checkpoint."""
        if self.files is not None:
            self.files.need_owner(owner)

    def write(self, rows: Any, number: int, owner: str) -> None:
        """Write those of a micro-batch."""
        if self.files is None:
            printed(_own(self.name, rows), f"{self.title}, batch {number}", self.sink.rows)
        else:
            self.files.write(_own(self.name, rows), number, owner)

    def add(self, rows: Any) -> None:
        """Write those of a batch job."""
        if self.files is None:
            printed(_own(self.name, rows), self.title, self.sink.rows)
        else:
            self.files.add(_own(self.name, rows))


def strays_of(spec: QuerySpec, outputs: Outputs) -> list[Stray]:
    """The sinks of late rows and rejects, made ready before anything is written."""
    need_columns(spec, outputs)
    frames, found = outputs.split(), []
    for name, sink in spec.strays.items():
        files = publisher(sink, sink.node or spec.node, _own(name, frames[name]))
        found.append(Stray(name, f"{spec.name}: {STRAYS[name]}", sink, files))
    return found


def need_columns(spec: QuerySpec, made: Any) -> None:
    """Fail if the answers, or all outputs of a query, do not fit their sinks; nothing is made ready."""
    frames = made.split() if isinstance(made, Outputs) else {spec.name: made}
    need_answers(spec, frames[spec.name])
    for name, sink in spec.strays.items():
        rows = schema_of(_own(name, frames[name]))
        located(sink.node or spec.node, partial(_need_columns, name, sink, rows))


def each_output(spec: QuerySpec, outputs: Outputs, told: Told) -> EachBatch:
    """What to do with a micro-batch of tagged payloads: computed once, each output goes to its sink.

    A kill in between has Spark repeat it, which adds nothing to a sink that has its number.
    """
    each = each_batch(spec, outputs.split()[spec.name])
    strays = strays_of(spec, outputs)

    def write(batch: Any, number: int, owner: str) -> None:
        for stray in strays:
            stray.need_owner(owner)  # before the answers are out
        with kept(batch):
            found = outputs.split(batch)
            with kept(found[spec.name]) as answers:
                told[number] = newest_of(answers)
                frame = shaped(spec, answers)
                each(frame, number, owner) if each is not None else append(spec.sink, frame)
            for stray in strays:
                stray.write(found[stray.name], number, owner)

    return write


def all_at_once(spec: QuerySpec, outputs: Outputs) -> Callable[[Any], None]:
    """What to do with the tagged payloads of a batch job.

    Its sinks are made ready and are its own before any is written: a run that is refused half way adds its
    answers a second time when it is run again.
    """
    each = once(spec, outputs.split()[spec.name])
    strays = strays_of(spec, outputs)
    for stray in strays:
        located(stray.sink.node or spec.node, partial(stray.need_owner, BATCH_JOBS))

    def write(tagged: Any) -> None:
        found = outputs.split(tagged)
        each(shaped(spec, found[spec.name]))
        for stray in strays:
            stray.add(found[stray.name])

    return write


@contextmanager
def kept(frame: Any) -> Iterator[Any]:
    """Keep what a frame has while it is needed several times."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def _own(name: str, rows: Any) -> Any:
    """The rows without the marks of readers, but with the texts of those that could not be read."""
    return rows.drop(WELL_FORMED, *(() if name == "rejects" else (RECORD,)))


def _need_columns(name: str, sink: Sink, schema: pa.Schema) -> None:
    """Fail if the rows of a stream have columns that their sink has itself or cannot hold."""
    names = [column.lower() for column in schema.names]  # as Spark compares them
    taken = [COLUMN] if sink.format != "console" else []
    for column, lower in zip(schema.names, names, strict=True):
        if lower in taken or (lower == REASON and names.count(REASON) > 1):
            raise BadQuery(
                f"the {STRAYS[name]} have a column {column!r} of the source, as the sink has itself. "
                "Name it anew with select in the source."
            )
    if sink.format == "csv":
        need_plain(schema, f"the {STRAYS[name]}")
    need_partitions(sink.partition_by, schema, f"what goes to {name}")
