"""Times without a zone: their windows have starts and ends without one, in this process and on Spark."""

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

import windowpane as wp
from tests.spark.harness import drained, events, rows, streaming, write_files

LOCAL, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
WINDOW = wp.tumbling("10 s")


def table_of(kind=LOCAL):
    """Events of wall clocks, with a second column of such times."""
    table = events().select(["ts", "k", "v"])
    times = table["ts"].cast(LOCAL).cast(kind)
    return table.set_column(0, "ts", times).append_column("at", times)


def stream_of(source=None, kind=LOCAL):
    how = {"schema": table_of(kind).schema} if source is None else {}
    return wp.stream(source, time="ts", keys="k", delay="2 s", **how)


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(spark, request):
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def frame_of(spark, tmp_path, table):
    """The table as Spark reads it: a parquet file says whether its times have a zone."""
    write_files(tmp_path / "in", table)
    return spark.read.parquet(str(tmp_path / "in"))


@pytest.mark.parametrize(("kind", "points"), [(LOCAL, LOCAL), (pa.date32(), LOCAL), (ZONED, ZONED)])
def test_in_this_process_windows_have_a_zone_if_the_times_have_one(kind, points):
    table = stream_of(table_of(kind), kind).window(WINDOW).agg(wp.count(), wp.max("at")).run().table
    assert table.schema.field("window").type == pa.struct({"start": points, "end": points})
    assert table.schema.field("max_at").type == kind


def test_on_spark_they_are_what_they_are_in_this_process(spark, tmp_path, zone):  # noqa: ARG001
    """As `timestamp` they were shown as hours earlier or later where the session's zone is not UTC."""
    frame = frame_of(spark, tmp_path, table_of())
    query = stream_of(frame).window(WINDOW).agg(wp.count(), wp.max("at"))
    answers = query.to_spark()
    types = dict(answers.select("window.start", "window.end", "max_at").dtypes)
    assert types == dict.fromkeys(("start", "end", "max_at"), "timestamp_ntz")
    own = frame.groupBy("k", F.window("ts", "10 seconds")).agg(F.count("*").alias("count"), F.max("at"))
    assert answers.schema["window"].dataType.simpleString() == own.schema["window"].dataType.simpleString()
    here = stream_of(table_of()).window(WINDOW).agg(wp.count(), wp.max("at")).run().table
    assert rows(answers.toArrow()) == rows(here)
    assert rows(answers.drop("revision").toArrow()) == rows(
        own.toDF("k", "window", "count", "max_at").toArrow()
    )


def test_windows_of_dates_have_no_zone_either(spark, tmp_path, zone):  # noqa: ARG001
    window = wp.tumbling("1 day")
    frame = frame_of(spark, tmp_path, table_of(pa.date32()))
    answers = stream_of(frame).window(window).agg(wp.count(), wp.last("at")).to_spark()
    assert dict(answers.select("window.start", "last_at").dtypes) == {
        "start": "timestamp_ntz",
        "last_at": "date",
    }
    here = stream_of(table_of(pa.date32())).window(window).agg(wp.count(), wp.last("at")).run().table
    assert rows(answers.toArrow()) == rows(here)


def test_times_with_a_zone_keep_it(spark, tmp_path, zone):  # noqa: ARG001
    frame = frame_of(spark, tmp_path, table_of(ZONED))
    answers = stream_of(frame).window(WINDOW).agg(wp.max("at"), wp.collect("at")).to_spark()
    kinds = dict(answers.select("window.start", "max_at", "collect_at").dtypes)
    assert kinds == {"start": "timestamp", "max_at": "timestamp", "collect_at": "array<timestamp>"}


def test_lists_of_them_and_several_outputs_keep_them_too(spark, tmp_path, zone):  # noqa: ARG001
    """These travel as payloads, which another task opens."""
    frame = frame_of(spark, tmp_path, table_of())

    def queries(source):
        stream = stream_of(source)
        lists = stream.window(WINDOW).agg(wp.collect("at"), name="lists")
        return lists, stream.window(wp.sliding("1 min", "20 s"), keys=()).agg(wp.min("at"), name="least")

    outputs = wp.to_spark(*queries(frame), late=True, rejects=True).split()
    assert dict(outputs["lists"].dtypes)["collect_at"] == "array<timestamp_ntz>"
    assert {dict(outputs[name].dtypes)["ts"] for name in ("late", "rejects")} == {"timestamp_ntz"}
    here = wp.run(*queries(table_of()))
    for name in ("lists", "least"):
        assert rows(outputs[name].toArrow()) == rows(here.tables[name])


def test_a_stream_and_a_query_over_its_answers_keep_them(spark, tmp_path, zone):  # noqa: ARG001
    frame_of(spark, tmp_path, table_of())

    def chained(source):
        inner = stream_of(source).window(WINDOW).agg(n=wp.count(), name="inner")
        answers = wp.stream(inner, time="window_end", keys="k")
        return answers.window(wp.tumbling("30 s")).agg(wp.sum("n"), wp.max("window_start"))

    control = tmp_path / "control"
    query = chained(streaming(spark, tmp_path / "in")).to_spark(control=str(control))
    assert dict(query.select("window.end", "max_window_start").dtypes) == {
        "end": "timestamp_ntz",
        "max_window_start": "timestamp_ntz",
    }
    found = drained(query, str(control), tmp_path / "checkpoint")
    assert rows(found) == rows(chained(table_of()).run().table)


def test_late_rows_and_rejects_of_a_stream_keep_them(spark, tmp_path, zone):  # noqa: ARG001
    early = pa.table({"ts": [dt.datetime(2024, 1, 1, 10), None], "k": ["a", "b"]})  # noqa: DTZ001 - no zone
    early = early.set_column(0, "ts", early["ts"].cast(LOCAL))
    write_files(tmp_path / "in", early, files=2)
    query = (
        wp.stream(spark.read.parquet(str(tmp_path / "in")), time="ts", keys="k")
        .window(WINDOW)
        .agg(wp.last("ts"))
    )
    rejects = query.to_spark("rejects")
    assert rejects.dtypes[0] == ("ts", "timestamp_ntz")
    assert rows(rejects.toArrow()) == rows(
        pa.table({"ts": pa.array([None], LOCAL), "k": ["b"], "reason": ["null time"]})
    )
    assert query.to_spark().toArrow()["last_ts"].to_pylist() == [dt.datetime(2024, 1, 1, 10)]  # noqa: DTZ001


def test_what_an_update_queue_serves_keeps_them(spark, tmp_path, zone):  # noqa: ARG001
    frame = frame_of(spark, tmp_path, table_of())
    schema = "k string, at timestamp_ntz"
    served = stream_of(frame).latest("at").apply(lambda rows_: rows_[["k", "at"]], schema)
    found = served.to_spark()
    assert found.dtypes == [("k", "string"), ("at", "timestamp_ntz")]
    assert set(found.toArrow()["at"].to_pylist()) == set(table_of()["at"].to_pylist())
    stale = served.to_spark("staleness")
    assert dict(stale.dtypes)["at"] == "timestamp_ntz"
    assert set(stale.toArrow()["at"].to_pylist()) <= set(table_of()["at"].to_pylist())
