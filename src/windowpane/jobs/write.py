"""Write answers: to files, to a database by upsert, to the console, or to a sink of Spark's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from windowpane.jobs.database import Upsert, postgresql, sqlite
from windowpane.jobs.document import Node
from windowpane.jobs.ends import DATABASES, FILES
from windowpane.jobs.fields import located
from windowpane.jobs.files import BATCH_JOBS, Publisher, need_columns
from windowpane.jobs.job import QuerySpec, Sink
from windowpane.jobs.show import table_text
from windowpane.spark import schema_of
from windowpane.spark.session import quoted
from windowpane.values.paths import local_path

EachBatch = Callable[[Any, int, str], None]
"""Takes a micro-batch's answers, its number, and the streaming query that it belongs to."""


def need_answers(spec: QuerySpec, answers: Any) -> None:
    """Fail if the answers do not fit their sink; nothing is made ready."""
    located(spec.sink.node or spec.node, partial(_need_columns, spec.sink, schema_of(answers)))


def _need_columns(sink: Sink, schema: pa.Schema) -> None:
    target = _upsert(sink) or _files(sink)
    if target is None:
        need_columns(sink.format, sink.partition_by, schema)
    else:
        target.need_columns(schema)


def once(spec: QuerySpec, answers: Any) -> Callable[[Any], None]:
    """What to do with the answers of a batch job, in the form that the sink takes; the sink is made ready."""
    sink, node = spec.sink, spec.sink.node or spec.node
    need_answers(spec, answers)
    if (files := publisher(sink, node, answers)) is not None:
        located(node, partial(files.need_owner, BATCH_JOBS))
        return files.add
    if (upsert := database(spec, answers)) is not None:
        return lambda frame: upsert.write(frame.toArrow())
    match sink.format:
        case "console":
            return lambda frame: printed(frame, spec.name, sink.rows)
        case "memory":
            return lambda frame: frame.cache().createOrReplaceTempView(sink.table)
    return partial(append, sink)


def append(sink: Sink, frame: Any) -> None:
    """Write by a sink of Spark's for batches."""
    writer = frame.write.format(sink.format).options(**options_of(sink)).mode("append")
    (writer.partitionBy(*sink.partition_by) if sink.partition_by else writer).save()


def each_batch(spec: QuerySpec, answers: Any) -> EachBatch | None:
    """What to do with each micro-batch, where no Spark sink does it."""
    sink = spec.sink
    need_answers(spec, answers)
    if sink.format == "console":
        return lambda frame, number, _: printed(frame, f"{spec.name}, batch {number}", sink.rows)
    if (upsert := database(spec, answers)) is not None:
        return lambda frame, number, owner: upsert.write(frame.toArrow(), (owner, number))
    files = publisher(sink, sink.node or spec.node, answers)
    return None if files is None else files.write


def database(spec: QuerySpec, answers: Any) -> Upsert | None:
    """The table of a database sink, made ready."""
    upsert = _upsert(spec.sink)
    if upsert is not None:
        located(spec.sink.node or spec.node, partial(upsert.prepare, schema_of(answers)))
    return upsert


def _upsert(sink: Sink) -> Upsert | None:
    if sink.format not in DATABASES:
        return None
    assert sink.path is not None
    assert sink.table is not None
    return Upsert(sqlite() if sink.format == "sqlite" else postgresql(), sink.path, sink.table)


def publisher(sink: Sink, node: Node, rows: Any) -> Publisher | None:
    """The files of a sink on a local path, made ready; elsewhere Spark's own sink does it."""
    files = _files(sink)
    if files is not None:
        located(node, partial(files.prepare, schema_of(rows)))
    return files


def _files(sink: Sink) -> Publisher | None:
    path = None if sink.path is None or sink.format not in FILES else local_path(sink.path)
    if path is None:
        return None
    # a null is told, and quotes are doubled as every reader of CSV knows them
    whole = {"json": {"ignoreNullFields": "false"}, "csv": {"escape": '"'}}.get(sink.format, {})
    return Publisher(sink.format, path, whole | dict(sink.options), sink.partition_by)


def printed(frame: Any, title: str, rows: int) -> None:
    """Print the first rows; all are computed, since a limit would leave the state of some behind."""
    frame.persist()
    try:
        if total := frame.count():
            sys.stdout.write(table_text(frame.limit(rows).toArrow(), title, rows, total))
            sys.stdout.flush()
    finally:
        frame.unpersist()


def shaped(spec: QuerySpec, answers: Any) -> Any:
    """The answers in the form that the sink takes: Kafka key and value in JSON, CSV without a struct."""
    if spec.sink.format == "kafka":
        names = answers.columns
        keys = ", ".join(map(quoted, names[: names.index("window")]))
        whole = "map('ignoreNullFields', 'false')"  # a null key is a key like any other
        key = f"to_json(struct({keys}), {whole}) as key" if keys else "cast(null as string) as key"
        return answers.selectExpr(key, f"to_json(struct(*), {whole}) as value")
    if spec.sink.format == "csv":
        window = ("window.start as window_start", "window.end as window_end")
        return answers.selectExpr(
            *(e for n in answers.columns for e in (window if n == "window" else (quoted(n),)))
        )
    return answers


def options_of(sink: Sink) -> dict[str, str]:
    """The options of a sink of Spark's."""
    return {**({} if sink.path is None else {"path": sink.path}), **sink.options}
