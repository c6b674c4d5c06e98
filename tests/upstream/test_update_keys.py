"""Different keys of update streams never become one because their columns have other types."""

import math
from decimal import Decimal

import numpy as np
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
    "same",
    [
        [
            float("nan"),
            float("nan") * 1,
            np.float32("nan"),
            np.float64("nan"),
            Decimal("NaN"),
            complex("nan"),
        ],
        [np.datetime64("NaT"), np.datetime64("NaT", "us")],
        [np.timedelta64("NaT"), np.timedelta64("NaT", "us")],
        [1, 1.0, np.int8(1), np.float32(1), Decimal(1)],
        [True, np.True_],
        [0.0, -0.0],
        ["a", np.str_("a")],
        [None],
    ],
    ids=str,
)
def test_values_that_are_one_key_of_a_queue_of_objects(same):
    queue, pair = wp.UpdateQueue("k", "in_place"), wp.UpdateQueue(lambda item: (item["k"], "x"), "in_place")
    for value in same * 2:
        queue.put({"k": value})
        queue.put_batch([{"k": value}] * 2)
        pair.put_batch([{"k": value}])
    assert len(queue) == len(pair) == 1
    assert len(queue.staleness().keys) == 1


def test_values_that_are_different_keys_of_a_queue_of_objects():
    apart = [
        1,
        True,
        "1",
        b"1",
        0,
        False,
        None,
        math.nan,
        np.datetime64("NaT"),
        np.timedelta64("NaT"),
        ("1",),
    ]
    one, many = wp.UpdateQueue("k", "in_place"), wp.UpdateQueue("k", "in_place")
    for value in apart:
        one.put({"k": value})
    many.put_batch([{"k": value} for value in apart])
    for queue in (one, many):
        assert list(map(repr, queue.staleness().keys)) == list(map(repr, apart))
        assert [repr(row["k"]) for row in queue.get_batch(99)] == list(map(repr, apart))
        freshness = queue.staleness()
        assert freshness.of(True) == freshness.application[1]
        assert freshness.of(float("nan")) == freshness.application[7]


def test_tuples_and_tables_have_the_same_keys_in_a_queue_of_objects():
    columns = [pa.array([1, 0]), pa.array([1.0, math.nan]), pa.array([math.nan, 1], pa.float32()),
               pa.array([True, False]), pa.array(["a", None])]  # fmt: skip
    tuples, tables = wp.UpdateQueue("k", "in_place"), wp.UpdateQueue("k", "in_place")
    for column in columns:
        tables.put_batch(pa.table({"k": column}))
        for value in column.to_pylist():
            tuples.put({"k": value})
    found = [queue.staleness().keys for queue in (tuples, tables)]
    assert list(map(repr, found[0])) == list(map(repr, found[1])) == [
        "1", "0", "nan", "True", "False", "'a'", "None"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "keys"), [(pa.bool_(), [1, 7, 0]), (pa.int64(), ["01", "1"]), (pa.date32(), JUST_AFTER)]
)
def test_a_queue_with_a_schema_refuses_keys_that_it_would_make_one(kind, keys):
    queue = wp.UpdateQueue("k", schema=pa.schema({"k": kind, "v": pa.int64()}))
    with pytest.raises(WrongType, match=r"column 'k' has type .* is needed\. Cast the column"):
        queue.put_batch(pa.table({"k": keys, "v": range(len(keys))}))
    assert len(queue) == 0


LIKE = [
    (pa.array([5], pa.int32()), pa.array([5])),
    (pa.array([5]), pa.array([5], pa.uint8())),
    (pa.array([5.0]), pa.array([5])),
    (pa.array(["a"]), pa.array(["a"], pa.large_string())),
    (pa.array(["a"]), pa.array(["a"], pa.string_view())),
    (pa.array(["a"]), pa.array(["a"]).dictionary_encode()),
    (pa.array([5]), pa.array([5]).dictionary_encode()),
    (DAY, pa.array([86_400_000_000], pa.timestamp("us"))),
    (pa.array([1], pa.timestamp("s")), pa.array([1_000_000_000], pa.timestamp("ns"))),
    (pa.array([None], pa.string()), pa.nulls(1)),
]


