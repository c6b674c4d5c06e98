"""Window buffers in blocks, and the naive ones, against lists."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane import errors
from windowpane.core.upstream.memory import PagePool
from windowpane.core.upstream.memory_buffers import FixedBuffers, WindowBuffers

MOST = 60
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "oldest", "newest"]),
        st.lists(st.integers(0, 6), max_size=20),
        st.floats(0, 1),
    ),
    max_size=25,
)


def ints(values):
    return np.array(values, np.int64)


def play(buffers, steps, check):
    """Drive the buffers and lists alike; how the lists end."""
    model = {key: [] for key in range(7)}
    number = 0
    buffers.append(ints(range(7)), ints([[-1, -1]] * 7))
    buffers.drop_oldest(np.arange(7), np.ones(7, np.int64))
    for kind, named, share in steps:
        if kind == "append":
            keys = [key for i, key in enumerate(named) if len(model[key]) + named[: i + 1].count(key) <= MOST]
            rows = np.stack([ints(keys), np.arange(number, number + len(keys))], axis=1)
            number += len(keys)
            buffers.append(ints(keys), rows)
            for key, row in zip(keys, rows.tolist(), strict=True):
                model[key].append(row)
        else:
            some = sorted(set(named))
            counts = [round(share * len(model[key])) for key in some]
            if kind == "oldest":
                buffers.drop_oldest(ints(some), ints(counts))
                model |= {key: model[key][n:] for key, n in zip(some, counts, strict=True)}
            else:
                buffers.drop_newest(ints(some), ints(counts))
                model |= {key: model[key][: len(model[key]) - n] for key, n in zip(some, counts, strict=True)}
        rows, offsets = buffers.read(np.arange(7))
        found = [rows[a:b].tolist() for a, b in pairwise(offsets)]
        assert found == list(model.values())
        assert buffers.lengths(np.arange(7)).tolist() == [len(held) for held in model.values()]
        check(model)
    return model


@given(steps=STEPS, block=st.integers(1, 5), page=st.integers(1, 4))
@settings(max_examples=120, deadline=None)
def test_blocks_keep_what_lists_keep_and_hold_no_empty_block(steps, block, page):
    pool = PagePool(7 * MOST, block * page * 16)
    buffers = WindowBuffers(pool, 2, block=block)

    def check(model):
        usage = buffers.usage
        held = sum(map(len, model.values()))
        assert usage.used == held
        # A key wastes at most what is before its first and behind its last tuple.
        waste = 2 * (block - 1) * sum(1 for tuples in model.values() if tuples)
        assert held <= usage.allocated <= held + waste
        assert usage.pages * usage.page_tuples >= usage.allocated
        assert pool.free_pages + usage.pages == pool.pages
        assert usage.pages > 0 or held == 0

    play(buffers, steps, check)


@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_naive_buffers_keep_the_same_but_set_everything_aside(steps):
    buffers = FixedBuffers(MOST, 2)

    def check(model):
        assert buffers.usage.allocated == 7 * MOST
        assert buffers.usage.used == sum(map(len, model.values()))

    play(buffers, steps, check)


def test_blocks_of_two_keys_lie_in_one_page_and_neighbours_in_one_block():
    pool = PagePool(2, 8 * 8)
    buffers = WindowBuffers(pool, 1, block=4)
    buffers.append(ints([0, 1, 0, 1, 0, 1]), ints([[10], [20], [11], [21], [12], [22]]))
    assert pool.words[0].tolist() == [10, 11, 12, 0, 20, 21, 22, 0]
    assert pool.free_pages == 1


def test_a_full_pool_says_how_many_tuples_were_stored():
    buffers = WindowBuffers(PagePool(1, 32), 1, block=2)
    with pytest.raises(errors.OutOfMemory, match="1 pages is full after 3 of 5 tuples"):
        buffers.append(ints([0, 0, 1, 0, 1]), ints([[1], [2], [3], [4], [5]]))
    assert buffers.read(ints([0, 1]))[0].tolist() == [[1], [2], [3]]


def test_a_naive_buffer_refuses_more_than_was_set_aside():
    buffers = FixedBuffers(2, 1)
    with pytest.raises(errors.OutOfMemory, match="a buffer of 2 tuples is full"):
        buffers.append(ints([0, 0, 0]), ints([[1], [2], [3]]))
