"""Tables from other libraries, and columns in layouts that Arrow itself cannot take rows of."""

import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windowpane as wp
from windowpane.errors import WrongType

VIEWS = [
    (pa.string_view(), ["a", "a long text that is not inlined", "a", None]),
    (pa.binary_view(), [b"a", b"b", b"a", None]),
    (pa.dictionary(pa.int32(), pa.string_view()), ["a", "b", "a", None]),
]
NESTED = [
    (pa.list_(pa.string_view()), [["a"], [], ["b", None], None]),
    (pa.large_list(pa.struct([("x", pa.binary_view())])), [[{"x": b"a"}], [], [{"x": None}], None]),
    (pa.list_(pa.string_view(), 1), [["a"], ["b"], [None], None]),
    (pa.map_(pa.string_view(), pa.string_view()), [[("a", "b")], [], [("a", None)], None]),
    (pa.run_end_encoded(pa.int32(), pa.string()), ["a", "a", None, "b"]),
]


def of(kind, values):
    if pa.types.is_dictionary(kind):
        words = pa.array(sorted({v for v in values if v}), kind.value_type)
        at = [None if v is None else words.to_pylist().index(v) for v in values]
        return pa.DictionaryArray.from_arrays(pa.array(at, kind.index_type), words)
    return pa.array(values, kind)


@pytest.mark.parametrize("policy", ["in_place", "append"])
@pytest.mark.parametrize(("kind", "values"), VIEWS, ids=str)
def test_a_key_may_be_in_views(kind, values, policy):
    rows = pa.table({"k": of(kind, values), "n": range(4)})
    queue = wp.UpdateQueue("k", policy)
    paged = wp.UpdateQueue("k", policy, schema=rows.schema)
    for _ in range(2):
        for one in (queue, paged):
            one.put_batch(rows)
            one.put_batch(rows.to_batches()[0])
        wanted = rows.to_pylist() * 2 if policy == "append" else [rows.to_pylist()[i] for i in (2, 1, 3)]
        assert queue.get_batch(9) == wanted
        assert paged.get_table(9).cast(rows.schema).to_pylist() == wanted
    assert queue.staleness().keys == paged.staleness().keys == (values[0], values[1], None)


def test_tables_come_back_in_the_views_of_the_schema():
    schema = pa.schema({"k": pa.string_view(), "n": pa.int64()})
    queue = wp.UpdateQueue("k", "in_place", schema=schema)
    queue.put_batch([{"k": "a", "n": 1}, {"k": None, "n": 2}])
    queue.put_batch(pa.table({"k": ["a"], "n": [3]}))
    assert queue.get_table(9).equals(pa.table({"k": ["a", None], "n": [3, 2]}, schema=schema))


@pytest.mark.parametrize(("kind", "values"), VIEWS + NESTED, ids=str)
def test_a_value_may_be_in_views(kind, values):
    rows = pa.table({"k": [1, 2, 1, 3], "v": of(kind, values)})
    queue = wp.UpdateQueue("k", "in_place")
    queue.put_batch(rows)
    assert queue.get_batch(9) == [rows.to_pylist()[i] for i in (2, 1, 3)]


@pytest.mark.parametrize(("kind", "values"), VIEWS + NESTED, ids=str)
def test_operators_on_updates_take_values_in_views(kind, values):
    updates = wp.Updates(key="k", time="t")
    rows = pa.table({"k": [1, 2, 1, 3], "t": range(4), "v": of(kind, values)})
    newest = [values[i] for i in (1, 2, 3)]
    assert updates.filter(rows, lambda r: np.arange(len(r)) > 0)["v"].to_pylist() == newest
    assert updates.union().push(rows)["v"].to_pylist() == newest
    found = updates.join(within=1).push(rows, rows)
    assert sorted(map(repr, found["right_v"].to_pylist())) == sorted(map(repr, newest))


ROWS = [{"k": "a", "n": 1, "x": 0.5}, {"k": "b", "n": 2, "x": None}, {"k": "a", "n": 3, "x": 2.5}]
SHAPES = {
    "polars": lambda: pl.DataFrame(ROWS),
    "polars categories": lambda: pl.DataFrame(ROWS).with_columns(pl.col("k").cast(pl.Categorical)),
    "duckdb": lambda: duckdb.from_arrow(pa.Table.from_pylist(ROWS)),
    "reader": lambda: pa.Table.from_pylist(ROWS).to_reader(),
}


