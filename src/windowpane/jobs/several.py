"""All outputs of a query in one pass: its answers, late rows and rejects, each to a sink of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from windowpane.core.required import WELL_FORMED
from windowpane.jobs.fields import located
from windowpane.jobs.files import COLUMN
from windowpane.jobs.job import QuerySpec
from windowpane.jobs.objects import RECORD
from windowpane.jobs.strays import STRAYS
from windowpane.jobs.watch import Told
from windowpane.jobs.write import EachBatch, append, each_batch, printed, publisher, shaped
from windowpane.spark import schema_of
from windowpane.spark.outputs import Outputs
from windowpane.spark.session import newest_of
from windowpane.values.errors import BadQuery

REASON = "reason"
"""The column of the rejects that says why."""


def each_output(spec: QuerySpec, outputs: Outputs, told: Told) -> EachBatch:
    """What to do with a micro-batch of tagged payloads: computed once, each output goes to its sink.

    A kill in between has Spark repeat it, which adds nothing to a sink that has its number.
    """
    frames = outputs.split()
    each = each_batch(spec, frames[spec.name])
    strays = {name: _stray(spec, name, frames[name])[0] for name in spec.strays}

    def write(batch: Any, number: int, owner: str) -> None:
        with kept(batch):
            found = outputs.split(batch)
            with kept(found[spec.name]) as answers:
                told[number] = newest_of(answers)
                frame = shaped(spec, answers)
                each(frame, number, owner) if each is not None else append(spec.sink, frame)
            for name, stray in strays.items():
                stray(found[name], number, owner)

    return write


@contextmanager
def kept(frame: Any) -> Iterator[Any]:
    """Keep what a frame has while it is needed several times."""
    frame.persist()
    try:
        yield frame
    finally:
        frame.unpersist()


def write_strays(spec: QuerySpec, outputs: Outputs, tagged: Any) -> None:
    """Write the late rows and rejects of a batch job."""
    found = outputs.split(tagged)
    for name in spec.strays:
        _stray(spec, name, found[name])[1](found[name])


def _stray(spec: QuerySpec, name: str, rows: Any) -> tuple[EachBatch, Callable[[Any], None]]:
    """What to do with the late rows or rejects of a micro-batch, and of a batch job."""
    sink = spec.strays[name]
    node = sink.node or spec.node
    located(node, lambda: _need_columns(name, sink.format, schema_of(rows)))
    files = publisher(sink, node, _own(name, rows))
    title = f"{spec.name}: {STRAYS[name]}"
    if files is None:
        return (
            lambda frame, number, _: printed(_own(name, frame), f"{title}, batch {number}", sink.rows),
            lambda frame: printed(_own(name, frame), title, sink.rows),
        )
    return (
        lambda frame, number, owner: files.write(_own(name, frame), number, owner),
        lambda frame: files.add(_own(name, frame)),
    )


def _own(name: str, rows: Any) -> Any:
    """The rows without the marks of readers, but with the texts of those that could not be read."""
    return rows.drop(WELL_FORMED, *(() if name == "rejects" else (RECORD,)))


def _need_columns(name: str, form: str, schema: pa.Schema) -> None:
    """Fail if the rows of a stream have columns that their sink has itself or cannot hold."""
    taken = [COLUMN] if form != "console" else []
    for column in schema.names:
        if column in taken or (column == REASON and schema.names.count(REASON) > 1):
            raise BadQuery(
                f"the {STRAYS[name]} have a column {column!r} of the source, as the sink has itself. "
                "Name it anew with select in the source."
            )
    nested = [f.name for f in schema if pa.types.is_nested(f.type)] if form == "csv" else []
    if nested:
        raise BadQuery(
            f"the {STRAYS[name]} have a column {nested[0]!r} that holds several values, which CSV cannot. "
            "Use json or parquet."
        )
