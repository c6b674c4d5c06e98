"""Spark's Python processes as they may be found: without Numba, in another time zone."""

import os
import time
from contextlib import contextmanager

import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.harness import build, events, local, rows, run, streaming, write_files

NO_NUMBA = 'raise ImportError("no module named numba")\n'


@contextmanager
def workers_with(spark, **environment):
    """Python processes of their own, which have these variables, within."""
    variables = spark.sparkContext.environment
    before = dict(variables)
    variables.update(environment)
    try:
        yield
    finally:
        variables.clear()
        variables.update(before)


def told_by_a_worker(spark, tell):
    """What a function says in a worker."""

    def each(batches):
        for _ in batches:
            yield pa.record_batch([[repr(tell())]], names=["told"])

    return spark.range(1).mapInArrow(each, "told string").first()["told"]


def have_numba():
    from windowpane.core.jit import HAVE_NUMBA

    return HAVE_NUMBA


def test_a_query_runs_on_spark_where_numba_is_missing(spark, tmp_path):
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "numba.py").write_text(NO_NUMBA)
    parts = write_files(tmp_path / "in", events(n=300), files=2)
    window, aggregates = wp.sliding("10 s", "3 s"), (wp.count(), wp.sum("v"), wp.first("k"))
    with workers_with(spark, PYTHONPATH=f"{tmp_path / 'path'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"):
        assert told_by_a_worker(spark, have_numba) == "False"
        frame = build(streaming(spark, tmp_path / "in"), window, aggregates).to_spark(buckets=2)
        found = run(frame, tmp_path / "checkpoint")
    assert found == local(parts, window, aggregates)
    assert all(found)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_row_30_the_time_zone_of_the_processes_changes_no_answer(spark, tmp_path, monkeypatch, zone):
    """The variable TZ, of the driver and of the workers; windows over days, which zones would move."""
    table = events(n=400)
    days = pa.array(table["ts"].cast(pa.int64()).to_numpy() * 3_000 % (400 * 86_400_000_000))
    table = table.set_column(0, "ts", days.cast(pa.timestamp("us", "UTC")).sort())
    write_files(tmp_path / "in", table, files=2)

    def answers(source):
        stream = wp.stream(source, time="ts", keys="k")
        return stream.window(wp.tumbling("1 day")).agg(wp.count(), wp.max("ts"), wp.first("ts"))

    expected = rows(answers(table).run().table)
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        with workers_with(spark, TZ=zone):
            assert told_by_a_worker(spark, lambda: time.tzname[0]) == repr(time.tzname[0]) != "'UTC'"
            frame = answers(spark.read.parquet(str(tmp_path / "in"))).to_spark(buckets=2)
            assert rows(frame.toArrow()) == expected
        assert rows(answers(table).run().table) == expected
    finally:
        monkeypatch.undo()
        time.tzset()
