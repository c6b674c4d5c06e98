"""What Python cannot make an object of is refused when it is put, so that what was put can be got."""

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import BadQuery

BAD_TEXT = pa.array([b"\xff"]).view(pa.string())


def raw(value, kind):
    return pa.array([value], pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


VALUES = [
    (raw(10**12, pa.timestamp("s")), "1000000000000"),
    (raw(2**62, pa.timestamp("us")), str(2**62)),
    (raw(-(2**62), pa.timestamp("us", "UTC")), str(-(2**62))),
    (raw(10**15, pa.duration("s")), str(10**15)),
    (raw(2**30, pa.date32()), str(2**30)),
    (raw(2**60, pa.date64()), str(2**60)),
    (raw(2**60, pa.time64("us")), str(2**60)),
    (raw(5, pa.timestamp("us", "Mars/Phobos")), "5"),
]
TEXTS = [
    (BAD_TEXT, r"b'\\xff'"),
    (BAD_TEXT.cast(pa.large_binary()).view(pa.large_string()), r"b'\\xff'"),
    (BAD_TEXT.cast(pa.binary_view()).view(pa.string_view()), r"b'\\xff'"),
    (BAD_TEXT.dictionary_encode(), r"b'\\xff'"),
]
NESTED = [
    (pa.ListArray.from_arrays([0, 1], raw(10**12, pa.timestamp("s"))), "1000000000000"),
    (pa.StructArray.from_arrays([BAD_TEXT], ["x"]), r"b'\\xff'"),
    (pa.MapArray.from_arrays([0, 1], pa.array(["x"]), raw(10**15, pa.duration("s"))), ".*"),
    (
        pa.DictionaryArray.from_arrays([0], pa.ListArray.from_arrays([0, 1], raw(2**62, pa.timestamp("us")))),
        "a value",
    ),
]


def good(kind):
    return pa.nulls(1, kind)


@pytest.mark.parametrize("many", [0, 20])
@pytest.mark.parametrize("policy", ["in_place", "append"])
@pytest.mark.parametrize(
    ("array", "value"), VALUES + TEXTS + NESTED, ids=lambda x: str(getattr(x, "type", ""))
)
def test_a_table_whose_values_python_cannot_hold_is_refused(array, value, policy, many):
    rows = pa.table(
        {"k": [2] * (many + 2), "c": pa.chunked_array([array, good(array.type), *[good(array.type)] * many])}
    )
    queue = wp.UpdateQueue("k", policy)
    message = (
        rf"column 'c' holds {value} \(.*\), of which Python can make no object: .*\. Leave such rows out, or"
    )
    with pytest.raises(BadQuery, match=message):
        queue.put_batch(rows)
    with pytest.raises(BadQuery, match="column 'c' holds"):
        wp.UpdateQueue(lambda row: row["k"], policy).put_batch(rows)
    assert queue.staleness().puts == len(queue) == len(queue.staleness().keys) == 0
    queue.put_batch(rows.slice(1))
    assert queue.get() == {"k": 2, "c": None}


@pytest.mark.parametrize("as_key", [True, False])
@pytest.mark.parametrize(("array", "value"), VALUES, ids=lambda x: str(getattr(x, "type", "")))
def test_a_queue_with_a_schema_takes_only_values_that_it_can_give_back(array, value, as_key):
    key, other = ("c", "o") if as_key else ("o", "c")
    queue = wp.UpdateQueue(key, "in_place", schema=pa.schema({"c": array.type, "o": pa.int64()}))
    rows = pa.table({"c": pa.concat_arrays([array, *[good(array.type)] * 20]), "o": range(1, 22)})
    with pytest.raises(BadQuery, match=rf"column 'c' holds {value} "):
        queue.put_batch(rows)
    assert queue.staleness().keys == ()
    queue.put_batch(rows.slice(1, 1))
    assert queue.get_batch(2) == [{"c": None, "o": 2}]
    assert other in rows.column_names


@pytest.mark.parametrize(("array", "value"), TEXTS, ids=lambda x: str(getattr(x, "type", "")))
def test_a_key_that_is_no_text_is_refused_with_a_schema_too(array, value):
    queue = wp.UpdateQueue("c", schema=pa.schema({"c": array.type, "o": pa.int64()}))
    with pytest.raises(BadQuery, match=rf"column 'c' holds {value} "):
        queue.put_batch(pa.table({"c": array, "o": [1]}))
    assert queue.staleness().keys == ()


def test_a_number_that_is_no_moment_of_python_is_refused_in_a_tuple_too():
    queue = wp.UpdateQueue("k", schema=pa.schema({"k": pa.int64(), "t": pa.timestamp("s")}))
    with pytest.raises(BadQuery, match="column 't' holds 1000000000000 "):
        queue.put({"k": 1, "t": 10**12})
    queue.put({"k": 1, "t": 10**9})
    assert queue.get()["t"].year == 2001


def test_the_first_and_the_last_moment_of_python_are_taken():
    kind = pa.timestamp("us")
    ends = [-62_135_596_800_000_000, 253_402_300_799_999_999]
    queue = wp.UpdateQueue("k", "in_place", schema=pa.schema({"k": pa.int64(), "t": kind}))
    queue.put_batch(pa.table({"k": [1, 2], "t": pa.array(ends).view(kind)}))
    assert [row["t"].year for row in queue.get_batch(2)] == [1, 9999]


def test_dictionaries_of_lists_and_structs_are_given_back():
    values = [[[1], [1, 2]], [{"a": 1}, {"a": None}]]
    columns = [pa.DictionaryArray.from_arrays([1, 0, None], pa.array(part)) for part in values]
    rows = pa.table({"k": [1, 2, 3], "l": columns[0], "s": columns[1]})
    queue = wp.UpdateQueue("k", "in_place")
    queue.put_batch(rows)
    assert queue.get_batch(3) == rows.to_pylist()
