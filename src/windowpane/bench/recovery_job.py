"""The run that `bench recovery` kills: its files, queries and right answers, and the child process itself.

Two families: sliding sums and sessions by key in one pass, from slices; and the sliding sums from tuples in
blocks, within a memory budget (SlideM). The right answers are found from the definitions alone, from all
rows at once and without the engine.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import windowpane as wp
from windowpane.jobs.files import Publisher
from windowpane.query import Query
from windowpane.values.errors import WindowpaneError
from windowpane.values.sizes import Budget
from windowpane.values.windows import Window

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND
DELAY, SIZE, SLIDE, GAP, AGO = 2 * SECOND, 5 * SECOND, SECOND, 150_000, 60 * SECOND
KEYS = 20
FAMILIES = {"slices": ("sliding", "sessions"), "slidem": ("sliding",)}
"""The outputs of each family."""
_MEMORY = {"slidem": Budget(4_000_000, technique="1W")}
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("key", pa.int64()), ("value", pa.int64())])
MASTER = "local[2,4]"
"""Two threads, and four tries for a task: a worker that died is replaced, as it is on a cluster."""
Numbers = npt.NDArray[np.int64]
Answers = list[tuple[int, ...]]
Found = dict[str, Counter[tuple[int, ...]]]
"""The rows of each output, and how often each is there."""


@dataclass(frozen=True)
class Folder:
    """Where everything of a run is, and what it runs."""

    path: Path
    family: str = "slices"

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of its outputs."""
        return FAMILIES[self.family]

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
    """The queries with these outputs over one stream."""
    how = {"schema": SCHEMA} if source is None else {}
    stream = wp.stream(source, time="ts", keys="key", delay=DELAY, **how)
    windows: dict[str, Window] = {"sliding": wp.sliding(SIZE, SLIDE), "sessions": wp.session(GAP)}
    return [
        stream.window(windows[name]).agg(total=wp.sum("value"), n=wp.count(), name=name) for name in outputs
    ]


def write_input(folder: Folder, files: int, rows: int, seed: int) -> tuple[list[pa.Table], Found]:
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
    right = {"sliding": _sliding, "sessions": _sessions}
    return parts, {name: Counter(right[name](time[kept], key[kept], value[kept])) for name in folder.outputs}


def _sliding(time: Numbers, key: Numbers, value: Numbers) -> Answers:
    """Key, start, end, sum and count of every window `[start, start + SIZE)` that holds a row."""
    newest = time // SLIDE * SLIDE
    starts = np.concatenate([newest - i * SLIDE for i in range(SIZE // SLIDE)])
    pairs = np.stack([np.tile(key, SIZE // SLIDE), starts])
    found, group = np.unique(pairs, axis=1, return_inverse=True)
    n = np.bincount(group.ravel())
    total = np.bincount(group.ravel(), weights=np.tile(value, SIZE // SLIDE)).astype(np.int64)
    columns = (found[0], found[1], found[1] + SIZE, total, n)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _sessions(time: Numbers, key: Numbers, value: Numbers) -> Answers:
    """Key, start, end, sum and count of every session: a gap of more than GAP ends it."""
    order = np.lexsort((time, key))
    time, key, value = time[order], key[order], value[order]
    first = np.concatenate([[True], (key[1:] != key[:-1]) | (np.diff(time) > GAP)])
    head = np.nonzero(first)[0]
    last = np.append(head[1:], len(time)) - 1
    total = np.add.reduceat(value, head)
    columns = (key[head], time[head], time[last] + GAP, total, last - head + 1)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def rows_of(table: pa.Table) -> Counter[tuple[int, ...]]:
    """Rows as plain values: times in microseconds, windows as start and end; no revisions (all are 0)."""
    flat = table.flatten()
    names = [name for name in flat.column_names if name != "revision"]
    columns = [flat[name] for name in names]
    plain = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in columns]
    return Counter(zip(*(column.to_pylist() for column in plain), strict=True))


def published(folder: Folder) -> Found:
    """What a reader without Spark finds by listing the output directories."""
    found: Found = {name: Counter() for name in folder.outputs}
    for name in folder.outputs:
        for file in sorted(folder.out(name).glob("batch=*/*.parquet")):
            found[name].update(rows_of(pq.ParquetFile(file).read()))
    return found


def in_process(folder: Folder, parts: list[pa.Table]) -> Found:
    """The answers of this process's runtime, a push per file."""
    with wp.start(*queries(folder.outputs), memory=_MEMORY.get(folder.family)) as runner:
        steps = [*(runner.push(part) for part in parts), runner.close()]
    return {name: sum((rows_of(step.tables[name]) for step in steps), Counter()) for name in folder.outputs}


def main(path: str, family: str) -> None:
    """The child: run from the checkpoint to the end of the files, then end the stream, then drain."""
    from windowpane.spark import finish  # noqa: PLC0415 - Spark is loaded only where it is used
    from windowpane.spark.session import open_session  # noqa: PLC0415 - as above

    threading.Thread(target=_end_with_parent, daemon=True).start()
    folder = Folder(Path(path), family)
    session = open_session("windowpane bench recovery", MASTER, _settings(folder), "WARN")
    frame = session.readStream.schema("ts timestamp, key bigint, value bigint")
    source = frame.option("maxFilesPerTrigger", 1).parquet(str(folder.input))
    built = queries(folder.outputs, source)
    outputs = wp.to_spark(*built, control=folder.control, memory=_MEMORY.get(family))
    sinks = {name: Publisher("parquet", folder.out(name)) for name in folder.outputs}
    for sink in sinks.values():
        sink.prepare(pa.schema([]))
    writer = outputs.frame.writeStream.foreachBatch(
        outputs.foreach(lambda name, rows, number: sinks[name].write(rows, number, "bench recovery"))
    )
    writer = writer.option("checkpointLocation", str(folder.checkpoint)).trigger(availableNow=True)
    ended = any(folder.control.glob("*.json"))
    writer.start().awaitTermination()
    if not ended:
        finish(folder.control)
        writer.start().awaitTermination()
    session.stop()


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