@pytest.mark.parametrize("schema", [None, pa.Table.from_pylist(ROWS).schema], ids=["objects", "pages"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_tables_of_other_libraries_are_as_good_as_those_of_arrow(shape, schema):
    queue = wp.UpdateQueue("k", "append", schema=schema)
    queue.put_batch(shape())
    assert queue.get_batch(9) == ROWS


def test_a_polars_frame_may_hold_lists_of_texts():
    queue = wp.UpdateQueue("k", "in_place")
    queue.put_batch(pl.DataFrame({"k": [1, 1], "tags": [["x"], ["y", None]]}))
    assert queue.get() == {"k": 1, "tags": ["y", None]}


def test_columns_that_are_no_table_are_refused_in_our_own_words():
    with pytest.raises(
        WrongType, match=r"the tuples are a LazyFrame\. Give .* \(of a lazy one what collect\(\) gives\)"
    ):
        wp.UpdateQueue("k").put_batch(pl.DataFrame(ROWS).lazy())


@pytest.mark.parametrize("series", [pd.Series, pl.Series])
def test_a_series_of_tuples_is_gone_through(series):
    queue = wp.UpdateQueue("k", "append")
    queue.put_batch(series(ROWS))
    assert queue.get_batch(9) == ROWS


def nans(values):
    """NaN is not equal to itself: shown as a text."""
    return ["nan" if isinstance(value, float) and math.isnan(value) else value for value in values]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("schema", [False, True])
def test_a_nan_in_a_float_column_of_pandas_is_the_nan_of_a_tuple(schema, dtype):
    kind = pa.from_numpy_dtype(dtype)
    queue = wp.UpdateQueue("k", "in_place", schema=pa.schema({"k": kind, "x": kind}) if schema else None)
    queue.put({"k": math.nan, "x": math.nan})
    queue.put_batch(
        pd.DataFrame({"k": np.array([math.nan, 1.0], dtype), "x": np.array([1.0, math.nan], dtype)})
    )
    assert nans(queue.staleness().keys) == ["nan", 1.0]
    assert [nans(row.values()) for row in queue.get_batch(9)] == [["nan", 1.0], [1.0, "nan"]]


@pytest.mark.parametrize("schema", [False, True])
def test_what_is_missing_in_a_column_of_pandas_that_has_nulls_is_a_null(schema):
    frame = pd.DataFrame(
        {
            "k": pd.Series(["a", None, math.nan], dtype=object),
            "n": pd.Series([1, None, 3], dtype="Int64"),
            "x": pd.Series([0.5, None, 2.5], dtype="Float64"),
            "t": pd.to_datetime(["2020-01-01", None, None]).astype("datetime64[us]"),
        }
    )
    kinds = pa.schema({"k": pa.string(), "n": pa.int64(), "x": pa.float64(), "t": pa.timestamp("us")})
    queue = wp.UpdateQueue("k", "append", schema=kinds if schema else None)
    queue.put_batch(frame)
    assert queue.staleness().keys == ("a", None)
    rows = queue.get_batch(9)
    assert [row["n"] for row in rows] == [1, None, 3]
    assert [row["x"] for row in rows] == [0.5, None, 2.5]
    assert [row["t"] is None for row in rows] == [False, True, True]


@pytest.mark.parametrize("kind", [pa.int64(), pa.bool_(), pa.uint8(), pa.decimal128(5, 1)], ids=str)
def test_a_whole_number_that_is_missing_in_pandas_is_a_null_by_the_schema(kind):
    queue = wp.UpdateQueue("k", "in_place", schema=pa.schema({"k": pa.int64(), "v": kind}))
    queue.put_batch(pd.DataFrame({"k": [1, None], "v": [None, 1.0]}))
    assert queue.get_batch(2) == [{"k": 1, "v": None}, {"k": None, "v": 1}]
    with pytest.raises(WrongType, match="column 'k' has type double, but int64 is needed"):
        queue.put_batch(pa.table({"k": [math.nan], "v": pa.nulls(1, kind)}))


FORMS = {
    "batch": lambda rows: rows.to_batches()[0],
    "pandas": lambda rows: rows.to_pandas(),
    "polars": pl.from_arrow,
    "duckdb": duckdb.from_arrow,
    "reader": lambda rows: rows.to_reader(),
}


@pytest.mark.parametrize("form", FORMS)
def test_operators_on_updates_take_what_a_queue_takes(form):
    made, updates = FORMS[form], wp.Updates("k", "t")
    rows = pa.table({"k": ["a", "b", "a"], "t": [1, 2, 3], "v": [1.5, 2.5, 3.5]})
    filtered = updates.filter(made(rows), lambda r: pc.greater(r["v"], 2.0))
    assert filtered.to_pylist() == rows.slice(1).to_pylist()
    assert updates.map(made(rows), lambda r: r).to_pylist() == rows.to_pylist()
    assert updates.union().push(made(rows), made(rows)).to_pylist() == rows.slice(1).to_pylist()
    assert updates.join(within=5).push(made(rows), made(rows)).num_rows == 2
    fresh = updates.window(2).agg(wp.sum("v"))
    assert fresh.put(made(rows)) == 0
    assert fresh.get()["sum_v"].to_pylist() == [5.0]
