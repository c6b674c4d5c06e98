"""What an update queue on Spark cannot be given is refused where it is said, with the remedy."""

import datetime as dt
import re
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StructType

import windowpane as wp
from windowpane.errors import BadQuery, WindowpaneError
from windowpane.query import Source

ROWS = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
STREAM = wp.stream(schema=ROWS, time="t", keys="k")
ON_SPARK = replace(STREAM, source=Source(None, foreign=object()))
"""As if it were: refusals come before anything asks the frame."""
GIVE = "Give an Arrow schema, a StructType, or a text such as 'key string, score double'."
TWICE = "apply(): the schema has two columns 'k'. Rename one of them."


def same(frame):
    return frame


@pytest.mark.parametrize("name", [None, "", "  ", 5])
def test_a_queue_is_named_by_a_text(name):
    told = f"apply(name={name!r}): give a text that is not empty; the output goes by it."
    with pytest.raises(BadQuery, match=f"^{re.escape(told)}$"):
        STREAM.latest().apply(same, "k string", name=name)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (5, f"apply(): the schema is 5. {GIVE}"),
        ({"k": "string"}, f"apply(): the schema is {{'k': 'string'}}. {GIVE}"),
        ("", "apply(): the schema has no columns. Give those that the function returns."),
        (pa.schema([]), "apply(): the schema has no columns. Give those that the function returns."),
        (pa.schema([("k", pa.string()), ("v", pa.int64()), ("k", pa.string())]), TWICE),
    ],
)
def test_a_schema_that_is_none_is_refused_when_it_is_given(schema, message):
    with pytest.raises(BadQuery, match=f"^{re.escape(message)}$"):
        STREAM.latest().apply(same, schema)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("foo bar", r"apply\(\): Spark takes the schema 'foo bar' for none: .*\. " + re.escape(GIVE)),
        ("k string, k string", re.escape(TWICE)),
        (StructType(), r"apply\(\): the schema has no columns"),
        (IntegerType(), r"apply\(\): the schema is IntegerType\(\)\. " + re.escape(GIVE)),
    ],
)
def test_a_schema_that_only_spark_can_read_is_refused_before_the_query_starts(spark, schema, message):
    frame = spark.createDataFrame([(1, "a")], "t bigint, k string")
    query = wp.stream(frame, time="t", keys="k").latest().apply(same, schema)
    with pytest.raises(BadQuery, match=f"^{message}"):
        query.to_spark()


@pytest.mark.parametrize("run", [lambda q, **o: q.to_spark(**o), wp.to_spark])
@pytest.mark.parametrize("option", ["memory", "bucket"])
def test_options_that_are_not_for_queues_are_refused(run, option):
    query = ON_SPARK.latest().apply(same, "k string")
    told = (
        rf"^to_spark\({option}=\.\.\.\) is not for update queues, which have buckets and control\. Leave it"
    )
    with pytest.raises(BadQuery, match=told):
        run(query, **{option: "1 MB"})


@pytest.mark.parametrize("option", ["late", "rejects"])
def test_a_queue_has_no_late_rows_and_no_rejects(option):
    with pytest.raises(BadQuery, match=r"^update queues have no late rows and no rejects.* Leave late= and"):
        wp.to_spark(ON_SPARK.latest().apply(same, "k string"), **{option: True})


def test_queues_and_windows_run_apart():
    windows = STREAM.window(wp.tumbling(10)).agg(wp.count())
    with pytest.raises(BadQuery, match="run together only with queues over the same stream"):
        wp.to_spark(ON_SPARK.latest().apply(same, "k string"), windows)
    with pytest.raises(BadQuery, match=r"no Spark DataFrame\. In one process use wp\.UpdateQueue"):
        wp.to_spark(STREAM.latest().apply(same, "k string"))


def test_a_queue_over_the_answers_of_a_query_is_refused():
    query = STREAM.window(wp.tumbling(10)).agg(wp.count())
    over = wp.stream(replace(query, source=ON_SPARK.source), time="window_end", keys="k")
    with pytest.raises(BadQuery, match=r"answers of a query on Spark\. Write the answers out, to files or a"):
        over.latest()


def named(**columns):
    kinds = {"t": pa.int64(), "k": pa.string()} | columns
    return wp.stream(schema=pa.schema(list(kinds.items())), time="t")


@pytest.mark.parametrize("name", ["queue_staleness", "application_staleness", "stale_for"])
def test_a_key_is_not_named_as_its_staleness(name):
    stream = named(**{name: pa.string()})
    with pytest.raises(BadQuery, match=f"^the key column '{name}' has the name of a column of latest"):
        stream.latest(["k", name])
    assert stream.latest("k").keys == ("k",)


@pytest.mark.parametrize("name", ["windowpane rows", "windowpane number"])
def test_names_of_columns_that_rows_have_in_a_queue_are_taken(name):
    told = f"^the column '{name}' has the name of a column of latest\\(\\). Rename it first"
    with pytest.raises(BadQuery, match=told):
        named(**{name: pa.int64()}).latest("k")


