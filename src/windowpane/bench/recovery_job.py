"""The run that `bench recovery` kills: its files and queries, and the child process itself.

Three families: sliding sums and sessions by key in one pass, from slices; the sliding sums from tuples in
blocks, within a memory budget (SlideM); and a function behind an update queue whose budget is too small for
all keys (UpStream).
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import windowpane as wp
from windowpane.bench import recovery_truth as truth
from windowpane.bench.recovery_truth import GAP, SECOND, SIZE, SLIDE, Rows, Truth
from windowpane.jobs.files import Publisher
from windowpane.query import LatestQuery, Query, StreamBuilder
from windowpane.spark import finish
from windowpane.spark.session import open_session
from windowpane.values.errors import WindowpaneError
from windowpane.values.sizes import Budget
from windowpane.values.windows import Window

BEGIN = 1_700_000_000 * SECOND
DELAY, AGO = 2 * SECOND, 60 * SECOND
KEYS = 20
_COST, _BUDGET = 0.01, 50_000
"""Seconds that the function takes for a row, and microseconds that it has: too few for a bucket's keys."""
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("key", pa.int64()), ("value", pa.int64())])
MASTER = "local[2,4]"
"""Two threads, and four tries for a task: a worker that died is replaced, as it is on a cluster."""
Found = dict[str, list[Rows]]
"""The rows of each output, by micro-batch."""


@dataclass(frozen=True)
class Family:
    """What is run: its outputs; a budget; whether it is an update queue, which chooses by the clock."""

    outputs: tuple[str, ...]
    memory: Budget | None = None
    queue: bool = False


FAMILIES = {
    "slices": Family(("sliding", "sessions")),
    "slidem": Family(("sliding",), Budget(4_000_000, technique="1W")),
    "upstream": Family(("latest",), queue=True),
}


@dataclass(frozen=True)
class Folder:
    """Where everything of a run is, and what it runs."""

    path: Path
    name: str = "slices"

    @property
    def family(self) -> Family:
        """What it runs."""
        return FAMILIES[self.name]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of its outputs."""
        return self.family.outputs

    @property
    def input(self) -> Path:
        """The files, a micro-batch each."""
        return self.path / "in"

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.path / "checkpoint"

    @property
    def control(self) -> Path:
        """Through which the stream is ended."""
        return self.path / "control"

    @property
    def log(self) -> Path:
        """What the child and Spark print."""
        return self.path / "log.txt"

    def out(self, name: str) -> Path:
        """The published rows of an output."""
        return self.path / "out" / name

    def newest(self, log: str) -> int:
        """The number of the newest micro-batch in a log of the checkpoint, -1 if there is none."""
        names = (path.name for path in self.checkpoint.glob(f"{log}/*"))
        return max((int(name) for name in names if name.isdecimal()), default=-1)


def queries(outputs: tuple[str, ...], source: object = None) -> list[Query]:
    """The windows with these outputs over one stream."""
    stream = _stream(source)
    windows: dict[str, Window] = {"sliding": wp.sliding(SIZE, SLIDE), "sessions": wp.session(GAP)}
    return [
        stream.window(windows[name]).agg(total=wp.sum("value"), n=wp.count(), name=name) for name in outputs
    ]


def queue(source: object) -> LatestQuery:
    """A slow function behind an update queue."""
    return _stream(source).latest(budget=_BUDGET).apply(_slowly, "key bigint, ts timestamp, value bigint")


def _slowly(rows: pd.DataFrame) -> pd.DataFrame:
    end = clock.perf_counter() + _COST * len(rows)
    while clock.perf_counter() < end:
        pass  # at work, so that a worker can be lost in it
    return rows.assign(value=2 * rows["value"])


def _stream(source: object) -> StreamBuilder:
    how = {"schema": SCHEMA} if source is None else {}
    return wp.stream(source, time="ts", keys="key", delay=DELAY, **how)


def write_input(folder: Folder, files: int, rows: int, seed: int) -> tuple[list[pa.Table], dict[str, Truth]]:
    """Files of rows out of order, a few far too late or without a time; and the right answers."""
    rng = np.random.default_rng(seed)
    n = files * rows
    time = np.sort(rng.integers(0, files * SECOND, n)) + BEGIN
    time = time[np.argsort(time + rng.integers(0, DELAY, n), kind="stable")]
    key, value = rng.integers(0, KEYS, n), rng.integers(0, 1000, n)
    late = (rng.random(n) < 0.01) & (np.arange(n) >= 4 * rows)
    null = (rng.random(n) < 0.01) & ~late
    shown = time - AGO * late
    table = pa.table([pa.array(shown, mask=null).cast(SCHEMA.field(0).type), key, value], schema=SCHEMA)
    parts = [table.slice(i * rows, rows) for i in range(files)]
    folder.input.mkdir(parents=True)
    for i, part in enumerate(parts):
        file = folder.input / f"{i:04d}.parquet"
        pq.write_table(part, file)
        os.utime(file, (BEGIN // SECOND + i,) * 2)  # Spark reads them by age
    kept = ~late & ~null
    return parts, {name: truth.OF[name](time[kept], key[kept], value[kept]) for name in folder.outputs}


def rows_of(table: pa.Table) -> Rows:
    """Rows as plain values: times in microseconds, windows as start and end; no revisions (all are 0)."""
    flat = table.flatten()
    names = [name for name in flat.column_names if name != "revision"]
    columns = [flat[name] for name in names]
    plain = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in columns]
    return list(zip(*(column.to_pylist() for column in plain), strict=True))


def published(folder: Folder) -> Found:
    """What a reader without Spark finds by listing the output directories."""
    return {name: [_read(batch) for batch in _batches(folder.out(name))] for name in folder.outputs}


def _batches(path: Path) -> list[Path]:
    return sorted(path.glob("batch=*"), key=lambda batch: int(batch.name.partition("=")[2]))


def _read(batch: Path) -> Rows:
    return [row for file in sorted(batch.glob("*.parquet")) for row in rows_of(pq.ParquetFile(file).read())]


def in_process(folder: Folder, parts: list[pa.Table]) -> Found | None:
    """The answers of this process's runtime, a push per file; None for queues, whose depend on the clock."""
    if folder.family.queue:
        return None
    with wp.start(*queries(folder.outputs), memory=folder.family.memory) as runner:
        steps = [*(runner.push(part) for part in parts), runner.close()]
    return {name: [rows_of(step.tables[name]) for step in steps] for name in folder.outputs}


