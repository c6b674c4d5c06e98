"""An update queue whose tuples lie in pages of memory serves as one that keeps Python objects does."""

import datetime as dt
import decimal
import threading
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.upstream.fixed_rows import FixedRows
from windowpane.errors import BadQuery, OutOfMemory, UnknownColumn, WrongType

SCHEMA = pa.schema({"k": pa.string(), "n": pa.int64(), "x": pa.float64(), "up": pa.bool_(), "d": pa.date32()})
POLICIES = ["append", "shed", "fifo", "in_place", "linecutting", "freshest", "switch"]
BATCHES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "", "key of some length", None]),
        st.one_of(st.none(), st.floats(allow_nan=False)),
        st.one_of(st.none(), st.booleans()),
        st.one_of(st.none(), st.dates()),
    ),
    max_size=8,
)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), BATCHES, st.booleans()),
        st.tuples(st.just("get"), st.integers(1, 5)),
        st.tuples(st.just("wait"), st.sampled_from([0.25, 1.0, 700.0])),
    ),
    max_size=25,
)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def rows_of(batch, number):
    return [{"k": k, "n": number + i, "x": x, "up": up, "d": day} for i, (k, x, up, day) in enumerate(batch)]


def put(queue, rows, *, as_table):
    if as_table:
        queue.put_batch(pa.Table.from_pylist(rows, schema=SCHEMA))
    else:
        queue.put_batch(rows)


@pytest.mark.parametrize("policy", POLICIES)
@given(moves=MOVES)
def test_it_gives_what_a_queue_of_objects_gives(policy, moves):
    clock = Clock()
    options = {"clock": clock, "cost": 0.5, "behind": 2.0, "forget": 500.0}
    objects, paged = (
        wp.UpdateQueue("k", policy, **options),
        wp.UpdateQueue("k", policy, **options, schema=SCHEMA),
    )
    number = 0
    for kind, *what in moves:
        if kind == "put":
            rows = rows_of(what[0], number)
            number += len(rows)
            for queue in (objects, paged):
                put(queue, rows, as_table=what[1])
        elif kind == "get" and len(objects):
            assert paged.get_batch(what[0]) == objects.get_batch(what[0])
        elif kind == "wait":
            clock.now += what[0]
        assert len(paged) == len(objects)
        need_no_more_than_waits(paged)
    a, b = objects.staleness(), paged.staleness()
    assert (a.keys, a.puts, a.gets, a.lost, a.forgotten) == (b.keys, b.puts, b.gets, b.lost, b.forgotten)
    assert a.application.tolist() == b.application.tolist()
    for queue in (objects, paged):
        queue.close()
    assert list(paged) == list(objects)
    assert paged.usage.pages == 0


def need_no_more_than_waits(queue):
    """A cell for each tuple that waits, and no page without one."""
    usage = queue.usage
    assert usage.used == usage.allocated == len(queue)
    assert usage.pages <= len(queue) <= usage.pages * usage.page_tuples


