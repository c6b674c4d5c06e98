"""Arrow columns as the core's arrays: no copy where possible, a clear error elsewhere."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.columns import flat, read_column, read_time, to_batches
from windowpane.core.interner import Interner
from windowpane.values.errors import Overflow, WrongType

DAY = 86_400_000_000
SCALE = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def listed(column):
    valid = np.ones(len(column.values), np.bool_) if column.valid is None else column.valid
    return [v if ok else None for v, ok in zip(column.values.tolist(), valid.tolist(), strict=True)]


@given(st.lists(st.none() | st.integers(0, 127), max_size=30), st.integers(0, 30))
def test_integers_of_every_width_and_layout_read_alike(values, cut):
    wide = pa.array([9, *values], pa.int64()).slice(1)
    for width in (8, 16, 32, 64, -8, -16, -32, -64):
        kind = pa.type_for_alias(f"int{width}" if width > 0 else f"uint{-width}")
        array = wide.cast(kind)
        for form in (array, array.dictionary_encode(), pa.chunked_array([array[:cut], array[cut:]], kind)):
            column = read_column(form, "x")
            assert column.values.dtype == np.int64
            assert listed(column) == values


def test_plain_columns_are_not_copied():
    for numbers in (np.arange(5), np.arange(5) / 2):
        array = pa.array(numbers)
        assert np.shares_memory(read_column(array[2:], "x").values, numbers)
    stamps = pa.array(np.arange(5), pa.int64()).cast(pa.timestamp("us"))
    address = stamps.buffers()[1].address
    assert read_time(stamps, "t")[0].__array_interface__["data"][0] == address


@given(st.lists(st.none() | st.floats(width=16), max_size=20))
def test_floats_become_float64_and_keep_nan_apart_from_null(values):
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        column = read_column(pa.array(values, kind), "x")
        assert column.values.dtype == np.float64
        wanted = np.array([0.0 if v is None else v for v in values])
        valid = np.array([v is not None for v in values], np.bool_)
        assert np.array_equal(np.where(valid, column.values, 0.0), wanted, equal_nan=True)


def test_times_dates_and_durations_become_microseconds():
    for kind, raw, wanted in (
        (pa.timestamp("s"), -2, -2_000_000),
        (pa.timestamp("ms", "Asia/Kolkata"), 5, 5_000),
        (pa.timestamp("ns"), -1, -1),
        (pa.timestamp("ns"), 1_999, 1),
        (pa.duration("ms"), -3, -3_000),
        (pa.time64("ns"), 5_000, 5),
        (pa.date64(), -DAY // 1000, -DAY),
    ):
        assert read_column(pa.array([raw, None], pa.int64()).cast(kind), "x").values[0] == wanted
    assert listed(read_column(pa.array([dt.date(1969, 12, 31), None]), "x")) == [-DAY, None]
    assert listed(read_column(pa.array([dt.time(0, 0, 1)], pa.time32("s")), "x")) == [1_000_000]
    assert listed(read_column(pa.array([True, None, False]), "x")) == [1, None, 0]
    assert listed(read_column(pa.nulls(2), "x")) == [None, None]


@given(st.lists(st.none() | st.text("aé", max_size=5), max_size=30))
def test_text_of_every_layout_becomes_the_same_ids_and_order(values):
    interner = Interner(pa.string())
    plain = pa.array(values, pa.string())
    expected = read_column(plain, "x", interner)
    assert interner.values(expected.values).to_pylist() == values
    views = pa.array(values, pa.string_view())
    for form in (plain.dictionary_encode(), plain.cast(pa.large_string()), views):
        column = read_column(form, "x", interner)
        assert listed(column) == listed(expected)
        assert column.order.tolist() == expected.order.tolist()


def test_a_null_inside_a_dictionary_is_a_null():
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    assert read_column(array, "x", Interner(pa.string())).valid.tolist() == [True, False, False]


def test_bad_utf8_is_read_as_bytes():
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"\xff"], pa.binary()).buffers())
    assert listed(read_column(bad, "x", Interner(pa.string()))) == [0, 0]
    assert listed(read_column(pa.chunked_array([bad, bad]), "x", Interner(pa.large_string()))) == [0] * 4


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([1, 2**64 - 1], pa.uint64()), r"'x' holds 18446744073709551615 .*Cast it to float64"),
        (pa.array([Decimal("1.5")]), r"'x' has type decimal128.*Cast it to float64"),
        (pa.array([[1]]), r"'x' has type list.*Select one field"),
        (pa.array([{"a": 1}]), r"'x' has type struct"),
        (pa.array(["a"]), r"'x' has type string, but a number or a time is needed"),
    ],
)
def test_types_that_do_not_serve_are_refused_with_a_remedy(array, message):
    with pytest.raises(WrongType, match=message):
        read_column(array, "x")


def test_values_whose_microseconds_overflow_are_refused_unless_null():
    with pytest.raises(Overflow, match=r"'x' holds 1152921504606846976 .*Filter such rows"):
        read_column(pa.array([0, 2**60], pa.timestamp("s")), "x")


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20), st.sampled_from(list(SCALE)))
def test_times_are_floored_to_microseconds_or_marked_as_bad(values, unit):
    time, valid, bad = read_time(pa.array(values, pa.timestamp(unit)), "t")
    for i, value in enumerate(values):
        assert (valid is None or bool(valid[i])) == (value is not None)
        exact = 0 if value is None else value * SCALE[unit] // 1000
        placed = abs(exact) <= 2**62
        assert (bad is not None and bool(bad[i])) == (not placed)
        if value is not None and placed:
            assert time[i] == exact


def test_dates_and_integers_are_times_too():
    time, valid, bad = read_time(pa.array([dt.date(1969, 12, 31), dt.date(2020, 1, 1)]), "t")
    assert (time.tolist(), valid, bad) == ([-DAY, 18_262 * DAY], None, None)
    assert read_time(pa.array([2**31 - 1], pa.int32()).cast(pa.date32()), "t")[2].tolist() == [True]
    assert read_time(pa.array([3, 2**63], pa.uint64()), "t")[2].tolist() == [False, True]
    assert read_time(pa.array([3, 1], pa.int8()).dictionary_encode(), "t")[0].tolist() == [3, 1]


@pytest.mark.parametrize("values", [["2020"], [1.0], [True], [dt.time(1)]])
def test_other_types_are_no_time_column(values):
    array = pa.array(values)
    with pytest.raises(WrongType, match=r"a time column must be timestamp, date or integer.*Convert it"):
        read_time(array, "t")


def test_every_form_of_rows_becomes_batches():
    table = pa.table({"a": [1, 2, 3], "s": ["x", None, "y"]})
    batch = table.to_batches()[0]
    frame = pd.DataFrame({"a": [1, 2, 3], "s": ["x", None, "y"]}, index=[7, 8, 9])
    for source in (
        table, batch, table.to_reader(), [batch[:1], batch[1:]], (t for t in [table[:2], table[2:]]),
        frame, pl.DataFrame(table), table.to_pydict(), [frame[:1], {"a": [2, 3], "s": [None, "y"]}],
    ):  # fmt: skip
        batches = list(to_batches(source))
        assert all(isinstance(b, pa.RecordBatch) for b in batches)
        assert [row for b in batches for row in b.to_pylist()] == table.to_pylist()
    assert [b.schema for b in to_batches(table[:0])] == [table.schema]


def test_columns_of_polars_frames_read_like_any_other():
    categories = pl.Series(["u", "v", "u"], dtype=pl.Categorical)
    frame = pl.DataFrame({"c": categories, "s": ["long enough for a view", "", None]})
    (batch,) = to_batches(frame)
    assert listed(read_column(batch["c"], "c", Interner(pa.string()))) == [0, 1, 0]
    assert listed(read_column(batch["s"], "s", Interner(pa.string()))) == [0, 1, None]


def test_what_is_no_stream_of_rows_is_refused_with_a_remedy():
    mixed = pd.DataFrame({"a": [1, "x"]})
    for source in (5, "text", [1, 2], mixed, {"a": [1], "b": [1, 2]}, [{"a": 1}], None):
        with pytest.raises(WrongType, match="Give"):
            list(to_batches(source))


def test_polars_is_not_imported_for_the_reading():
    code = (
        "import sys, windowpane.core.columns as c\n"
        "list(c.to_batches({'a': [1]}))\n"
        "sys.exit('polars' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_chunks_become_one_where_their_dictionaries_have_more_values_together_than_the_index_counts():
    kind = pa.dictionary(pa.int8(), pa.string())
    names = [f"k{i}" for i in range(300)]
    chunks = [pa.array(names[i : i + 100]).dictionary_encode().cast(kind) for i in (0, 100, 200)]
    made = flat(pa.chunked_array(chunks))
    assert made.type == pa.dictionary(pa.int32(), pa.string())
    assert made.to_pylist() == names
