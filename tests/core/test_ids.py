"""Ids of kept tuples: what a duplicate is, what is forgotten, and how little of it a batch writes."""

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core import ids as module
from windowpane.core.ids import Ids
from windowpane.core.lane_blocks import CHUNK, Blocks, Reader, Writer
from windowpane.values.errors import BadState


def batch_of(*columns):
    names = [f"c{i}" for i in range(len(columns))]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=names)


def numbers(low, high):
    return batch_of(np.arange(low, high))


def taken(ids, batch, time):
    """The positions of the tuples that are no duplicates."""
    marked = batch.append_column("at", pa.array(range(batch.num_rows)))
    rows, times = ids.once(marked, np.asarray(time, np.int64))
    at = rows["at"].to_pylist()
    assert times.tolist() == [time[i] for i in at]
    return at


def stored(ids):
    blocks, parts = Blocks(), {}
    ids.write(Writer("ids", blocks, parts))
    return blocks, {"parts": parts, "digests": blocks.digests}


def restored(ids, below):
    blocks, manifest = stored(ids)
    fresh = Ids(ids.columns)
    fresh.read(Reader("ids", {name: bytes(blocks[name]) for name in blocks}, manifest), below)
    return fresh


tuples = st.lists(st.tuples(st.none() | st.integers(0, 12), st.integers(0, 8)), max_size=12)
steps = st.lists(st.tuples(tuples, st.integers(0, 4), st.sampled_from(["go on", "restart", "undo"])))


@given(steps, st.booleans())
def test_the_first_of_each_id_counts_until_the_bound_passed_it(found, texts):
    """By brute force; times rise with the bound, as those of tuples that have a place do."""
    with patch.object(module, "CHUNK", 4), patch.object(module, "SPARE", 2):
        ids, known, below = Ids(["c0"]), {}, 0
        for some, rise, then in found:
            names = [None if i is None else str(i) if texts else i for i, _ in some]
            time = [below + late for _, late in some]
            before, mark = dict(known), ids.mark
            expected = []
            for at, (name, when) in enumerate(zip(names, time, strict=True)):
                if name is None or known.get(name, below - 1) < below:
                    expected.append(at)
                    known |= {} if name is None else {name: when}
            batch = batch_of(pa.array(names, pa.string() if texts else pa.int64()))
            assert taken(ids, batch, time) == expected
            if then == "undo":
                ids.rewind(mark)
                known = before
                continue
            below += rise
            ids.forget(below)
            live = sum(when >= below for when in known.values())
            assert live <= len(ids) <= 2 * live
            ids = restored(ids, below) if then == "restart" else ids


def test_several_columns_are_one_id_and_a_null_in_any_is_none():
    ids = Ids(["c0", "c1"])
    batch = batch_of(["a", "a", "b", None, "a", None], [1, 2, 1, 1, None, 1])
    assert taken(ids, batch, [5] * 6) == [0, 1, 2, 3, 4, 5]
    assert taken(ids, batch, [5] * 6) == [3, 4, 5]
    assert len(ids) == 3


def test_values_and_not_their_layout_tell_ids_apart():
    ids = Ids(["c0"])
    assert taken(ids, batch_of(pa.array(["a", "b"])), [1, 1]) == [0, 1]
    assert taken(ids, batch_of(pa.array(["b", "c"]).dictionary_encode()), [1, 1]) == [1]
    assert taken(ids, batch_of(pa.array(["c", "a"], pa.large_string())), [1, 1]) == []


def test_a_batch_writes_few_blocks_and_those_that_the_bound_passed_are_removed():
    ids, n = Ids(["c0"]), 20 * CHUNK
    ids.once(numbers(0, n), np.arange(n))
    blocks, _ = stored(ids)
    assert len(blocks) == 20
    ids.once(numbers(n, n + 100), np.arange(n, n + 100))
    more, _ = stored(ids)
    put, gone = more.changed(blocks.digests)
    assert (len(put), gone) == (1, [])
    ids.forget(10 * CHUNK + CHUNK // 4)
    less, _ = stored(ids)
    put, gone = less.changed(more.digests)
    assert (len(put), len(gone)) == (0, 10)
    ids.forget(n + 60)
    assert len(ids) == 40
    assert ids.nbytes < CHUNK * 24
    ids.forget(n + 100)
    assert (len(ids), len(stored(ids)[0])) == (0, 0)


def test_small_batches_make_few_blocks():
    ids, written = Ids(["c0"]), {}
    rewritten = 0
    for at in range(0, CHUNK, 16):
        ids.once(numbers(at, at + 16), np.arange(at, at + 16))
        blocks, _ = stored(ids)
        put, _ = blocks.changed(written)
        rewritten += len(put)
        assert len(blocks) <= 12
        written = blocks.digests
    assert rewritten == CHUNK // 16  # one block each time, and every other time a small one


def test_a_tuple_far_ahead_does_not_keep_the_ids_around_it():
    ids = Ids(["c0"])
    time = np.arange(4 * CHUNK)
    time[::1000] += 10**9
    ids.once(numbers(0, len(time)), time)
    ids.forget(10**6)
    assert len(ids) == len(time[::1000])


def test_a_block_that_is_missing_or_of_another_time_is_found():
    ids = Ids(["c0"])
    ids.once(numbers(0, 5), np.arange(5))
    blocks, manifest = stored(ids)
    (name,) = blocks
    with pytest.raises(BadState, match=r"block 'ids/runs/\w+' is missing"):
        Ids(["c0"]).read(Reader("ids", {}, manifest), 0)
    other = Ids(["c0"])
    other.once(numbers(1, 6), np.arange(5))
    with pytest.raises(BadState, match="is whole but not of this snapshot"):
        Ids(["c0"]).read(Reader("ids", {name: next(iter(stored(other)[0].values()))}, manifest), 0)
