"""Kinds of punctuation and lateness on Spark itself; the pump has them in all their variety."""

import json

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.harness import events, rows, run, streaming, write_files
from tests.spark.pump import Pump
from windowpane.spark import counts_of

POLICIES = {
    "lateness": {"delay": "300 ms", "lateness": "2 s"},
    "slack": {"punctuation": wp.slack(50)},
    "external": {"punctuation": wp.external("m")},
}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_answers_on_spark_as_its_tasks_and_buckets_do_without(spark, tmp_path, policy):
    table = events(n=1200)
    parts = write_files(tmp_path / "in", table, files=3)

    def query(source, **how):
        stream = wp.stream(source, time="ts", keys="k", **POLICIES[policy], **how)
        return stream.window(wp.tumbling("1 s"), wp.session("200 ms")).agg(wp.count(), wp.sum("v"))

    pump = Pump(query(None, schema=table.schema))
    steps = [pump.push(part)["query"] for part in parts]
    found = run(query(streaming(spark, tmp_path / "in")).to_spark(buckets=2), tmp_path / "checkpoint")
    assert found == [rows(step) for step in steps]
    assert all(found)
    revisions = pa.concat_tables(steps)["revision"].to_pylist()
    assert (max(revisions) > 0) == (policy == "lateness")


def test_row_29_one_silent_input_of_two_is_waited_for_no_longer_than_its_idle_time(spark, tmp_path):
    """Counted in ticks of the clock that came with each micro-batch: one for each second."""
    idle, n = 3, 200
    time = 1_700_000_000_000_000 + np.arange(n) * 100_000
    table = pa.table({"ts": pa.array(time, pa.timestamp("us", "UTC")), "s": ["a"] * n})
    write_files(tmp_path / "in", table, files=1)
    policy = wp.melded("s", wp.heartbeat(f"{idle} s", delay="1 s", policy=wp.delay(0)), sources=["a", "b"])
    stream = wp.stream(streaming(spark, tmp_path / "in"), time="ts", keys="s", punctuation=policy)
    frame = stream.window(wp.tumbling("1 s")).agg(wp.count()).to_spark(buckets=1)
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="500 milliseconds").start()
    ticks, answered = [], []
    try:
        while sum(answered) < n // 10 and query.isActive and len(ticks) < 100:
            query.awaitTermination(0.2)
            ticks, answered = told(query)
    finally:
        query.stop()
    first = next(i for i, some in enumerate(answered) if some)
    began = next(tick for tick in ticks if tick)
    # the micro-batch before the answers was within the idle time still, or the clock had just passed it
    assert first == 0 or ticks[first - 1] - began <= idle + 1, (ticks, answered)
    assert sum(answered) == n // 10


def told(query):
    """Of each micro-batch, the last tick of Spark's clock and how many answers there were."""
    ticks, answered = [], []
    for progress in query.recentProgress:
        clock = [s for s in json.loads(progress.json)["sources"] if s["description"].startswith("Rate")]
        ticks.append(int(clock[0]["endOffset"] or 0))
        answered.append(counts_of(progress).get("answers") or 0)
    return ticks, answered