@pytest.mark.parametrize(("one", "other"), LIKE + [pair[::-1] for pair in LIKE])
def test_keys_of_another_type_stay_what_they_are_in_every_operator(one, other):
    parts = [rows(t, keys) for t, keys in enumerate((one, other, one, other))]
    union, left, right = UPDATES.union(), UPDATES.join(within=9), UPDATES.join(within=9)
    together = UPDATES.union().push(*parts)
    assert [(row["t"], row["k"]) for row in together.to_pylist()] == [(3, one[0].as_py())]
    fresh, seen = UPDATES.window(4).agg(wp.count()), set()
    for part in parts:
        found = union.push(part)
        assert found["k"].to_pylist() == [one[0].as_py()]
        seen.add(found.schema.field("k").type)
        assert left.push(part, parts[0]).num_rows == right.push(parts[0], part).num_rows == 1
        fresh.put(part)
    assert fresh.get()["count"].to_pylist() == [4]
    assert len(seen - {pa.null()}) == 1


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        *OTHERS,
        (pa.array([1], pa.int8()), pa.array([300]), "has type int64, but int8 is needed"),
        (pa.array([1]), pa.array([1.5]), "has type double, but int64 is needed"),
        (pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("ns")), r"has type timestamp\[ns\]"),
    ],
)
def test_keys_that_would_become_others_are_refused_and_change_nothing(one, other, message):
    union, join = UPDATES.union(), UPDATES.join(within=9)
    union.push(rows(1, one))
    join.push(rows(1, one), rows(1, one))
    for push in (union.push, lambda part: join.push(part, part)):
        with pytest.raises(WrongType, match=f"column 'k' {message}.* Cast the column before"):
            push(rows(2, other))
        assert push(rows(2, one))["k"].to_pylist() == one.to_pylist()


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("kind", [pa.timestamp("ns", "UTC"), pa.duration("ns"), pa.time64("ns")], ids=str)
def test_keys_that_no_microsecond_tells_apart_are_refused(kind, encoded):
    """They became one key, and the update of one of them was lost."""
    fine, whole = (pa.array(k, pa.int64()).cast(kind) for k in ([1_001, 1_002, None], [1_000, 2_000, None]))
    fine, whole = (rows(1, k.dictionary_encode() if encoded else k) for k in (fine, whole))
    union, join, fresh = UPDATES.union(), UPDATES.join(within=9), UPDATES.window(1).agg(wp.count())
    message = r"column 'k' has type .*\[ns.* Cast the column .* \(1001 is no whole microsecond\)"
    for push in (union.push, lambda part: join.push(part, part), fresh.put):
        with pytest.raises(WrongType, match=message):
            push(fine)
        push(whole)
    assert fresh.get().num_rows == 3


@pytest.mark.parametrize("columns", [2, 5])
def test_keys_of_many_columns_with_many_values_each_stay_apart(columns):
    """As numbers in one int64 they would overflow: 10,000 to the power of five."""
    names, n = list("abcde")[:columns], 10_000
    queue = wp.UpdateQueue(names, "in_place")
    queue.put_batch(pa.table({name: np.roll(np.arange(n), i) for i, name in enumerate(names)}))
    last = tuple(int(np.roll(np.arange(n), i)[-1]) for i in range(columns))
    queue.put(dict(zip(names, last, strict=True)))
    keys = queue.staleness().keys
    assert len(queue) == len(set(keys)) == n
    assert keys[-1] == last
    assert [tuple(row.values()) for row in queue.get_batch(n)] == list(keys)


def test_keys_of_several_columns_are_known_in_order_of_arrival():
    queue = wp.UpdateQueue(["a", "b"], "in_place")
    queue.put_batch(pa.table({"a": [2, 1, 2, 2, None], "b": ["x", "y", None, "x", "y"]}))
    assert queue.staleness().keys == ((2, "x"), (1, "y"), (2, None), (None, "y"))
    queue.put_batch(pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}))
    assert len(queue) == 4
