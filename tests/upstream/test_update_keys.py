"""Different keys of update streams never become one because their columns have other types."""

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import BadQuery, WrongType

UPDATES = wp.Updates("k", "t")
DAY = pa.array([1], pa.date32())
JUST_AFTER = pa.array([86_400_000_005], pa.timestamp("us"))
OTHERS = [
    (pa.array([1]), pa.array(["01"]), "has type string, but int64 is needed"),
    (pa.array([1]), pa.array(["1"]), "has type string, but int64 is needed"),
    (pa.array([True]), pa.array([7]), "has type int64, but bool is needed"),
    (DAY, JUST_AFTER, r"has type timestamp\[us\], but date32\[day\] is needed"),
]


def rows(t, keys):
    return pa.table({"t": [t] * len(keys), "k": keys})


@pytest.mark.parametrize(("one", "other", "message"), OTHERS)
def test_keys_of_other_types_are_neither_joined_nor_merged_nor_windowed(one, other, message):
    first, second = rows(1, one), rows(2, other)
    with pytest.raises(WrongType, match=f"column 'k' {message}. Cast"):
        UPDATES.join(within=9).push(first, second)
    with pytest.raises(WrongType, match=message):
        UPDATES.union().push(first, second)
    fresh = UPDATES.window(2, 1).agg(wp.count())
    fresh.put(first)
    with pytest.raises(WrongType, match=message):
        fresh.put(second)
    fresh.put(first)
    assert fresh.get()["count"].to_pylist() == [2]


@pytest.mark.parametrize(("one", "other", "message"), OTHERS)
def test_a_map_may_not_make_another_type_of_the_key(one, other, message):
    types = f"from {one.type} to {other.type}".replace("[", r"\[")
    with pytest.raises(BadQuery, match=f"map changes 'k', which is part of the update key, {types}"):
        UPDATES.map(rows(1, one), lambda r: r.set_column(1, "k", other))
    assert message


def test_a_map_may_keep_the_key_in_another_layout():
    for change in (lambda k: k.cast(pa.int32()), lambda k: k.dictionary_encode()):
        made = UPDATES.map(rows(1, [1, 2]), lambda r, change=change: r.set_column(1, "k", change(r["k"])))
        assert made["k"].to_pylist() == [1, 2]


def test_integers_of_other_widths_are_the_same_keys():
    found = UPDATES.join(within=9).push(rows(1, [5]), rows(2, pa.array([5], pa.int32())))
    assert found["right_t"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("kind", "keys"), [(pa.bool_(), [1, 7, 0]), (pa.int64(), ["01", "1"]), (pa.date32(), JUST_AFTER)]
)
def test_a_queue_with_a_schema_refuses_keys_that_it_would_make_one(kind, keys):
    queue = wp.UpdateQueue("k", schema=pa.schema({"k": kind, "v": pa.int64()}))
    with pytest.raises(WrongType, match=r"column 'k' has type .* is needed\. Cast the column"):
        queue.put_batch(pa.table({"k": keys, "v": range(len(keys))}))
    assert len(queue) == 0
