"""Files as micro-batches: the same files through Spark and through the in-process runtime."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windowpane as wp
from tests.oracle import OracleQuery, answer
from windowpane.spark import finish
from windowpane.spark.envelope import read_batches

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


def numbered(table):
    """The table with the number of each row as `seq`, which orders rows of one time."""
    return table.append_column("seq", pa.array(range(len(table)), pa.int64()))


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


def drained(frame, control, checkpoint):
    """Run a streaming DataFrame over what is there and then to the end of the stream; all its rows."""
    tables = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: tables.append(batch.toArrow()))
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        query.processAllAvailable()
        finish(control)
        query.processAllAvailable()
    finally:
        query.stop()
    return pa.concat_tables(tables)


def opened(tagged):
    """The outputs of a pass by their names, from its tagged payloads."""
    found = {}
    for name, payload in zip(tagged["output"].to_pylist(), tagged["payload"].to_pylist(), strict=True):
        if payload is not None:
            found.setdefault(name, []).extend(read_batches(payload))
    return {name: pa.Table.from_batches(batches) for name, batches in found.items()}


def by_oracle(window, wanted, table, time="ts"):
    """The oracle's answers over a table by `k`: (key, start, end) to values, all instants as microseconds."""
    return answer(OracleQuery(window, wanted, ("k",), time, ties="seq"), in_micros(table))


def in_micros(table):
    """The rows with their instants as microseconds."""
    stamps = [i for i, field in enumerate(table.schema) if pa.types.is_timestamp(field.type)]
    for i in stamps:
        table = table.set_column(i, table.schema.names[i], table.column(i).cast(pa.int64()))
    return table.to_pylist()


def answers_of(table, names):
    """Results in the form of the oracle's: (key, start, end) to values."""
    window = table["window"].combine_chunks()
    edges = [window.field(name) for name in ("start", "end")]
    starts, ends = ((e.cast(pa.int64()) if pa.types.is_timestamp(e.type) else e).to_pylist() for e in edges)
    rows_ = table.select(["k", *names]).to_pylist()
    found = {((row.pop("k"),), a, b): row for row, a, b in zip(rows_, starts, ends, strict=True)}
    assert len(found) == len(table), "an answer came twice"
    return found
