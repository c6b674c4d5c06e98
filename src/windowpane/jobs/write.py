"""Start the writing of answers: files, a database by upsert, the console, or a sink of Spark's."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from windowpane.jobs.database import Upsert, postgresql, sqlite
from windowpane.jobs.ends import DATABASES, FILES
from windowpane.jobs.fields import located
from windowpane.jobs.files import Publisher
from windowpane.jobs.footers import Footers
from windowpane.jobs.job import Job, QuerySpec, Sink, Trigger
from windowpane.jobs.show import table_text
from windowpane.spark import schema_of
from windowpane.spark.session import observed, quoted
from windowpane.values.paths import local_path

EachBatch = Callable[[Any, int, str], None]
"""Takes a micro-batch's answers, its number, and the streaming query that it belongs to."""
_PATIENCE = 60.0


class _Owner:
    """The id of a streaming query, which only its start tells; micro-batches wait for it."""

    def __init__(self) -> None:
        self._known = threading.Event()
        self._id = ""

    def named(self, query: Any) -> Any:
        """Take the id from the query that was started."""
        self._id = str(query.id)
        self._known.set()
        return query

    def id(self) -> str:
        """The id, which a checkpoint keeps across restarts."""
        if not self._known.wait(_PATIENCE):
            raise TimeoutError("Spark did not tell the id of the query that it started")
        return self._id


def start(job: Job, spec: QuerySpec, answers: Any, files: Footers | None) -> Any:
    """Start a streaming query that writes the answers; files are looked at before a micro-batch counts."""
    sink = spec.sink
    writer = shaped(spec, observed(answers)).writeStream.queryName(spec.name).outputMode("append")
    writer = writer.trigger(**_trigger(job.trigger))
    if job.checkpoint is not None:
        writer = writer.option("checkpointLocation", f"{job.checkpoint}/{spec.name}")
    each = each_batch(spec, answers)
    if each is not None:
        owner = _Owner()

        def write(frame: Any, number: int) -> None:
            if files is not None:
                files.check()
            each(frame, number, owner.id())

        return owner.named(writer.foreachBatch(write).start())
    writer = writer.format(sink.format).options(**_options(sink))
    return (writer.partitionBy(*sink.partition_by) if sink.partition_by else writer).start()


def write_once(spec: QuerySpec, answers: Any) -> None:
    """Write the answers of a batch job."""
    sink = spec.sink
    frame = shaped(spec, answers)
    if (files := publisher(spec, frame)) is not None:
        files.add(frame)
    elif (upsert := database(spec, answers)) is not None:
        upsert.write(frame.toArrow())
    elif sink.format == "console":
        _print(frame, spec.name, sink.rows)
    elif sink.format == "memory":
        frame.cache().createOrReplaceTempView(sink.table)
    else:
        writer = frame.write.format(sink.format).options(**_options(sink)).mode("append")
        (writer.partitionBy(*sink.partition_by) if sink.partition_by else writer).save()


def ours(sink: Sink) -> bool:
    """Whether micro-batches pass through a function of ours, and not through a sink of Spark's."""
    local = sink.path is not None and local_path(sink.path) is not None
    return sink.format in {*DATABASES, "console"} or (sink.format in FILES and local)


def each_batch(spec: QuerySpec, answers: Any) -> EachBatch | None:
    """What to do with each micro-batch, where no Spark sink does it."""
    sink = spec.sink
    if sink.format == "console":
        return lambda frame, number, _: _print(frame, f"{spec.name}, batch {number}", sink.rows)
    if (upsert := database(spec, answers)) is not None:
        return lambda frame, number, owner: upsert.write(frame.toArrow(), (owner, number))
    files = publisher(spec, answers)
    return None if files is None else files.write


def database(spec: QuerySpec, answers: Any) -> Upsert | None:
    """The table of a database sink, made ready."""
    sink = spec.sink
    if sink.format not in DATABASES:
        return None
    assert sink.path is not None
    assert sink.table is not None
    upsert = Upsert(sqlite() if sink.format == "sqlite" else postgresql(), sink.path, sink.table)
    located(sink.node or spec.node, lambda: upsert.prepare(schema_of(answers)))
    return upsert


def publisher(spec: QuerySpec, answers: Any) -> Publisher | None:
    """The files of a sink on a local path, made ready; elsewhere Spark's own sink does it."""
    sink = spec.sink
    path = None if sink.path is None or sink.format not in FILES else local_path(sink.path)
    if path is None:
        return None
    whole = {"ignoreNullFields": "false"} if sink.format == "json" else {}
    files = Publisher(sink.format, path, whole | dict(sink.options), sink.partition_by)
    located(sink.node or spec.node, lambda: files.prepare(schema_of(answers)))
    return files


def _print(frame: Any, title: str, rows: int) -> None:
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


def _options(sink: Sink) -> dict[str, str]:
    return {**({} if sink.path is None else {"path": sink.path}), **sink.options}


def _trigger(trigger: Trigger) -> dict[str, Any]:
    match trigger.kind:
        case "processing_time":
            return {"processingTime": f"{trigger.every // 1_000} milliseconds"}
        case "once":
            return {"once": True}
        case _:
            return {"availableNow": True}
