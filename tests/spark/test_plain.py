"""Outputs whose rows Catalyst opens itself: every type unchanged, and lists, which go as payloads."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.harness import events, rows, run, streaming, write_files
from windowpane.spark import counts_of
from windowpane.spark.outputs import NOTES
from windowpane.spark.plain import plain

COLUMNS = """ts timestamp, b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f32 float, f64 double,
    s string, raw binary, day date, stamp timestamp, price decimal(38,6), span interval day to second,
    pair struct<a: int, inner: struct<t: timestamp, s: string>>"""
NOON = dt.datetime(2024, 3, 31, 12, 0, 0, 123457, dt.UTC)
FULL = (
    *(True, -128, -32768, 2**31 - 1, 2**63 - 1, 0.5, float("nan"), "é", b"\x00\xff", dt.date(1, 1, 1)),
    *(
        NOON,
        Decimal("12345678901234567890.000001"),
        dt.timedelta(days=-3, microseconds=7),
    ),
)
NOTED = {name: 10 + i for i, name in enumerate(reversed(NOTES))}
PAIRS = [(1, (NOON, "x")), (None, (None, None)), (2, None), None]


def rejected(spark, columns, found):
    """Rows that have no time, as they come out of windowpane and as they went in."""
    frame = spark.createDataFrame([(None, *row) for row in found], columns)
    query = wp.stream(frame, time="ts", keys=(), delay="2 s").window(wp.tumbling("10 s")).agg(wp.count())
    return query.to_spark("rejects"), frame


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_rows_of_every_type_come_out_as_they_went_in(spark, zone):
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        some = [(*FULL, pair) for pair in PAIRS] + [(None,) * (len(FULL) + 1)]
        there, here = rejected(spark, COLUMNS, some)
        assert "MapInArrow _opened" not in explained(there)
        assert there.schema.fields[:-1] == here.schema.fields
        assert rows(there.drop("reason").toArrow()) == rows(here.toArrow())
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_rows_with_lists_go_as_payloads(spark):
    there, here = rejected(
        spark, "ts timestamp, several array<struct<a: int, s: string>>", [([(1, "x")],), (None,)]
    )
    assert "MapInArrow _opened" in explained(there)
    assert there.schema.fields[:-1] == here.schema.fields
    assert rows(there.drop("reason").toArrow()) == rows(here.toArrow())


def explained(frame):
    return frame._jdf.queryExecution().toString()


def test_more_answers_than_are_handed_on_at_once(spark, tmp_path):
    n = 150_000
    time = pa.array([1_000_000, *[2_000_000] * n, 60_000_000], pa.timestamp("us", "UTC"))
    table = pa.table({"ts": time, "k": pa.array([0, *range(n), 0])})
    write_files(tmp_path / "in", table, files=1)
    stream = wp.stream(streaming(spark, tmp_path / "in"), time="ts", keys="k", delay="2 s")
    frame = stream.window(wp.tumbling("10 s")).agg(wp.count()).to_spark(buckets=1)
    query = frame.writeStream.format("memory").queryName("many").outputMode("append")
    running = (
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )
    running.awaitTermination()
    found = spark.table("many").selectExpr("count(distinct k) AS keys", "sum(count) AS rows").first()
    assert tuple(found) == (n, n + 1)
    assert sum(counts_of(progress)["answers"] for progress in running.recentProgress) == n


def test_structs_and_lists_of_aggregates(spark, tmp_path):
    parts = write_files(tmp_path / "in", events(), files=2)
    for aggregate in (wp.m4("x"), wp.top_k("v", 2)):
        stream = wp.stream(streaming(spark, tmp_path / "in"), time="ts", keys="k", delay="2 s")
        found = run(
            stream.window(wp.sliding("10 s", "5 s")).agg(aggregate).to_spark(), tmp_path / str(aggregate)
        )
        local = wp.stream(None, time="ts", keys="k", delay="2 s", schema=parts[0].schema)
        runner = local.window(wp.sliding("10 s", "5 s")).agg(aggregate).start()
        assert found == [rows(runner.push(part).tables["query"]) for part in parts]


def test_what_may_not_be_null_or_is_of_another_unit_goes_as_payloads():
    for field in (
        pa.field("a", pa.int64(), nullable=False),
        pa.field("a", pa.timestamp("ns")),
        pa.field("a", pa.list_(pa.int64())),
        pa.field("a", pa.struct([pa.field("b", pa.large_string())])),
        pa.field("a", pa.struct([])),
    ):
        assert plain("query", pa.schema([("k", pa.int64()), field])) is None


def test_nulls_of_structs_stay_apart_from_structs_of_nulls():
    kind = pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])
    table = pa.table({"s": pa.array([None, {"a": 1, "b": None}, {"a": None, "b": {"c": "x"}}, {}], kind)})
    frame = plain("query", table.schema).frame({"query": [table.slice(1), table.slice(0, 1)]}, NOTED)
    assert frame["c0"].tolist()[:4] == [True, True, True, False]
    assert frame["c2"].tolist()[:4] == [False, True, False, False]
    assert [
        None if v is None else str(v) for v in frame["c3"].astype(object).where(frame["c3"].notna(), None)
    ] == [
        *(None, "x", None, None, None),
    ]
    assert frame["notes"].isna().tolist() == [True] * 4 + [False]
    told = {"observedMetrics": {"windowpane x": {",".join(NOTES): [frame["notes"].iloc[-1]] * 2}}}
    assert counts_of(told) == {name: n if name in ("bound", "high") else 2 * n for name, n in NOTED.items()}
