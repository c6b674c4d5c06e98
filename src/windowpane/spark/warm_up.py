"""A program: small queries of the usual kinds on Spark, so that what they need is loaded once.

`python -m windowpane.spark.warm_up FOLDER JAVA_OPTION`
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import windowpane as wp
from windowpane.spark.control import finish
from windowpane.spark.session import open_session


def main(folder: str, java: str) -> None:
    """Run below a folder, in a JVM with an option."""
    path = Path(folder)
    settings = {
        "spark.driver.extraJavaOptions": shlex.quote(java),
        "spark.sql.warehouse.dir": str(path / "warehouse"),
        "spark.local.dir": str(path / "scratch"),
    }
    (path / "in").mkdir()
    finish(path / "control")
    for number in range(2):
        pq.write_table(_rows(number), path / "in" / f"{number}.parquet")
    session = open_session("windowpane warm", None, settings, "OFF")
    rows = session.readStream.schema("ts timestamp, k string, v bigint").option("maxFilesPerTrigger", 1)
    stream = wp.stream(rows.parquet(str(path / "in")), time="ts", keys="k")
    sliding = stream.window(wp.sliding("2 s", "1 s")).agg(wp.sum("v"), name="sliding")
    sessions = stream.window(wp.session("1 s")).agg(wp.count(), name="sessions")
    control, several = path / "control", wp.to_spark(sliding, sessions)
    alone = sliding.to_spark(control=control).writeStream.format("parquet").option("path", str(path / "out"))
    both = several.frame.writeStream.foreachBatch(several.foreach(partial(_write, path)))
    for writer in (alone, both):
        checkpoint = tempfile.mkdtemp(dir=path)
        writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    session.stop()


def _rows(number: int) -> pa.Table:
    times = pa.array([(number * 4 + i) * 500_000 for i in range(8)], pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "k": ["a", "b"] * 4, "v": range(8)})


def _write(path: Path, name: str, batch: DataFrame, number: int) -> None:
    batch.write.parquet(str(path / name / f"batch={number}"))


if __name__ == "__main__":
    main(*sys.argv[1:])
