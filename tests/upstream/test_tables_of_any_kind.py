"""Tables from other libraries, and columns in layouts that Arrow itself cannot take rows of."""

import pyarrow as pa
import pytest

import windowpane as wp

VIEWS = [
    (pa.string_view(), ["a", "a long text that is not inlined", "a", None]),
    (pa.binary_view(), [b"a", b"b", b"a", None]),
    (pa.dictionary(pa.int32(), pa.string_view()), ["a", "b", "a", None]),
]
NESTED = [
    (pa.list_(pa.string_view()), [["a"], [], ["b", None], None]),
    (pa.large_list(pa.struct([("x", pa.binary_view())])), [[{"x": b"a"}], [], [{"x": None}], None]),
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
