"""Spark and the in-process runtime give the same answers in the same micro-batch."""

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.harness import (
    answers_of,
    build,
    by_oracle,
    drained,
    events,
    local,
    numbered,
    opened,
    rows,
    run,
    streaming,
    write_files,
)

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


class Rated(wp.UserAggregate):
    """The largest rate of a value, by a table that is larger than what Spark sends with a stateful query."""

    columns, algebra, type = ("v",), wp.Algebra("distributive"), pa.int64()

    def __init__(self):
        self.rates = np.arange(1 << 18)[::-1].copy()

    def lift(self, v):
        return (self.rates[v],)

    def combine(self, a, b):
        return (np.maximum(a[0], b[0]),)

    def lower(self, partial):
        return partial[0]

    def identity(self):
        return (np.iinfo(np.int64).min,)


CASES = {
    "an aggregate with a large table": (wp.sliding("10 s", "5 s"), (Rated(),)),
    "sliding": (wp.sliding("10 s", "3 s"), (wp.count(), wp.sum("v"), wp.mean("x"))),
    "tumbling strings": (wp.tumbling("7 s"), (wp.first("k"), wp.top_k("k", 2), wp.max("ts"))),
    "median": (wp.sliding("20 s", "5 s"), (wp.median("x"), wp.distinct("v"), wp.m4("x"))),
    "session": (wp.session("300 ms"), (wp.count(), wp.min("v"), wp.variance("x"))),
    "landmark": (wp.landmark("15 s"), (wp.count(), wp.arg_max("v", "x"))),
    "rows by rank": (wp.rows(50, 20), (wp.sum("v"), wp.collect("v"))),
    "rows of a key": (wp.rows(10, 5).per(), (wp.sum("v"), wp.last("v"))),
    "delimited": (wp.delimited(start="m"), (wp.count(), wp.sum("v"))),
    "per row": (wp.per_row("1 s", every=5).per(), (wp.max("x"),)),
    "last rows": (wp.last_rows(7, "5 s").per(), (wp.sum("v"),)),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_micro_batch_has_the_answers_of_the_same_push(spark, tmp_path, case):
    window, aggregates = CASES[case]
    parts = write_files(tmp_path / "in", events())
    frame = build(streaming(spark, tmp_path / "in"), window, aggregates).to_spark(buckets=2)
    assert run(frame, tmp_path / "checkpoint") == local(parts, window, aggregates)


KINDS = {
    "sliding": (wp.sliding("10 s", "3 s"), {"n": ("count",), "total": ("sum", "v")}),
    "session": (wp.session("300 ms"), {"n": ("count",), "least": ("min", "v")}),
    "rows": (wp.rows(50, 20), {"total": ("sum", "v"), "all": ("collect", "v")}),
}
MADE = {"count": wp.count, "sum": wp.sum, "min": wp.min, "max": wp.max, "collect": wp.collect}
CHAINED = wp.sliding("20 s", "10 s"), {"most": ("max", "n"), "total": ("sum", "n")}


def asked(stream, name):
    """A query of KINDS over a stream."""
    window, wanted = KINDS[name]
    made = {out: MADE[function](*columns) for out, (function, *columns) in wanted.items()}
    return stream.window(window).agg(name=name, **made)


def chained(stream):
    """Over the answers of sliding windows."""
    window, wanted = CHAINED
    made = {out: MADE[function](*columns) for out, (function, *columns) in wanted.items()}
    again = wp.stream(asked(stream, "sliding"), time="window_end", keys="k")
    return again.window(window).agg(name="chained", **made)


def by_definition(table):
    """What the oracle says of every kind and of the chain."""
    found = {name: by_oracle(window, wanted, table) for name, (window, wanted) in KINDS.items()}
    first = [
        {"k": k, "window_end": end, "seq": i, **row}
        for i, (((k,), _, end), row) in enumerate(found["sliding"].items())
    ]
    return found | {"chained": by_oracle(*CHAINED, pa.Table.from_pylist(first), time="window_end")}


@pytest.mark.parametrize("partitions", [1, 2, 4, 9])
def test_spark_this_process_and_the_oracle_agree_for_any_number_of_partitions(spark, tmp_path, partitions):
    """Three kinds of windows in one pass, and a chain; all to the end of the stream."""
    table = numbered(events(n=600))
    write_files(tmp_path / "in", table, files=2)

    def stream(source):
        return wp.stream(source, time="ts", keys="k", delay="2 s", ties="seq")

    def queries(source):
        one = stream(source)
        return [asked(one, name) for name in KINDS]

    expected, names = by_definition(table), {name: list(wanted) for name, (_, wanted) in KINDS.items()}
    here = wp.run(*queries(table)).tables | {"chained": chained(stream(table)).run().table}
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    try:
        source = streaming(spark, tmp_path / "in")
        several = wp.to_spark(*queries(source), control=tmp_path / "several").frame
        there = opened(drained(several, tmp_path / "several", tmp_path / "a"))
        last = chained(stream(source)).to_spark(control=tmp_path / "chain")
        there["chained"] = drained(last, tmp_path / "chain", tmp_path / "b")
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", 2)
    for name, wanted in (names | {"chained": list(CHAINED[1])}).items():
        assert answers_of(here[name], wanted) == expected[name], name
        assert answers_of(there[name], wanted) == expected[name], name
        assert len(expected[name]) > 20, name


@pytest.mark.parametrize("case", ["sliding", "session", "rows by rank", "delimited"])
def test_a_static_frame_runs_as_a_batch_job_that_closes_every_window(spark, tmp_path, case):
    window, aggregates = CASES[case]
    write_files(tmp_path / "in", events())
    whole = build(events(), window, aggregates).run().table
    frame = build(spark.read.parquet(str(tmp_path / "in")), window, aggregates).to_spark(buckets=2)
    assert rows(frame.toArrow()) == rows(whole)


def test_provisional_rows_come_with_every_micro_batch_on_request(spark, tmp_path):
    window, aggregates = wp.tumbling("10 s"), (wp.count(),)
    parts = write_files(tmp_path / "in", events())
    frame = build(streaming(spark, tmp_path / "in"), window, aggregates, emit="update").to_spark(buckets=2)
    assert run(frame, tmp_path / "checkpoint") == local(parts, window, aggregates, emit="update")
