"""Files as micro-batches: the same files through Spark and through the in-process runtime."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windowpane as wp

N = 2400


def events(seed=0, n=N):
    """Rows out of order by up to two seconds, with null keys and values, ties and markers."""
    rng = np.random.default_rng(seed)
    time = np.sort(rng.integers(0, 600, n)) * 100_000
    time = time[np.argsort(time + rng.integers(0, 2_000_000, n), kind="stable")] + 1_700_000_000_000_000
    keys = np.array(["a", "b", "c", "d", None], object)[rng.integers(0, 5, n)]
    values = [None if x < 0.05 else int(x * 100) for x in rng.random(n)]
    return pa.table(
        {
            "ts": pa.array(time, pa.timestamp("us", "UTC")),
            "k": pa.array(keys, pa.string()),
            "v": pa.array(values, pa.int64()),
            "x": rng.normal(size=n),
            "m": rng.random(n) < 0.05,
        }
    )


def write_files(folder, table, files=4):
    """The table cut into files, which Spark reads one per micro-batch."""
    folder.mkdir(exist_ok=True)
    parts = np.array_split(np.arange(len(table)), files)
    for i, part in enumerate(parts):
        file = folder / f"{i:02d}.parquet"
        pq.write_table(table.slice(int(part[0]), len(part)), file)
        # Spark reads files by their age, which must not be left to the clock's resolution.
        os.utime(file, (1_700_000_000 + i, 1_700_000_000 + i))
    return [table.slice(int(part[0]), len(part)) for part in parts]


def streaming(spark, folder):
    """The folder as a stream, a file per micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def build(source, window, aggregates, **options):
    """A query over a source, which may be a Spark DataFrame or None (to push to)."""
    how = {"schema": events(n=2).schema} if source is None else {}
    stream = wp.stream(source, time="ts", keys="k", delay="2 s", **how)
    return stream.window(window).agg(*aggregates, **options)


def run(frame, checkpoint):
    """Run a streaming DataFrame over what is available; the rows of each micro-batch."""
    batches = {}

    def sink(result, number):
        batches[number] = rows(result.toArrow())

    query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    return [batches[n] for n in sorted(batches)]


def rows(table):
    """Rows in a comparable form, in any order; floats to nine digits, times as microseconds."""
    return sorted(repr(plain(row)) for row in table.to_pylist())


def plain(value):
    """Values without the differences that Arrow types of the two runtimes make."""
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return value.isoformat() if hasattr(value, "isoformat") else value


def local(parts, window, aggregates, **options):
    """The answers of each push in this process."""
    runner = build(None, window, aggregates, **options).start()
    return [rows(runner.push(part).tables["query"]) for part in parts]
