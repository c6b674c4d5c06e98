"""Start the writing of answers: a Spark sink, a database by upsert, or the console."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from windowpane.jobs.database import Upsert, postgresql, sqlite
from windowpane.jobs.fields import located
from windowpane.jobs.job import Job, QuerySpec, Sink, Trigger
from windowpane.jobs.show import table_text
from windowpane.spark import schema_of
from windowpane.spark.session import observed

EachBatch = Callable[[Any, int], None]


def start(job: Job, spec: QuerySpec, answers: Any) -> Any:
    """Start a streaming query that writes the answers."""
    sink = spec.sink
    writer = shaped(spec, observed(answers)).writeStream.queryName(spec.name).outputMode("append")
    writer = writer.trigger(**_trigger(job.trigger))
    if job.checkpoint is not None:
        writer = writer.option("checkpointLocation", f"{job.checkpoint}/{spec.name}")
    each = each_batch(spec, answers)
    if each is not None:
        return writer.foreachBatch(each).start()
    writer = writer.format(sink.format).options(**_options(sink))
    return (writer.partitionBy(*sink.partition_by) if sink.partition_by else writer).start()


def write_once(spec: QuerySpec, answers: Any) -> None:
    """Write the answers of a batch job."""
    sink = spec.sink
    frame = shaped(spec, answers)
    each = each_batch(spec, answers)
    if each is not None:
        each(frame, 0)
    elif sink.format == "memory":
        frame.cache().createOrReplaceTempView(sink.table)
    else:
        writer = frame.write.format(sink.format).options(**_options(sink)).mode("append")
        (writer.partitionBy(*sink.partition_by) if sink.partition_by else writer).save()


def each_batch(spec: QuerySpec, answers: Any) -> EachBatch | None:
    """What to do with each micro-batch, where no Spark sink does it."""
    sink = spec.sink
    if sink.format == "console":
        return lambda frame, number: _print(frame, f"{spec.name}, batch {number}", sink.rows)
    if sink.format in {"sqlite", "postgresql"}:
        assert sink.path is not None
        assert sink.table is not None
        dialect = sqlite() if sink.format == "sqlite" else postgresql()
        upsert = Upsert(dialect, sink.path, sink.table)
        located(sink.node or spec.node, lambda: upsert.prepare(schema_of(answers)))
        return lambda frame, _: upsert.write(frame.toArrow())
    return None


def _print(frame: Any, title: str, rows: int) -> None:
    answers = frame.toArrow()
    if answers.num_rows:
        sys.stdout.write(table_text(answers, title, rows))
        sys.stdout.flush()


def shaped(spec: QuerySpec, answers: Any) -> Any:
    """The answers in the form that the sink takes: Kafka key and value in JSON, CSV without a struct."""
    if spec.sink.format == "kafka":
        names = answers.columns
        keys = ", ".join(f"`{name}`" for name in names[: names.index("window")])
        key = f"to_json(struct({keys})) as key" if keys else "cast(null as string) as key"
        return answers.selectExpr(key, "to_json(struct(*)) as value")
    if spec.sink.format == "csv":
        window = ("window.start as window_start", "window.end as window_end")
        return answers.selectExpr(
            *(e for n in answers.columns for e in (window if n == "window" else (f"`{n}`",)))
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
