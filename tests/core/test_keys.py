"""Keys become dense ids in order of first appearance, whatever the batches and the layout."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane.core.keys import BLOCK, KeyIndex
from windowpane.values.errors import BadState, WrongType

ROWS = st.lists(
    st.tuples(st.none() | st.text("abé", max_size=9), st.none() | st.floats(width=32), st.integers(0, 2)),
    max_size=60,
)
NAMES, TYPES = ["t", "f", "i"], [pa.string(), pa.float64(), pa.int32()]


def canonical(value):
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


def columns_of(rows):
    return [pa.array([r[i] for r in rows], kind) for i, kind in enumerate(TYPES)]


def reference(seen, rows):
    return [seen.setdefault(tuple(canonical(v) for v in row), len(seen)) for row in rows]


def shown(index):
    columns = [c.to_pylist() for c in index.values(np.arange(len(index)))]
    return [tuple(canonical(v) for v in row) for row in zip(*columns, strict=True)]


@given(ROWS, st.lists(st.integers(0, 60), max_size=4), st.booleans())
def test_ids_follow_first_appearance_under_every_split(rows, cuts, encoded):
    index, seen = KeyIndex(NAMES, TYPES), {}
    edges = [0, *sorted(c % (len(rows) + 1) for c in cuts), len(rows)]
    for a, b in pairwise(edges):
        columns = [c.slice(a, b - a) for c in columns_of(rows)]
        if encoded:
            columns = [c.dictionary_encode() for c in columns]
        assert index.encode(columns).tolist() == reference(seen, rows[a:b])
    assert len(index) == len(seen)
    assert shown(index) == list(seen)


@given(ROWS, ROWS, st.randoms(use_true_random=False))
def test_compacted_and_restored_keys_keep_their_order_and_go_on(rows, more, random):
    index, seen = KeyIndex(NAMES, TYPES), {}
    index.encode(columns_of(rows))
    reference(seen, rows)
    live = np.array([random.random() < 0.5 for _ in seen], np.bool_)
    remap = index.compact(live)
    kept = [key for key, alive in zip(seen, live, strict=True) if alive]
    assert shown(index) == kept
    assert remap.tolist() == [kept.index(k) if a else -1 for k, a in zip(seen, live, strict=True)]
    restored = KeyIndex.restore(NAMES, TYPES, index.blocks())
    assert restored.blocks() == index.blocks()
    again = {key: i for i, key in enumerate(kept)}
    expected = reference(again, more)
    assert index.encode(columns_of(more)).tolist() == expected
    assert restored.encode(columns_of(more)).tolist() == expected


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=80))
def test_a_single_integer_column_tells_every_value_and_null_apart(values):
    index, seen = KeyIndex(["k"], [pa.int64()]), {}
    half = len(values) // 2
    for part in (values[:half], values[half:]):
        for array in (pa.array(part, pa.int64()), pa.array(part, pa.int64()).dictionary_encode()):
            assert index.encode([array]).tolist() == [seen.setdefault(v, len(seen)) for v in part]
    assert index.values(np.arange(len(index)))[0].to_pylist() == list(seen)


EXAMPLES = [
    (pa.int8(), 1, -1), (pa.uint64(), 2**64 - 1, 0), (pa.bool_(), True, False), (pa.float16(), 1.5, 2.0),
    (pa.float32(), 1.5, math.inf), (pa.date32(), 1, 0), (pa.date64(), 86_400_000, 0), (pa.time32("s"), 1, 0),
    (pa.time64("ns"), 1000, 0), (pa.timestamp("s"), 2**60, 2**59), (pa.timestamp("ns", "UTC"), -1, 0),
    (pa.duration("ns"), -1, 0), (pa.decimal128(9, 2), Decimal("1.5"), Decimal(2)), (pa.binary(), b"a", b""),
    (pa.large_string(), "a", ""), (pa.string_view(), "a", "a text too long to be inlined"),
    (pa.binary(2), b"ab", b"ac"), (pa.dictionary(pa.int8(), pa.string()), "a", "b"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "one", "other"), EXAMPLES)
def test_every_plain_type_can_be_a_key(kind, one, other):
    array = pa.array([one, None, other, one, None], kind)
    index = KeyIndex(["k"], [kind])
    assert index.encode([array]).tolist() == [0, 1, 2, 0, 1]
    assert index.values(np.arange(3))[0].type == index.types[0]
    restored = KeyIndex.restore(["k"], [kind], index.blocks())
    again = pa.chunked_array([array[1:], array[:1]])
    assert restored.encode([again]).tolist() == [1, 2, 0, 1, 0]


def test_a_column_of_nulls_is_one_key():
    assert KeyIndex(["k"], [pa.null()]).encode([pa.nulls(3)]).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("kind", "values"), [
    (pa.float64(), [-0.0, 0.0]), (pa.float32(), [0.0, -0.0]), (pa.timestamp("ns", "UTC"), [-1, -999]),
    (pa.duration("ns"), [1999, 1000]), (pa.time64("ns"), [1, 0]),
])  # fmt: skip
def test_which_of_equal_values_came_first_does_not_show(kind, values):
    blocks = []
    for order in (values, values[::-1]):
        index = KeyIndex(["k"], [kind])
        assert index.encode([pa.array([*order, None], kind)]).tolist() == [0, 0, 1]
        blocks.append(index.blocks())
    assert blocks[0] == blocks[1]
    assert index.values(np.array([1]))[0].to_pylist() == [None]


def test_without_columns_there_is_one_key():
    index = KeyIndex([], [])
    assert index.encode([], 3).tolist() == [0, 0, 0]
    assert (len(index), index.values(np.zeros(2, np.int64)), index.blocks()) == (1, [], {})
    assert index.compact(np.array([True])).tolist() == [0]


def test_keys_of_bad_utf8_are_kept_byte_for_byte():
    raw = [b"\xff\xfe", b"ok", b"\xff\xfe", b"\xc3"]
    bad = pa.Array.from_buffers(pa.string(), 4, pa.array(raw, pa.binary()).buffers())
    index = KeyIndex(["k"], [pa.string()])
    assert index.encode([bad]).tolist() == [0, 1, 0, 2]
    restored = KeyIndex.restore(["k"], [pa.string()], index.blocks())
    assert restored.encode([bad.cast(pa.large_string())]).tolist() == [0, 1, 0, 2]
    stored = restored.values(np.arange(3))[0].buffers()
    assert pa.Array.from_buffers(pa.binary(), 3, stored).to_pylist() == [raw[0], raw[1], raw[3]]


def test_blocks_of_old_keys_keep_their_bytes_while_new_keys_come():
    index = KeyIndex(["k", "n"], [pa.string(), pa.int32()])
    before: dict[str, bytes] = {}
    for start in range(0, 5 * BLOCK, 1500):
        numbers = pa.array(range(start, start + 1500), pa.int32())
        texts = pa.array([None if i % 7 == 0 else f"key-{i}" for i in range(start, start + 1500)])
        index.encode([texts, numbers])
        now = index.blocks()
        full = len(index) // BLOCK
        assert all(now[name] == data for name, data in list(before.items())[: len(before) - 1])
        assert len(now) == full + bool(len(index) % BLOCK)
        before = now
    assert KeyIndex.restore(["k", "n"], [pa.string(), pa.int32()], before).blocks() == before


def test_a_million_one_off_keys_leave_no_residue_once_compacted():
    index = KeyIndex(["k"], [pa.int64()])
    empty = index.nbytes
    largest = 0
    for start in range(0, 1_000_000, 100_000):
        ids = index.encode([pa.array(np.arange(start, start + 100_000))])
        largest = max(largest, index.nbytes)
        live = np.zeros(len(index), np.bool_)
        live[ids[-3:]] = True
        assert sorted(index.compact(live).tolist())[-3:] == [0, 1, 2]
    index.compact(np.zeros(3, np.bool_))
    assert len(index) == 0
    assert index.nbytes == empty
    assert largest < 100_003 * 100
    assert index.blocks() == {}


@settings(max_examples=20)
@given(st.integers(1, 40_000), st.integers(1, 5_000))
def test_growing_tables_agree_with_numpy(n, distinct):
    keys = np.random.default_rng(n).integers(0, distinct, n) * 1_000_003
    index = KeyIndex(["k"], [pa.int64()])
    ids = index.encode([pa.array(keys)])
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(unique), np.int64)
    rank[np.argsort(first)] = np.arange(len(unique))
    assert np.array_equal(ids, rank[inverse])


def test_text_values_stay_right_over_many_growing_pieces():
    index = KeyIndex(["k"], [pa.string()])
    for start in range(0, 60_000, 5_000):
        index.encode([pa.array(np.arange(start, start + 5_000)).cast(pa.string())])
    at = np.array([59_999, 0, 31_234, 5_000])
    assert index.values(at)[0].to_pylist() == ["59999", "0", "31234", "5000"]
    assert len(index._pieces) < 10


def test_damaged_or_foreign_blocks_are_refused():
    index = KeyIndex(["k"], [pa.int64()])
    index.encode([pa.array(range(BLOCK + 5))])
    blocks = index.blocks()
    first, second = blocks.values()
    for bad in (
        {"keys-000000": first[: len(first) // 2]},
        {"keys-000000": b""},
        {"keys-000001": second},
        {"keys-000000": first, "keys-000001": first},
        {"keys-000000": second, "keys-000001": first[:0]},
    ):
        with pytest.raises(BadState):
            KeyIndex.restore(["k"], [pa.int64()], bad)
    with pytest.raises(BadState, match="does not belong"):
        KeyIndex.restore(["k"], [pa.int32()], blocks)


def test_a_column_of_another_type_is_cast_or_refused():
    index = KeyIndex(["k"], [pa.int64()])
    assert index.encode([pa.array([1, 2], pa.int8())]).tolist() == [0, 1]
    with pytest.raises(WrongType, match=r"'k' has type string, but int64 is needed"):
        index.encode([pa.array(["x"])])
    with pytest.raises(WrongType, match=r"'s' has type struct.*Use one field"):
        KeyIndex(["s"], [pa.struct([("a", pa.int64())])])


@pytest.mark.parametrize(("kind", "other"), [
    (pa.bool_(), pa.array([1, 0])), (pa.int64(), pa.array(["1"])), (pa.string(), pa.array([1])),
    (pa.int64(), pa.array([True])), (pa.timestamp("us"), pa.array([1])), (pa.int64(), pa.array([1.5])),
    (pa.date32(), pa.array([86_400_000_005], pa.timestamp("us"))), (pa.int8(), pa.array([200])),
    (pa.float32(), pa.array([0.1])), (pa.float64(), pa.array([2**53 + 1])),
    (pa.int64(), pa.array(["1"]).dictionary_encode()), (pa.string(), pa.array([b"\xff"], pa.binary())),
])  # fmt: skip
def test_keys_that_a_cast_would_make_one_are_refused_with_both_types(kind, other):
    index = KeyIndex(["k"], [kind])
    found = other.type.value_type if pa.types.is_dictionary(other.type) else other.type
    with pytest.raises(WrongType, match=r"column 'k' has type .* is needed\. Cast the column") as error:
        index.encode([other])
    assert f"has type {found}, but {kind} is needed" in str(error.value)
    assert len(index) == 0


@pytest.mark.parametrize(("kind", "other", "ids"), [
    (pa.int64(), pa.array([3, None, -3], pa.int8()), [0, 1, 2]), (pa.int8(), pa.array([3, 3]), [0, 0]),
    (pa.float64(), pa.array([math.nan, 0.5, -0.0, math.nan, 0.0], pa.float32()), [0, 1, 2, 0, 2]),
    (pa.float32(), pa.array([0.5, math.nan, None]), [0, 1, 2]), (pa.int64(), pa.array([1.0, -0.0]), [0, 1]),
    (pa.timestamp("us"), pa.array([1, 2], pa.date32()), [0, 1]), (pa.string(), pa.nulls(2), [0, 0]),
    (pa.date32(), pa.array([86_400_000_000], pa.timestamp("us")), [0]), (pa.bool_(), pa.nulls(1), [0]),
    (pa.string(), pa.array(["a", None, "a"], pa.large_string()).dictionary_encode(), [0, 1, 0]),
    (pa.binary(2), pa.array(["ab", "cd"]), [0, 1]),
    (pa.int64(), pa.array([1, 1]).dictionary_encode(), [0, 0]),
])  # fmt: skip
def test_keys_that_stay_what_they_are_may_come_in_another_type(kind, other, ids):
    index = KeyIndex(["k"], [kind])
    assert index.encode([other]).tolist() == ids
    assert index.values(np.arange(len(index)))[0].type == kind


def test_no_flipped_bit_crashes_the_reading_of_a_block():
    names, types = ["t", "n"], [pa.string(), pa.int64()]
    index = KeyIndex(names, types)
    texts = [None if i % 5 == 0 else "x" * (i % 9) + str(i) for i in range(100)]
    index.encode([pa.array(texts), pa.array(range(100))])
    data = index.blocks()["keys-000000"]
    refused = 0
    for bit in np.random.default_rng(1).integers(0, 8 * len(data), 1000).tolist():
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            KeyIndex.restore(names, types, {"keys-000000": bytes(damaged)})
        except BadState:
            refused += 1
    assert refused > 100
