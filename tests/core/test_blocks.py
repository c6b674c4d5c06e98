from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core import blocks
from windowpane.core.arrays import Column, Ragged, Tuples
from windowpane.core.lane_blocks import CHUNK, Blocks, Reader, Writer
from windowpane.core.ledger import Ledger, Windows
from windowpane.core.partials.counts import RowCount
from windowpane.core.partials.runs import ValueCounts
from windowpane.core.pending import TIE
from windowpane.core.rows import Rows
from windowpane.core.slices import SliceTable
from windowpane.values.errors import BadState


def same(a, b):
    if isinstance(a, Ragged):
        return all(same(getattr(a, n), getattr(b, n)) for n in ("offsets", "values", "weights"))
    if a.dtype == object:
        return b.dtype == object and a.tolist() == b.tolist()
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


COLUMNS = {
    "int64": np.array([1, -(2**63), 2**63 - 1]),
    "int8": np.array([1, -128, 127], np.int8),
    "uint64": np.array([0, 1, 2**64 - 1], np.uint64),
    "bool": np.array([True, False, True]),
    "float64": np.array([np.nan, -0.0, np.inf]),
    "a NaN with a payload": np.array([0x7FF8000000000123, 1, 2]).view(np.float64),
    "float32": np.array([0.1, np.nan, -np.inf], np.float32),
    "complex": np.array([1 + 2j, np.nan, 0]),
    "instant": np.array(["2024-01-01", "NaT", "1969-12-31"], "M8[us]"),
    "fixed text": np.array(["é", "", "abc"]),
    "big endian": np.array([1, 2, 3], ">i4"),
    "every second": np.arange(6)[::2],
    "sketches": np.array([b"\x00\x01", None, b""], object),
    "text": np.array(["é", None, ""], object),
    "numbers as objects": np.array([1, None, -5], object),
    "nothing but None": np.array([None, None, None], object),
    "lists": Ragged(np.array([0, 2, 2, 3]), np.array([1.5, np.nan, -0.0]), np.array([1, 2, 3])),
    "empty lists": Ragged(np.zeros(4, np.int64), np.empty(0), np.empty(0, np.int64)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_comes_back_as_it_was(name):
    back = blocks.read_table("b", blocks.write_table({"x": COLUMNS[name], "other": np.arange(3)}))
    assert same(COLUMNS[name], back["x"])
    assert same(np.arange(3), back["other"])


def test_columns_without_rows_keep_their_types():
    none = {name: c[:0] for name, c in COLUMNS.items() if not isinstance(c, Ragged)}
    back = blocks.read_table("b", blocks.write_table(none))
    assert all(same(none[name], back[name]) for name in none)


def test_lists_that_are_part_of_a_longer_array_are_stored_alone():
    part = Ragged(np.array([2, 3, 5]), np.arange(1000), np.ones(1000, np.int64))
    block = blocks.write_table({"x": part})
    back = blocks.read_table("b", block)["x"]
    assert (back.offsets.tolist(), back.values.tolist()) == ([0, 1, 3], [2, 3, 4])
    assert len(block) < 2000


def test_what_is_read_can_be_written_to():
    table = blocks.read_table("b", blocks.write_table({n: c for n, c in COLUMNS.items() if n != "lists"}))
    plain = [c for c in table.values() if not isinstance(c, Ragged)]
    assert all(c.flags.writeable for c in plain)


def test_equal_columns_give_equal_bytes():
    again = {n: c if isinstance(c, Ragged) else c.copy() for n, c in COLUMNS.items()}
    assert blocks.write_table(COLUMNS) == blocks.write_table(again)


@pytest.mark.parametrize("values", [[1, "a"], [(1, 2)], [2**70], [{}], ["\ud800"]])
def test_objects_that_cannot_be_stored_are_named(values):
    cells = np.empty(len(values), object)
    cells[:] = values
    with pytest.raises(BadState, match=r"'mine'.*cannot be stored"):
        blocks.write_table({"mine": cells})


@given(st.data())
def test_a_flipped_bit_anywhere_is_found_and_the_block_is_named(data):
    block = bytearray(blocks.write_table({"x": np.arange(5), "s": COLUMNS["sketches"][[0, 1, 2, 0, 1]]}))
    at = data.draw(st.integers(0, len(block) - 1))
    block[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(BadState, match="'this one'"):
        blocks.read_table("this one", bytes(block))


@given(st.integers(0, 200))
def test_a_block_that_is_cut_short_is_found(size):
    with pytest.raises(BadState, match="'this one'"):
        blocks.read_table("this one", blocks.write_table({"x": np.arange(50)})[:size])


def test_a_block_of_another_format_says_so():
    block = bytearray(blocks.write_json([1]))
    block[4] = 9
    with pytest.raises(BadState, match=f"format 9, but this windowpane reads format {blocks.FORMAT}"):
        blocks.read_json("b", bytes(block))


def test_a_whole_block_of_another_kind_is_refused():
    with pytest.raises(BadState, match="'b' does not hold columns"):
        blocks.read_table("b", blocks.write_json({}))
    with pytest.raises(BadState, match="'b' does not hold what it should"):
        blocks.read_json("b", blocks.write_table({"x": np.arange(2)}))


def sample_tuples(n, seed=0):
    rng = np.random.default_rng(seed)
    columns = {
        "a.b": Column(rng.normal(size=n), rng.random(n) < 0.5),
        "values.x": Column(rng.integers(0, 9, n), None, rng.integers(0, 9, n)),
        TIE: Column(rng.integers(-(2**63), 2**63 - 1, n)),
    }
    return Tuples(np.sort(rng.integers(0, 10**9, n)), rng.integers(0, 50, n), columns)


def same_tuples(a, b):
    return (
        same(a.time, b.time)
        and same(a.key, b.key)
        and list(a.columns) == list(b.columns)
        and all(
            (x is None and y is None) or same(x, y)
            for n in a.columns
            for x, y in zip(
                (a.columns[n].values, a.columns[n].valid, a.columns[n].order),
                (b.columns[n].values, b.columns[n].valid, b.columns[n].order),
                strict=True,
            )
        )
    )


def stored(put):
    """Write one part; the blocks and a reader of them."""
    found, parts = Blocks(), {}
    put(Writer("lane", found, parts))
    return found, Reader("lane", found, {"parts": parts, "digests": dict(found.digests)})


@pytest.mark.parametrize("n", [0, 1, 100, 5 * CHUNK])
def test_tuples_come_back_in_order_with_their_masks_and_ties(n):
    tuples = sample_tuples(n)
    _, reader = stored(lambda write: write.tuples("pending", tuples))
    back = reader.tuples("pending")
    assert len(back) == n
    assert n == 0 or same_tuples(tuples, back)


def test_waiting_tuples_that_stay_keep_their_blocks():
    n = 20 * CHUNK
    tuples = sample_tuples(n)
    before, _ = stored(lambda write: write.tuples("pending", tuples))
    moved = tuples.take(np.arange(1000, n - 1000))  # some settled, some are yet to come
    after, _ = stored(lambda write: write.tuples("pending", moved))
    put, gone = after.changed(before.digests)
    assert len(before) > 8
    assert len(put) <= 2
    assert len(gone) <= 4


def sample_rows(n, keys=7):
    rng = np.random.default_rng(n)
    count = (np.ones(n, np.int64),)
    runs = (Ragged(np.arange(n + 1), rng.integers(0, 9, n), np.ones(n, np.int64)),)
    return Rows(np.arange(n) // keys, np.arange(n) % keys, (count, runs))


LAYOUT = (RowCount(), ValueCounts("x"))


def test_a_slice_table_comes_back_segment_by_segment():
    table = SliceTable(LAYOUT).insert(sample_rows(50_000))
    found, reader = stored(lambda write: write.table("table", table))
    back = reader.table("table", LAYOUT)
    assert len(found) == len(table.segments) == len(back.segments) > 3
    for a, b in zip(table.segments, back.segments, strict=True):
        assert blocks.write_rows(a.rows) == blocks.write_rows(b.rows)


def test_a_segment_that_did_not_change_is_not_written_again(monkeypatch):
    table = SliceTable(LAYOUT).insert(sample_rows(50_000))
    before, reader = stored(lambda write: write.table("table", table))
    restored = reader.table("table", LAYOUT)
    monkeypatch.setattr(blocks, "write_rows", lambda _: pytest.fail("written again"))
    for one in (table, restored):
        after, _ = stored(lambda write, one=one: write.table("table", one))
        assert after.changed(before.digests) == ({}, [])


@pytest.mark.parametrize("spread", [1, 13])
def test_one_key_of_an_open_slice_with_very_many_changes_one_block(spread):
    keys = 20 * CHUNK
    many = sample_rows(2 * keys, keys)
    many = Rows(many.start, many.key * spread, many.partials)
    table = SliceTable(LAYOUT).insert(sample_rows(100)).insert(many)
    before, reader = stored(lambda write: write.table("table", table))
    back = reader.table("table", LAYOUT)
    assert len(before) >= 30
    assert [len(s.rows) for s in back.segments] == [len(s.rows) for s in table.segments]
    for a, b in zip(table.segments, back.segments, strict=True):
        assert blocks.write_rows(a.rows) == blocks.write_rows(b.rows)
    one = many.take(np.array([keys + 70_000]))
    for grown in (table.insert(one), back.insert(one)):
        after, _ = stored(lambda write, grown=grown: write.table("table", grown))
        put, gone = after.changed(before.digests)
        assert (len(put), len(gone)) == (1, 1)
        assert max(map(len, put.values())) < sum(len(before[name]) for name in before) / 20


def bursts(n, keys=200):
    """Rows sorted by key and start, as sessions are; `n` of each key."""
    rows = sample_rows(n * keys, n)
    key, start = np.repeat(np.arange(keys), n), np.tile(np.arange(n) * 1_000_000, keys)
    return Rows(start + key, key, rows.partials)


@pytest.mark.parametrize("n", [0, 1, 100, 300])
def test_rows_by_key_come_back_in_their_order(n):
    rows = bursts(n)
    found, reader = stored(lambda write: write.rows("rows", rows))
    assert (len(found) > 1) == (n >= 100)
    assert blocks.write_rows(reader.rows("rows", LAYOUT)) == blocks.write_rows(rows)


def test_rows_by_key_as_they_were_cut_before_come_back():
    """By ranges of keys; such blocks may be in older checkpoints."""
    rows = bursts(300)
    cuts = [0, 30_000, len(rows)]
    found = {f"lane/rows/{i}": blocks.write_rows(rows.span(a, b)) for i, (a, b) in enumerate(pairwise(cuts))}
    manifest = {"parts": {"lane/rows": list(found)}, "digests": Blocks(found).digests}
    assert blocks.write_rows(Reader("lane", found, manifest).rows("rows", LAYOUT)) == blocks.write_rows(rows)


def test_closed_rows_that_wait_for_late_tuples_keep_their_blocks():
    """Each key has a new row and an older one less, and all that is between stays."""
    many, some = bursts(400), np.arange(200 * 400) % 400
    before, _ = stored(lambda write: write.rows("rows", many.take(some < 398)))
    after, _ = stored(lambda write: write.rows("rows", many.take((some > 1) & (some < 399))))
    put, gone = after.changed(before.digests)
    assert len(before) > 5
    assert len(put) <= 3
    assert len(gone) <= 3


def test_rows_of_other_partials_are_refused():
    with pytest.raises(BadState, match="'b' holds other partials"):
        blocks.read_rows("b", blocks.write_rows(sample_rows(10)), (RowCount(),))


def sample_ledger(n, first=0):
    """Answers of 50 keys and 3 definitions, as they follow each other; three in ten thousand were revised."""
    at = np.arange(first, first + n)
    end = at // 150 * 1_000_000 + 1_700_000_000_000_000
    windows = Windows(at % 3, at // 3 % 50, end - 5_000_000, end)
    return Ledger(windows, (at % 3_333 == 0).astype(np.int64), end)


@pytest.mark.parametrize("n", [0, 1, 100, 5 * CHUNK])
def test_a_ledger_comes_back(n):
    ledger = sample_ledger(n)
    _, reader = stored(lambda write: write.ledger(ledger))
    back = reader.ledger()
    assert len(back) == n
    assert blocks.write_ledger(back) == blocks.write_ledger(ledger)


def test_a_ledger_of_one_block_as_it_was_written_before_comes_back():
    ledger = sample_ledger(3 * CHUNK)
    name, block = "lane/ledger/0", blocks.write_ledger(ledger)
    manifest = {"parts": {"lane/ledger": [name]}, "digests": {name: blocks.digest_of(block)}}
    back = Reader("lane", {name: block}, manifest).ledger()
    assert blocks.write_ledger(back) == blocks.write_ledger(ledger)


def test_answers_that_stay_keep_their_blocks_however_many_there_are():
    """A micro-batch writes the answers that came or changed, not all that may still be revised."""
    n, step = 40 * CHUNK, 600
    before, _ = stored(lambda write: write.ledger(sample_ledger(n)))
    moved = sample_ledger(n, first=step)  # some settled, others came
    revised = moved.windows.take(np.array([n // 2]))
    moved = moved.record(revised, np.array([1]), revised.end)
    after, _ = stored(lambda write: write.ledger(moved))
    put, gone = after.changed(before.digests)
    whole = sum(len(before[name]) for name in before)
    assert len(before) > 20
    assert len(put) <= 5
    assert len(gone) <= 5
    assert sum(map(len, put.values())) < whole / 5


def test_arrays_grow_block_by_block():
    arrays = {"a": np.arange(3 * CHUNK), "b": np.ones(3 * CHUNK)}
    found, reader = stored(lambda write: write.arrays("counters", arrays))
    empty = {"a": np.empty(0, np.int64), "b": np.empty(0)}
    assert same(reader.arrays("counters", empty)["a"], np.arange(3 * CHUNK))
    longer = {"a": np.arange(3 * CHUNK + 1), "b": np.ones(3 * CHUNK + 1)}
    more, _ = stored(lambda write: write.arrays("counters", longer))
    assert list(more.changed(found.digests)[0]) == ["lane/counters/3"]


def test_a_block_that_is_missing_or_of_another_time_is_named():
    found, parts = Blocks(), {}
    Writer("lane", found, parts).arrays("counters", {"a": np.arange(3)})
    digests = dict(found.digests)
    other = blocks.write_table({"a": np.arange(4)})
    empty = {"a": np.empty(0, np.int64)}
    with pytest.raises(BadState, match="'lane/counters/0' is missing"):
        Reader("lane", {}, {"parts": parts, "digests": digests}).arrays("counters", empty)
    stale = Reader("lane", {"lane/counters/0": other}, {"parts": parts, "digests": digests})
    with pytest.raises(BadState, match="'lane/counters/0' is whole but not of this snapshot"):
        stale.arrays("counters", empty)


def test_changed_tells_what_to_put_and_what_to_delete():
    old = Blocks({"a": blocks.write_json(1), "b": blocks.write_json(2), "c": blocks.write_json(3)})
    new = Blocks({"a": blocks.write_json(1), "b": blocks.write_json(4), "d": blocks.write_json(5)})
    put, gone = new.changed(old.digests)
    assert (set(put), gone) == ({"b", "d"}, ["c"])


def test_nothing_of_a_block_is_pickled():
    block = blocks.write_table({"x": COLUMNS["text"], "y": COLUMNS["complex"]})
    with pa.ipc.open_stream(bytes(blocks.unseal("b", block))) as reader:
        assert [str(f.type) for f in reader.schema] == ["large_string", "fixed_size_binary[16]"]
