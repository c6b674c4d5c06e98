"""What `bench spark` should answer where Spark's own windows take too long: the answers of this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import windowpane as wp
from windowpane.spark.compare import digest_now

Shapes = Sequence[tuple[int, int]]


def asked(source: Any, windows: Shapes, **how: Any) -> Any:
    """Sum and count of `value` by `key` over windows of (size, slide) seconds of `ts`."""
    stream = wp.stream(source, time="ts", keys="key", delay="2 s", **how)
    shapes = [wp.sliding(f"{size} s", f"{slide} s") for size, slide in windows]
    return stream.window(*shapes).agg(total=wp.sum("value"), n=wp.count())


def truth(session: Any, folder: Path, windows: Shapes) -> dict[str, int]:
    """The same query in this process over the same files, and the same digest of its answers."""
    files = sorted(folder.glob("*.parquet"))
    runner = asked(None, windows, schema=pq.read_schema(files[0])).start()
    tables = [runner.answers(runner.push(pq.read_table(file))) for file in files]
    answers = pa.concat_tables(tables).select(["key", "window", "total", "n"])
    return digest_now(session.createDataFrame(answers))
