"""Spark and the in-process runtime give the same answers in the same micro-batch."""

import pytest

import windowpane as wp
from tests.spark.harness import build, events, local, rows, run, streaming, write_files

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

CASES = {
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


@pytest.mark.parametrize("buckets", [1, 2, 4, 9])
def test_the_number_of_partitions_does_not_change_the_answer(spark, tmp_path, buckets):
    window, aggregates = CASES["sliding"]
    parts = write_files(tmp_path / "in", events(), files=3)
    spark.conf.set("spark.sql.shuffle.partitions", buckets)
    try:
        frame = build(streaming(spark, tmp_path / "in"), window, aggregates).to_spark()
        assert run(frame, tmp_path / "checkpoint") == local(parts, window, aggregates)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", 2)


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