def main(path: str, family: str) -> None:
    """The child: run from the checkpoint to the end of the files, then end the stream, then drain."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    folder = Folder(Path(path), family)
    session = open_session("windowpane bench recovery", MASTER, _settings(folder), "WARN")
    frame = session.readStream.schema("ts timestamp, key bigint, value bigint")
    source = frame.option("maxFilesPerTrigger", 1).parquet(str(folder.input))
    if folder.family.queue:
        outputs = wp.to_spark(queue(source), control=folder.control)
    else:
        built = queries(folder.outputs, source)
        outputs = wp.to_spark(*built, control=folder.control, memory=folder.family.memory)
    writer = outputs.frame.writeStream.foreachBatch(outputs.foreach(_publishing(folder)))
    run = _run_beside_a_clock if folder.family.queue else _run
    run(writer.option("checkpointLocation", str(folder.checkpoint)), folder)
    session.stop()


def _publishing(folder: Folder) -> Callable[[str, Any, int], None]:
    """What writes an output; behind an update queue a repeat serves other keys, and counts instead."""
    replace = folder.family.queue
    sinks = {name: Publisher("parquet", folder.out(name), replace=replace) for name in folder.outputs}
    for sink in sinks.values():
        sink.prepare(pa.schema([]))

    def write(name: str, rows: Any, number: int) -> None:
        if name in sinks:
            sinks[name].write(rows, number, "bench recovery")

    return write


def _run(writer: Any, folder: Folder) -> None:
    ended = any(folder.control.glob("*.json"))
    writer.trigger(availableNow=True).start().awaitTermination()
    if not ended:
        finish(folder.control)
        writer.start().awaitTermination()


def _run_beside_a_clock(writer: Any, folder: Folder) -> None:
    """The same where a clock is among the sources, which never ends."""
    query = writer.start()
    _wait_for(query, source=0, files=len(list(folder.input.iterdir())))
    if not any(folder.control.glob("*.json")):
        finish(folder.control)
    _wait_for(query, source=2, files=1)
    query.stop()


def _wait_for(query: Any, source: int, files: int) -> None:
    """Wait until a query has done with the files of a source."""
    while True:
        told = query.lastProgress
        end = json.loads(told.json)["sources"][source]["endOffset"] if told else None
        if end and end["logOffset"] >= files - 1:
            return
        query.awaitTermination(1)  # raises if the query failed


def _end_with_parent() -> None:
    """End when the parent does, which holds the other end of standard input; Spark's JVM ends with us."""
    os.read(sys.stdin.fileno(), 1)  # not through the buffer, whose lock would be in the way of a normal end
    os._exit(1)


def _settings(folder: Folder) -> dict[str, str]:
    """Little to start; snapshots of the state and removal of old ones often, so that kills fall into both."""
    scratch = folder.path / "scratch"
    scratch.mkdir(exist_ok=True)
    return {
        "spark.local.dir": str(scratch),
        # a life is short: code that is compiled well would never pay
        "spark.driver.extraJavaOptions": (
            f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={scratch}"
        ),
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.memory": "1g",
        "spark.sql.streaming.stateStore.maintenanceInterval": "500ms",
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
        "spark.sql.streaming.minBatchesToRetain": "4",
    }


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except WindowpaneError as error:
        sys.exit(str(error))
