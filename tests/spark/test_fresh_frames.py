"""The frames that a function behind a queue takes and gives: exact, with the same types in every call."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from windowpane.errors import WrongType
from windowpane.spark.fresh_frames import frame_of, table_of
from windowpane.spark.queue_spec import QueueSpec

BIG = 2**53 + 1
ROWS = pa.schema(
    [
        ("t", pa.int64()),
        ("k", pa.float64()),
        ("v", pa.int64()),
        ("u", pa.uint8()),
        ("b", pa.bool_()),
        ("x", pa.float64()),
        ("r", pa.int64()),
        ("s", pa.string()),
    ]
)


def spec(schema=ROWS, zone="UTC"):
    return QueueSpec("q", ("k",), "t", "freshest", 1.0, lambda f: f, schema, None, ("r",), zone)


def table(*rows):
    return pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], ROWS)


def test_integers_and_booleans_stay_what_they_are_beside_nulls():
    rows = table((1, 1.0, BIG, 255, True, 1.5, BIG, "a"), (2, 2.0, None, None, None, None, 3, None))
    frame = frame_of(spec(), rows)
    assert frame["v"].tolist() == [BIG, pd.NA]
    assert frame["u"].tolist() == [255, pd.NA]
    assert frame["b"].tolist() == [True, pd.NA]
    assert math.isnan(frame["x"][1])
    assert table_of(spec(), frame) == rows


def test_a_column_has_one_dtype_with_nulls_and_without():
    none = frame_of(spec(), table((1, 1.0, 1, 1, True, 1.0, 1, "a")))
    some = frame_of(spec(), table((1, None, None, None, None, None, 1, None)))
    assert list(none.dtypes) == list(some.dtypes)
    kinds = {"t": "int64", "k": "Float64", "v": "Int64", "u": "UInt8", "b": "boolean", "x": "float64"}
    assert {name: str(kind) for name, kind in none.dtypes.items()} == kinds | {"r": "int64", "s": "object"}


def test_a_function_may_change_what_it_is_given():
    rows = table((1, 1.0, 1, 1, True, 1.0, 1, "a"), (2, 2.0, 2, 2, False, 2.0, 2, "b"))
    frame = frame_of(spec(), rows)
    for name in frame.columns:
        frame.loc[0, name] = frame.loc[1, name]
    assert table_of(spec(), frame).to_pylist() == [rows.to_pylist()[1]] * 2
    assert rows["x"].to_pylist() == [1.0, 2.0]


def test_a_null_key_and_a_key_that_is_no_number_stay_two():
    frame = frame_of(spec(), table(*((1, k, 1, 1, True, 1.0, 1, "a") for k in (None, math.nan, 1.0))))
    keys = table_of(spec(), frame)["k"].to_pylist()
    assert keys[0] is None
    assert math.isnan(keys[1])
    assert frame["k"].isna().tolist() == [True, False, False]


INSTANTS = pa.schema([("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us"))])
NOON = dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001 - this is about times without a zone


@pytest.mark.parametrize("kind", ["datetime64[ns]", "datetime64[us]", "timestamp[us][pyarrow]", object])
def test_a_time_without_a_zone_is_in_that_of_the_session_where_instants_are_declared(kind):
    times = pd.Series([NOON, None], dtype=kind)
    found = table_of(spec(INSTANTS, "America/New_York"), pd.DataFrame({"at": times, "local": times}))
    at, local = found["at"].to_pylist(), found["local"].to_pylist()
    assert at == [dt.datetime(2024, 1, 1, 17, tzinfo=dt.UTC), None]
    assert local == [NOON, None]


def test_a_time_with_a_zone_stays_that_instant():
    times = pd.Series([pd.Timestamp("2024-01-01 12:00", tz="Asia/Kolkata")])
    for given in (times, times.astype(object)):
        found = table_of(spec(INSTANTS.remove(1), "America/New_York"), pd.DataFrame({"at": given}))
        assert found["at"].to_pylist() == [dt.datetime(2024, 1, 1, 6, 30, tzinfo=dt.UTC)]


@pytest.mark.parametrize(
    ("at", "hour"), [("2024-11-03 01:30", 6), ("2024-03-10 02:30", 7)], ids=["twice", "never"]
)
def test_hours_that_come_twice_or_never_are_no_error(at, hour):
    for dtype in ("datetime64[us]", object):
        frame = pd.DataFrame({"at": pd.Series([pd.Timestamp(at)], dtype=dtype)})
        (found,) = table_of(spec(INSTANTS.remove(1), "America/New_York"), frame)["at"].to_pylist()
        assert found.hour == hour


ANSWER = pa.schema(
    [pa.field("k", pa.string(), nullable=False), ("v", pa.int64()), ("d", pa.decimal128(10, 2))]
)
GOOD = {"k": ["a"], "v": [1], "d": [None]}
DECLARE = r"\. Return such values, or declare another type in the schema of apply\(\)\."


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (None, r"gave a NoneType\. Return a pandas DataFrame\."),
        (pa.table(GOOD), r"gave a Table\. Return a pandas DataFrame\."),
        (pl.DataFrame(GOOD), r"gave a DataFrame\. Return a pandas DataFrame\."),
        (GOOD | {"v": ["text"]}, r"gave in column 'v' what is no int64: .*text.*" + DECLARE),
        (GOOD | {"v": [1.5]}, r"gave in column 'v' what is no int64: .*1\.5.*" + DECLARE),
        (GOOD | {"v": [2**70]}, "gave in column 'v' what is no int64: .*" + DECLARE),
        (GOOD | {"d": [1.25]}, r"gave in column 'd' what is no decimal128\(10, 2\): .*" + DECLARE),
        (GOOD | {"k": [None]}, "gave nulls in column 'k', which is declared to have none" + DECLARE),
        ({"k": ["a"], "v": [1]}, r"gave no column 'd'\. Return one, or leave it out of the schema"),
    ],
)
def test_what_does_not_fit_the_schema_is_told_with_the_column_and_its_type(made, message):
    frame = pd.DataFrame(made) if isinstance(made, dict) else made
    with pytest.raises(WrongType, match="^the function of 'q' " + message):
        table_of(spec(ANSWER), frame)


def test_two_columns_of_one_name_are_told():
    frame = pd.DataFrame(GOOD)
    with pytest.raises(WrongType, match="gave two columns 'v'"):
        table_of(spec(ANSWER), pd.concat([frame, frame[["v"]]], axis=1))


def test_columns_that_were_not_declared_and_any_index_are_left_out():
    frame = pd.DataFrame(GOOD | {"more": [1]}).set_index("v", drop=False)
    assert table_of(spec(ANSWER), frame).to_pylist() == [{"k": "a", "v": 1, "d": None}]
    empty = frame.iloc[:0].astype({"v": np.int64})
    assert table_of(spec(ANSWER), empty).num_rows == 0


EVERY = pa.table(
    {
        "t": pa.array([1, 2], pa.int64()),
        "k": pa.array([1.5, math.nan], pa.float64()),
        "r": pa.array([1, 2], pa.int64()),
        "bytes": pa.array([b"\xff", None], pa.binary()),
        "day": pa.array([dt.date(2024, 1, 1), None], pa.date32()),
        "money": pa.array(["1.25", None], pa.string()).cast(pa.decimal128(10, 2)),
        "small": pa.array([1.5, None], pa.float32()),
        "instant": pa.array([0, None], pa.timestamp("us", "UTC")),
        "local": pa.array([0, None], pa.timestamp("us")),
        "length": pa.array([0, None], pa.duration("us")),
        "list": pa.array([[BIG, None], None], pa.list_(pa.int64())),
        "struct": pa.array([{"a": [BIG, None]}, None], pa.struct([("a", pa.list_(pa.int64()))])),
        "structs": pa.array([[{"a": BIG}, {"a": None}], None], pa.list_(pa.struct([("a", pa.int64())]))),
        "map": pa.array([[("a", [BIG, None])], None], pa.map_(pa.string(), pa.list_(pa.int64()))),
    }
)


def test_a_function_may_give_back_what_it_is_given_whatever_the_types():
    one = spec(EVERY.schema, "America/New_York")
    found = table_of(one, frame_of(one, EVERY))
    assert found.drop_columns("k") == EVERY.drop_columns("k")