def static(spark):
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    rows = [(start + dt.timedelta(seconds=i), f"k{i % 3}", i) for i in range(9)]
    return wp.stream(spark.createDataFrame(rows, "t timestamp, k string, v bigint"), time="t", keys="k")


@pytest.mark.parametrize("buckets", [0, -1, 1.5, True, "2"])
def test_buckets_are_a_whole_number(spark, buckets):
    with pytest.raises(
        BadQuery, match=rf"^buckets is {re.escape(repr(buckets))}\. Give a whole number above 0"
    ):
        static(spark).latest().apply(same, "k string").to_spark(buckets=buckets)


def test_a_static_frame_has_no_control_folder(spark, tmp_path):
    with pytest.raises(
        BadQuery, match=r"^control= reaches a running stream, but this frame is static\. Leave"
    ):
        static(spark).latest().apply(same, "k string").to_spark(control=tmp_path)


def test_a_struct_type_is_a_schema_and_results_that_do_not_fit_are_told_in_sparks_error(spark):
    schema = StructType.fromDDL("k string, v bigint")
    found = static(spark).latest().apply(same, schema).to_spark()
    assert sorted(map(tuple, found.collect())) == [("k0", 6), ("k1", 7), ("k2", 8)]

    def wrong(frame):
        return frame.assign(v="text")

    with pytest.raises(
        Exception, match=r"function of 'latest' gave in column 'v' what is no int64"
    ) as raised:
        static(spark).latest().apply(wrong, schema).to_spark().collect()
    assert not isinstance(raised.value, WindowpaneError)  # it comes from a worker, by its text


@pytest.mark.parametrize("policy", ["append", "shed", "switch"])
def test_a_static_frame_gives_every_row_where_the_policy_is_for_overload(spark, policy):
    query = static(spark).latest(policy=policy, budget="1 us").apply(same, "k string, v bigint")
    assert sorted(row.v for row in query.to_spark().collect()) == list(range(9))


def test_a_time_without_a_zone_is_what_it_is_in_sparks_own_functions(spark):
    def at_noon(frame):
        return pd.DataFrame({"k": frame["k"], "at": pd.Timestamp("2024-01-01 12:00"), "own": frame["t"]})

    schema, zone = "k string, at timestamp, own timestamp", spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        stream = static(spark)
        shown = ["k", "cast(at as string)", "cast(own as string)"]
        ours = stream.latest(policy="append").apply(at_noon, schema).to_spark().selectExpr(*shown)
        theirs = stream.source.foreign.mapInPandas(lambda some: map(at_noon, some), schema).selectExpr(*shown)
        assert sorted(map(tuple, ours.collect())) == sorted(map(tuple, theirs.collect()))
        assert {row[1] for row in ours.collect()} == {"2024-01-01 12:00:00"}
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


NAIVE = pd.Timestamp("2024-01-01 12:00")
WIDE = pa.schema(
    [
        pa.field("k", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        ("ns", pa.timestamp("ns", "Asia/Kolkata")),
        ("s", pa.timestamp("s")),
        ("length", pa.duration("ms")),
        ("pair", pa.list_(pa.int64(), 2)),
        ("many", pa.large_list(pa.struct([("at", pa.timestamp("ns"))]))),
    ]
)


def test_an_arrow_schema_may_have_types_that_spark_has_in_one_width_only(spark):
    def wide(frame):
        values = {"ns": NAIVE.tz_localize("UTC"), "s": NAIVE, "length": pd.Timedelta("1s")}
        more = {"pair": [[1, 2]] * len(frame), "many": [[{"at": NAIVE}]] * len(frame)}
        return pd.DataFrame({"k": frame["k"].astype("category"), **more}).assign(**values)

    found = static(spark).latest().apply(wide, WIDE).to_spark()
    kinds = (
        "string timestamp timestamp_ntz interval_day_to_second array<bigint> array<struct<at:timestamp_ntz>>"
    )
    assert [field.dataType.simpleString().replace(" ", "_") for field in found.schema] == kinds.split()
    assert [field.nullable for field in found.schema] == [False, *[True] * 5]
    row = min(found.selectExpr("k", "cast(s as string)", "length", "pair", "many[0].at").collect())
    assert tuple(row) == ("k0", "2024-01-01 12:00:00", dt.timedelta(seconds=1), [1, 2], NAIVE)


@pytest.mark.parametrize("kind", [pa.uint8(), pa.float16(), pa.decimal256(50, 2), pa.list_(pa.uint64())])
def test_a_type_that_spark_does_not_have_is_refused_when_the_query_is_made(spark, kind):
    schema = pa.schema([("k", pa.string()), ("x", kind)])
    told = f"apply(): Spark has no type for the column 'x' of the schema, which is {kind}. Declare another"
    with pytest.raises(BadQuery, match=re.escape(told)):
        static(spark).latest().apply(same, schema).to_spark()


@pytest.mark.parametrize(("columns", "computed"), [("tkvv", {}), ("tkv", {"v": "v * 2"})])
def test_a_column_is_selected_once(spark, columns, computed):
    with pytest.raises(BadQuery, match=r"^the rows have two columns 'v'\. Rename one of them first\.$"):
        static(spark).select(*columns, **computed)
