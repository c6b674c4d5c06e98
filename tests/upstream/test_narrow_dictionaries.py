"""Dictionaries whose index has no room for the values of several tables: pandas often has 8 bits."""

import datetime as dt
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import WrongType

KIND = pa.dictionary(pa.int8(), pa.string())
NAMES = [f"k{i}" for i in range(300)]


def words(n):
    """The n-th hundred of the names, as pandas has a column of categories."""
    return pa.array(pd.Categorical(NAMES[100 * n : 100 * n + 100]))


def rows(n):
    return pa.table({"k": words(n), "t": range(100), "c": words(n)})


def in_chunks():
    assert words(0).type == KIND
    return pa.concat_tables([rows(n) for n in range(3)])


@pytest.mark.parametrize("policy", ["in_place", "append"])
@pytest.mark.parametrize("key", ["k", ["k", "c"]])
@pytest.mark.parametrize("paged", [False, True])
def test_a_queue_takes_a_table_in_whose_chunks_they_differ(policy, key, paged):
    schema = pa.schema({"k": pa.string(), "t": pa.int64(), "c": pa.string()}) if paged else None
    queue = wp.UpdateQueue(key, policy, schema=schema if key != "k" or not paged else schema.remove(2))
    table = in_chunks() if key != "k" or not paged else in_chunks().drop_columns(["c"])
    queue.put_batch(table)
    assert queue.get_batch(1000) == table.to_pylist()


@pytest.mark.parametrize("policy", ["in_place", "append"])
@pytest.mark.parametrize("as_tuples", [False, True])
def test_pages_give_no_more_at_once_than_the_dictionary_of_their_schema_can_hold(policy, as_tuples):
    queue = wp.UpdateQueue("k", policy, schema=pa.schema({"k": KIND, "t": pa.int64()}))
    table = in_chunks().select(["k", "t"])
    queue.put_batch(table.to_pylist() if as_tuples else table)
    got = [queue.get_table(1000) for _ in range(3)]
    assert [len(part) for part in got] == [128, 128, 44]
    assert {part.schema.field("k").type for part in got} == {KIND}
    assert [row for part in got for row in part.to_pylist()] == table.to_pylist()


KEYS = {
    "int64": [3, 1, None],
    "double": [0.5, 2.5, None],
    "bool": [True, False, None],
    "date32": [dt.date(2020, 1, 2), dt.date(2020, 1, 1), None],
    "string": ["b", "a", None],
}


@pytest.mark.parametrize("policy", ["in_place", "append"])
@pytest.mark.parametrize("as_tuples", [False, True])
@pytest.mark.parametrize(("kind", "values"), KEYS.items(), ids=KEYS)
def test_pages_give_back_keys_that_are_dictionaries_of_any_values(kind, values, as_tuples, policy):
    column = pa.array(values, pa.type_for_alias(kind)).dictionary_encode()
    table = pa.table({"k": column.cast(pa.dictionary(pa.int8(), column.type.value_type)), "n": range(3)})
    queue = wp.UpdateQueue("k", policy, schema=table.schema)
    queue.put_batch(table.to_pylist() if as_tuples else table)
    assert queue.get_table(9).equals(table)
    queue.put_batch(table)
    assert queue.get_batch(9) == table.to_pylist()


def test_a_union_takes_them_from_several_inputs_and_pushes():
    union = wp.Updates(key="k", time="t").union()
    assert union.push(rows(0), rows(1))["c"].to_pylist() == NAMES[:200]
    later = rows(1).set_column(1, "t", pa.array(np.arange(100, 200)))
    found = union.push(rows(2), later)
    assert sorted(found["k"].to_pylist()) == NAMES[100:] == sorted(found["c"].to_pylist())


def test_a_join_takes_them_from_several_pushes():
    join = wp.Updates(key="k", time="t").join(within=5)
    for n in range(3):
        found = join.push(rows(n), rows(n))
        assert found["c"].to_pylist() == found["right_c"].to_pylist() == NAMES[100 * n : 100 * n + 100]
    with pytest.raises(WrongType, match="column 'c' has type dictionary"):
        join.push(rows(0).set_column(2, "c", pa.array(range(100)).dictionary_encode()), rows(0))


def test_a_join_and_a_union_forget_the_values_of_rows_that_they_forgot():
    updates = wp.Updates(key="k", time="t")
    join, union = updates.join(within=5), updates.union()
    for n in range(100):
        column = pa.array([None, *(f"c{10 * n + i}" for i in range(9))]).dictionary_encode()
        rows = pa.table({"k": range(10), "t": [10 * n] * 10, "c": column})
        found, youngest = join.push(rows, rows), union.push(rows)
        assert found["c"].to_pylist() == found["right_c"].to_pylist() == column.to_pylist()
        assert youngest["c"].to_pylist() == column.to_pylist()
        for made in (found["c"], found["right_c"], youngest["c"]):
            assert len(made.combine_chunks().dictionary) == 9
    assert len(pickle.dumps(join)) < 20_000
    assert len(pickle.dumps(union)) < 20_000


@pytest.mark.parametrize("index", [pa.int32(), pa.uint32(), pa.int64()])
def test_a_join_leaves_the_order_of_values_and_their_index_as_they_are(index):
    kind = pa.dictionary(index, pa.string(), ordered=True)
    column = pa.DictionaryArray.from_arrays(
        pa.array([2, 0, None], index), ["low", "mid", "high"], ordered=True
    )
    rows = pa.table({"k": [1, 2, 3], "t": [1, 1, 1], "c": column})
    found = wp.Updates(key="k", time="t").join(within=5).push(rows, rows)["right_c"]
    assert found.type == kind
    assert found.to_pylist() == ["high", "low", None]
    assert found.combine_chunks().dictionary.to_pylist() == ["low", "high"]


def test_windows_take_them_as_keys():
    windows = wp.Updates(key="k", time="t").window(1).agg(wp.count())
    windows.put(in_chunks())
    assert sorted(windows.get()["k"].to_pylist()) == sorted(NAMES)


def test_a_filter_and_a_map_leave_them_as_they_are():
    updates = wp.Updates(key="k", time="t")
    assert updates.filter(in_chunks(), lambda r: np.ones(len(r), bool)).schema == in_chunks().schema
    assert updates.map(in_chunks(), lambda r: r).equals(in_chunks())