def test_pages_are_bounded_by_the_keys_that_wait_and_go_back_as_they_are_served():
    queue = wp.UpdateQueue("k", schema=pa.schema({"k": pa.int64(), "v": pa.int64()}))
    cells = 4096 // 16
    rng = np.random.default_rng(1)
    for _ in range(50):
        keys = rng.integers(0, 1_000, 5_000)
        queue.put_batch(pa.table({"k": keys, "v": keys * 2}))
    assert len(queue) == 1_000
    assert queue.usage.page_tuples == cells
    assert queue.usage.pages == -(-1_000 // cells)
    while len(queue):
        table = queue.get_table(100)
        assert table["v"].to_pylist() == [2 * key for key in table["k"].to_pylist()]
        need_no_more_than_waits(queue)
    assert queue.usage.pages == 0
    assert queue.staleness().puts == 250_000


def test_a_put_of_many_rows_makes_no_object_for_each():
    schema = pa.schema({"k": pa.int64(), "v": pa.float64()})
    queue = wp.UpdateQueue("k", "in_place", schema=schema)
    keys = np.arange(50_000)
    table = pa.table({"k": keys, "v": keys * 0.5})
    queue.put_batch(table)
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    queue.put_batch(table)
    made = sum(
        max(found.count_diff, 0) for found in tracemalloc.take_snapshot().compare_to(before, "filename")
    )
    tracemalloc.stop()
    assert made < 2_000


def test_tables_come_out_with_the_columns_and_types_of_the_schema():
    schema = pa.schema({"v": pa.int32(), "k": pa.dictionary(pa.int32(), pa.string()), "e": pa.string()})
    queue = wp.UpdateQueue(["k", "e"], "in_place", schema=schema)
    queue.put_batch(pd.DataFrame({"e": ["X", "Y"], "v": [1, 2], "k": ["a", "a"]}))
    queue.put({"k": "b", "v": None, "e": None})
    table = queue.get_table(9)
    assert table.schema == schema
    assert table.to_pylist() == [
        {"v": 1, "k": "a", "e": "X"},
        {"v": 2, "k": "a", "e": "Y"},
        {"v": None, "k": "b", "e": None},
    ]
    assert queue.staleness().keys == (("a", "X"), ("a", "Y"), ("b", None))


def test_a_key_alone_is_a_tuple_too():
    queue = wp.UpdateQueue("k", "fifo", schema=pa.schema({"k": pa.string()}))
    queue.put_batch([{"k": "a"}, {"k": "b"}, {"k": "a"}])
    assert queue.get_batch(5) == [{"k": "b"}, {"k": "a"}]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [-128, 127]),
        (pa.uint64(), [2**64 - 1, 0]),
        (pa.float16(), [np.float16(0.5), np.float16(-2)]),
        (pa.float32(), [0.1, -0.0]),
        (pa.bool_(), [True, False]),
        (pa.timestamp("ns", "UTC"), [1, 2**62]),
        (pa.time32("s"), [dt.time(1, 2, 3), dt.time(0)]),
        (pa.duration("us"), [dt.timedelta(microseconds=-1), dt.timedelta(days=9)]),
        (pa.decimal128(30, 3), [decimal.Decimal("-1.001"), decimal.Decimal(10**20)]),
        (pa.binary(3), [b"abc", b"\0\1\2"]),
    ],
    ids=str,
)
def test_values_of_every_fixed_width_pass_through_bit_for_bit(kind, values):
    array = pa.array([values[0], None, values[1], *values], kind)
    layout = FixedRows(pa.schema({"a": kind, "b": pa.int8(), "c": kind}))
    sides = [array, pa.array([1, 2, None, 4, 5], pa.int8()), pa.concat_arrays([array[1:], array[:1]])]
    rows = layout.rows(sides, 5)
    assert rows.shape == (5, layout.words)
    found = layout.columns(rows[[4, 1, 0]])
    assert [column.type for column in found] == [kind, pa.int8(), kind]
    wanted = [side.take(pa.array([4, 1, 0])) for side in sides]
    assert all(a.equals(b) for a, b in zip(found, wanted, strict=True))
    for column in found:
        column.validate(full=True)


def test_nan_keeps_its_bits_and_slices_their_place():
    array = pa.array([9.0, float("nan"), None, -0.0])[1:]
    layout = FixedRows(pa.schema({"x": pa.float64()}))
    (found,) = layout.columns(layout.rows([array], 3))
    assert found.is_valid().to_pylist() == [True, False, True]
    assert np.isnan(found[0].as_py())
    assert np.signbit(found[2].as_py())


def test_more_than_the_memory_is_an_error_and_changes_nothing():
    schema = pa.schema({"k": pa.int64(), "v": pa.int64()})
    queue = wp.UpdateQueue("k", "in_place", schema=schema, memory=4096)
    room = queue.usage.page_tuples
    queue.put_batch(pa.table({"k": np.arange(room - 1), "v": np.zeros(room - 1, np.int64)}))
    with pytest.raises(OutOfMemory, match=r"room for 1 more cells of 16 bytes, and this takes 2\."):
        queue.put_batch(pa.table({"k": [5, 5_000, 5_001], "v": [1, 1, 1]}))
    assert queue.staleness().puts == len(queue) == room - 1 == len(queue.staleness().keys)
    assert not any(row["v"] for row in queue.get_batch(room))
    queue.put_batch(pa.table({"k": [5, 5_000, 5_001], "v": [1, 2, 3]}))
    assert [row["v"] for row in queue.get_batch(9)] == [1, 2, 3]


