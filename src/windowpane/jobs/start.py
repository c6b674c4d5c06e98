"""Start streaming queries: their triggers and checkpoints, and what takes each micro-batch."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from windowpane.jobs.footers import Footers
from windowpane.jobs.job import Job, QuerySpec, Trigger
from windowpane.jobs.several import each_output
from windowpane.jobs.watch import Told
from windowpane.jobs.write import EachBatch, each_batch, options_of, shaped
from windowpane.spark.outputs import Outputs
from windowpane.spark.session import observed

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


@dataclass(frozen=True)
class Beside:
    """What goes with a streaming query: files to look at, and where it tells of its micro-batches."""

    files: Footers | None = None
    told: Told = field(default_factory=dict)


def start(job: Job, spec: QuerySpec, made: Any, beside: Beside) -> Any:
    """Start a streaming query that writes its answers, or all its outputs."""
    if isinstance(made, Outputs):
        return _started(_writer(job, spec, made.frame), each_output(spec, made, beside.told), beside)
    writer = _writer(job, spec, shaped(spec, observed(made)))
    each, sink = each_batch(spec, made), spec.sink
    if each is not None:
        return _started(writer, each, beside)
    writer = writer.format(sink.format).options(**options_of(sink))
    return (writer.partitionBy(*sink.partition_by) if sink.partition_by else writer).start()


def _writer(job: Job, spec: QuerySpec, frame: Any) -> Any:
    writer = frame.writeStream.queryName(spec.name).outputMode("append").trigger(**_trigger(job.trigger))
    if job.checkpoint is not None:
        writer = writer.option("checkpointLocation", f"{job.checkpoint}/{spec.name}")
    return writer


def _started(writer: Any, each: EachBatch, beside: Beside) -> Any:
    """Start a query whose micro-batches a function takes; files are looked at before one counts."""
    owner = _Owner()

    def write(frame: Any, number: int) -> None:
        if beside.files is not None:
            beside.files.check()
        each(frame, number, owner.id())
        if beside.files is not None:
            beside.files.check_again()

    return owner.named(writer.foreachBatch(write).start())


def _trigger(trigger: Trigger) -> dict[str, Any]:
    match trigger.kind:
        case "processing_time":
            return {"processingTime": f"{trigger.every // 1_000} milliseconds"}
        case "once":
            return {"once": True}
        case _:
            return {"availableNow": True}
