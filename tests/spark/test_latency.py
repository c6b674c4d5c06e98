"""Latency counted in micro-batches: windowpane answers in the one that closes a window, Spark's own later."""

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.harness import streaming, write_files

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
FILES = 6


def ticking(n=1200):
    """A minute of rows, in order, so that every file closes windows of its own."""
    time = START + np.sort(np.random.default_rng(0).integers(0, 60_000, n)) * 1000
    return pa.table({"ts": pa.array(time, pa.timestamp("us", "UTC")), "k": ["a", "b"] * (n // 2)})


def closing_batch(parts, end):
    """The micro-batch after which no row below `end` can come: the first that has a later one."""
    tops = [int(part["ts"].cast(pa.int64()).to_numpy().max()) for part in parts]
    return next((i for i, top in enumerate(tops) if top >= end), None)


def arrivals(frame, checkpoint):
    """The micro-batch in which each (key, end of window) came out."""
    found = {}

    def sink(batch, number):
        for row in batch.toArrow().to_pylist():
            where = row["k"], int(row["end"].timestamp() * SECOND)
            assert where not in found
            found[where] = number

    query = frame.select("k", "window.end").writeStream.foreachBatch(sink)
    query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return found


@pytest.mark.parametrize("chained", [False, True], ids=["one operator", "two operators"])
def test_answers_come_in_the_micro_batch_that_closes_them_and_sparks_own_come_later(spark, tmp_path, chained):
    from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

    parts = write_files(tmp_path / "in", ticking(), files=FILES)
    source = streaming(spark, tmp_path / "in")
    ours = wp.stream(source, time="ts", keys="k").window(wp.tumbling("1 s")).agg(n=wp.count())
    theirs = source.withWatermark("ts", "0 seconds")
    theirs = theirs.groupBy("k", F.window("ts", "1 second")).agg(F.count(F.lit(1)).alias("n"))
    if chained:
        again = wp.stream(ours, time="window_end", keys="k")
        ours = again.window(wp.tumbling("5 s")).agg(most=wp.max("n"))
        theirs = theirs.withColumn("at", F.window_time("window"))
        theirs = theirs.groupBy("k", F.window("at", "5 seconds")).agg(F.max("n").alias("most"))
    quick = arrivals(ours.to_spark(), tmp_path / "ours")
    slow = arrivals(theirs, tmp_path / "theirs")
    assert len(quick) >= 20 if chained else len(quick) > 100
    assert quick == {where: closing_batch(parts, where[1]) for where in quick}
    both = quick.keys() & slow.keys()
    assert len(both) >= len(quick) // 2
    assert min(slow[where] - quick[where] for where in both) >= 1