@pytest.mark.parametrize("policy", ["in_place", "append", "switch"])
def test_keys_that_found_no_room_are_no_keys(policy):
    clock = Clock()
    schema = pa.schema({"k": pa.int64(), "v": pa.int64()})
    queue = wp.UpdateQueue("k", policy, schema=schema, memory=4096, clock=clock, forget=50.0)
    room = queue.usage.page_tuples
    queue.put({"k": 1, "v": 1})
    for _ in range(2):
        with pytest.raises(OutOfMemory):
            queue.put_batch(pa.table({"k": np.arange(room + 1), "v": np.zeros(room + 1, np.int64)}))
        assert queue.staleness().keys == (1,)
    clock.now += 10
    assert queue.staleness().average_queue == 5.0
    queue.put_batch([{"k": 7, "v": 2}, {"k": 0, "v": 3}])
    assert queue.staleness().keys == (1, 7, 0)
    assert [row["k"] for row in queue.get_batch(9)] == [1, 7, 0]
    queue.done()
    clock.now += 100.0
    queue.put({"k": 5, "v": 5})
    freshness = queue.staleness()
    assert (freshness.keys, freshness.forgotten[0]) == ((5,), 3)


def test_what_cannot_lie_in_pages_is_refused_with_a_remedy():
    with pytest.raises(
        WrongType,
        match=r"column 'name' has type string, whose values have no fixed width.*Leave `schema` out",
    ):
        wp.UpdateQueue("k", schema=pa.schema({"k": pa.string(), "name": pa.string()}))
    for kind in (pa.list_(pa.int64()), pa.dictionary(pa.int8(), pa.int64()), pa.large_binary(), pa.null()):
        with pytest.raises(WrongType, match="column 'v' has type"):
            FixedRows(pa.schema({"v": kind}))
    with pytest.raises(BadQuery, match=r"the key is a function.* Name the columns of the key"):
        wp.UpdateQueue(len, schema=SCHEMA)
    with pytest.raises(UnknownColumn, match="the schema has no column 'key'; it has k, n, x"):
        wp.UpdateQueue("key", schema=SCHEMA)
    with pytest.raises(WrongType, match=r"column 't' has type timestamp\[ns\], but timestamp\[us\] in a key"):
        wp.UpdateQueue("t", schema=pa.schema({"t": pa.timestamp("ns")}))
    with pytest.raises(WrongType, match=r"column 't' has type timestamp\[ns\], but timestamp\[us\] in a key"):
        wp.UpdateQueue("t", schema=pa.schema({"t": pa.dictionary(pa.int8(), pa.timestamp("ns"))}))


def test_what_does_not_fit_the_schema_says_why():
    queue = wp.UpdateQueue("k", schema=pa.schema({"k": pa.string(), "v": pa.int64()}))
    with pytest.raises(UnknownColumn, match="the tuple has no column 'v'; it has k"):
        queue.put({"k": "a"})
    with pytest.raises(UnknownColumn, match="column 'w' is not in the schema, so it would be lost"):
        queue.put({"k": "a", "v": 1, "w": 2})
    with pytest.raises(UnknownColumn, match="the table has no column 'v'; it has k"):
        queue.put_batch(pa.table({"k": ["a"]}))
    with pytest.raises(WrongType, match="column 'v' is int64 by the schema, but a tuple has something else"):
        queue.put({"k": "a", "v": "one"})
    with pytest.raises(WrongType, match="column 'v' has type double, but int64 is needed"):
        queue.put_batch(pa.table({"k": ["a"], "v": [0.5]}))
    with pytest.raises(WrongType, match="a tuple is a int"):
        queue.put(5)
    assert len(queue) == 0
    with pytest.raises(BadQuery, match=r"get_table\(\) needs the columns of the tuples.*`schema=`"):
        wp.UpdateQueue("k").get_table(1)
    assert wp.UpdateQueue("k").usage is None


def test_producers_and_a_consumer_at_once_lose_no_last_update():
    queue = wp.UpdateQueue("k", schema=pa.schema({"k": pa.int64(), "n": pa.int64()}))

    def produce(first):
        for n in range(60):
            queue.put_batch(pa.table({"k": np.arange(first, first + 40), "n": np.full(40, n)}))

    threads = [threading.Thread(target=produce, args=(40 * i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    closer = threading.Thread(target=lambda: ([t.join() for t in threads], queue.close()))
    closer.start()
    got = {}
    for row in queue:
        assert got.get(row["k"], -1) < row["n"]
        got[row["k"]] = row["n"]
    closer.join()
    assert got == dict.fromkeys(range(120), 59)
