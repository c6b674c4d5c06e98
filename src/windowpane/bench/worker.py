"""A window on Spark that is larger than what its Python worker may hold: SlideM's blocks in the state store.

Spark caps the address space of the worker (`spark.executor.pyspark.memory`); what Python, Arrow and Numba map
at their start counts too. All rows go to one bucket, and none leaves the window before the end.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import windowpane as wp
from windowpane.bench.report import Claim, Report, Row
from windowpane.bench.runner import Progress
from windowpane.core.arrays import Ints
from windowpane.spark.session import open_session
from windowpane.values.sizes import Budget

CAP_MB = 2048
MEMORY = 32_000_000
KEYS, SLIDES = 100, 10
SECOND = 1_000_000
BLOCK = 64 * 1024


@dataclass(frozen=True)
class Scale:
    """How many files (micro-batches), and the rows of each."""

    files: int
    rows: int


FULL, QUICK = Scale(115, 1_000_000), Scale(8, 250_000)


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """One run over a stream of files, its answers checked."""
    scale = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="windowpane-bench-") as folder:
        path = Path(folder)
        truth = _write(path / "in", scale)
        settings = {"spark.executor.pyspark.memory": f"{CAP_MB}m", "spark.driver.memory": "3g"}
        session = open_session("windowpane bench worker", "local[2]", settings, "OFF", path / "spark.log")
        try:
            row = _Run(session, path, scale, progress).measure(truth)
        finally:
            session.stop()
    cap = CAP_MB * 1024 * 1024
    claims = [
        Claim("wrong answers", float(str(row["wrong"])), 0, at_most=True),
        Claim("answers", float(str(row["answers"])), KEYS * (SLIDES - 1)),
        Claim(
            "address space of the worker at most / its cap",
            float(str(row["worker_mb"])) / CAP_MB,
            1,
            at_most=True,
        ),
    ]
    if not quick:
        claims.append(Claim("state / cap of the worker", float(str(row["state_mb"])) * 1e6 / cap, 1))
    parameters: Row = {"cap_mb": CAP_MB, "memory": MEMORY, "rows": scale.files * scale.rows, "buckets": 1}
    return Report("worker", parameters, [row], claims)


def _span(scale: Scale) -> int:
    """The length of the stream in microseconds: 100,000 rows a second."""
    return scale.files * scale.rows * 10


def _write(folder: Path, scale: Scale) -> dict[tuple[int, int], tuple[int, int]]:
    """The files; and by the number of the slide and the key how many rows came before, and their sum."""
    folder.mkdir()
    rng = np.random.default_rng(2013)
    slide = _span(scale) // SLIDES
    counts, sums = np.zeros((SLIDES, KEYS), np.int64), np.zeros((SLIDES, KEYS), np.int64)
    for i in range(scale.files):
        at: Ints = (np.arange(scale.rows) + i * scale.rows) * 10
        key, value = rng.integers(0, KEYS, scale.rows), rng.integers(0, 1000, scale.rows)
        cell = at // slide * KEYS + key
        counts += np.bincount(cell, minlength=SLIDES * KEYS).reshape(SLIDES, KEYS)
        sums += (
            np.bincount(cell, weights=value, minlength=SLIDES * KEYS).astype(np.int64).reshape(SLIDES, KEYS)
        )
        stamps = pa.array(at).cast(pa.timestamp("us", "UTC"))
        columns = {"ts": stamps, "key": pa.array(key.astype(np.int32)), "value": pa.array(value)}
        pq.write_table(pa.table(columns), folder / f"{i:05d}.parquet")
    before = np.cumsum(counts, axis=0), np.cumsum(sums, axis=0)
    return {
        (slide_at + 1, key): (int(before[0][slide_at, key]), int(before[1][slide_at, key]))
        for slide_at in range(SLIDES)
        for key in range(KEYS)
    }


class _Run:
    def __init__(self, session: Any, folder: Path, scale: Scale, progress: Progress) -> None:
        self._session, self._folder, self._scale, self._progress = session, folder, scale, progress
        self._answers: list[pa.Table] = []

    def measure(self, truth: dict[tuple[int, int], tuple[int, int]]) -> dict[str, Any]:
        query, begin = self._start(), time.perf_counter()
        while query.isActive:
            query.awaitTermination(1)
            done = query.lastProgress.batchId if query.lastProgress is not None else 0
            self._progress(done, self._scale.files, "micro-batches")
        query.awaitTermination()  # raises what stopped it
        wall = time.perf_counter() - begin
        space, resident = _most("VmPeak"), _most("VmHWM")
        blocks = query.lastProgress.stateOperators[0].numRowsTotal
        found = self._found()
        rows = self._scale.files * self._scale.rows
        return {
            "rows": rows,
            "state_mb": round(blocks * BLOCK / 1e6),
            "worker_mb": round(space / 1024 / 1024),
            "worker_resident_mb": round(resident / 1024 / 1024),
            "answers": len(found),
            "wrong": sum(truth.get(at) != given for at, given in found.items()),
            "wall_s": round(wall, 1),
            "rows_per_second": round(rows / wall),
        }

    def _start(self) -> Any:
        rows = (
            self._session.readStream.schema("ts timestamp, key int, value bigint")
            .option("maxFilesPerTrigger", 1)
            .option("latestFirst", "false")
            .parquet(str(self._folder / "in"))
        )
        span = _span(self._scale)
        window = wp.sliding(f"{span} us", f"{span // SLIDES} us")
        stream = wp.stream(rows, time="ts", keys="key", delay="1 s")
        frame = (
            stream.window(window)
            .agg(n=wp.count(), total=wp.sum("value"))
            .to_spark(buckets=1, memory=Budget(MEMORY, technique="1W"))
        )
        writer = frame.writeStream.foreachBatch(lambda batch, _: self._answers.append(batch.toArrow()))
        folder = str(self._folder / "checkpoint")
        return writer.option("checkpointLocation", folder).trigger(availableNow=True).start()

    def _found(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Count and sum, by the number of the slide at which the window ends, and the key."""
        table = pa.concat_tables(self._answers)
        slide = _span(self._scale) // SLIDES
        ends = pc.struct_field(table["window"], "end").cast(pa.int64()).to_numpy() // slide
        columns = (table[name].to_pylist() for name in ("key", "n", "total"))
        return {(int(end), k): (n, total) for end, k, n, total in zip(ends, *columns, strict=True)}


def _most(name: str) -> int:
    """The most that any Python worker of Spark ever had, in bytes."""
    found = [0]
    for process in psutil.Process().children(recursive=True):
        try:
            if "pyspark.daemon" not in " ".join(process.cmdline()):
                continue
            lines = Path(f"/proc/{process.pid}/status").read_text("utf-8").splitlines()
        except (psutil.Error, OSError):
            continue
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith(name)]
    return max(found)
