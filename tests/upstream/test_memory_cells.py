"""The memory of update queues against a dictionary, and the rules of on-demand paging."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane import errors
from windowpane.core.upstream.memory import KeyCells, PagedCells, PagePool, floats_of, rows_of

KEYS = st.lists(st.integers(0, 30), max_size=12)
STEPS = st.lists(st.tuples(st.sampled_from(["put", "take"]), KEYS), max_size=25)


def ints(values):
    return np.array(values, np.int64)


def tuples(start, keys):
    """Rows that never repeat, so that a mix-up cannot go unseen."""
    return np.stack([ints(keys), np.arange(start, start + len(keys))], axis=1).reshape(len(keys), 2)


@given(steps=STEPS, page=st.integers(1, 9), keep=st.booleans())
@settings(max_examples=150, deadline=None)
def test_key_cells_keep_the_newest_tuple_of_each_key_as_a_dictionary_does(steps, page, keep):
    pool = PagePool(40, page * 16)
    cells = KeyCells(pool, 2, keep=keep)
    model, seen, number = {}, set(), 0
    for kind, keys in steps:
        if kind == "put":
            rows = tuples(number, keys)
            number += len(keys)
            cells.put(ints(keys), rows)
            model |= dict(zip(keys, map(tuple, rows.tolist()), strict=True))
            seen |= set(keys)
        else:
            there = sorted(set(keys) & set(model))
            taken = cells.take(ints(there))
            assert [tuple(row) for row in taken.tolist()] == [model.pop(key) for key in there]
        waiting = sorted(model)
        assert [tuple(row) for row in cells.read(ints(waiting)).tolist()] == [model[k] for k in waiting]
        assert cells.waits(np.arange(40)).nonzero()[0].tolist() == waiting
        usage = cells.usage
        assert usage.used == len(model)
        assert usage.allocated == (len(seen) if keep else len(model))
        assert pool.free_pages + usage.pages == pool.pages


@given(
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 20), st.randoms()), max_size=30),
    page=st.integers(1, 7),
)
@settings(max_examples=150, deadline=None)
def test_no_cell_is_given_twice_and_empty_pages_return_at_once(steps, page):
    pool = PagePool(700, page * 8)
    cells = PagedCells(pool, 1)
    held = []
    for takes, n, random in steps:
        if takes:
            room, pages = cells.pages * page - len(held), cells.pages
            fresh = cells.take(n).tolist()
            assert not set(fresh) & set(held)
            assert len(set(fresh)) == n
            # Pages in use are used up before the pool is asked for another.
            assert cells.pages - pages == max(0, -(-(n - room) // page))
            held += fresh
        else:
            random.shuffle(held)
            gone, held = held[:n], held[n:]
            cells.give(ints(gone))
        assert cells.used == len(held)
        assert cells.pages == len({cell // page for cell in held})
        assert pool.free_pages == 700 - cells.pages
        assert cells.most_pages >= cells.pages


def test_a_freed_location_is_used_before_a_new_page():
    pool = PagePool(3, 32)
    cells = PagedCells(pool, 1)
    first = cells.take(8)
    assert first.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    cells.give(ints([2, 5]))
    assert cells.take(2).tolist() == [2, 5]
    assert cells.pages == 2
    cells.give(ints([0, 1, 2, 3]))
    assert (cells.pages, pool.free_pages) == (1, 2)


def test_queues_with_tuples_of_different_width_share_a_pool():
    pool = PagePool(4, 64)
    narrow, wide = KeyCells(pool, 1), KeyCells(pool, 3)
    narrow.put(ints([0, 1]), ints([[10], [11]]))
    wide.put(ints([0, 1, 2]), ints([[1, 2, 3], [4, 5, 6], [7, 8, 9]]))
    assert narrow.read(ints([1, 0])).tolist() == [[11], [10]]
    assert wide.take(ints([0, 2, 1])).tolist() == [[1, 2, 3], [7, 8, 9], [4, 5, 6]]
    assert pool.free_pages == 3
    assert wide.usage.pages == 0


def test_a_full_pool_is_an_error_that_changes_nothing():
    pool = PagePool(2, 16)
    cells = KeyCells(pool, 1)
    cells.put(ints([0, 1, 2]), ints([[5], [6], [7]]))
    with pytest.raises(errors.OutOfMemory, match=r"room for 1 more cells .* takes 2\. Give"):
        cells.put(ints([0, 3, 4]), ints([[8], [9], [9]]))
    assert cells.read(ints([0, 1, 2])).tolist() == [[5], [6], [7]]
    cells.put(ints([3, 0]), ints([[1], [2]]))
    assert cells.take(ints([3, 0])).tolist() == [[1], [2]]


def test_a_key_that_does_not_wait_cannot_be_taken():
    cells = KeyCells(PagePool(1), 1)
    cells.put(ints([3]), ints([[1]]))
    cells.take(ints([3]))
    with pytest.raises(LookupError, match="key 3 has no tuple"):
        cells.take(ints([3]))
    with pytest.raises(LookupError, match="key 9 has no tuple"):
        cells.read(ints([9]))


@pytest.mark.parametrize(("pages", "page_bytes"), [(0, 64), (1, 0), (1, 12)])
def test_a_pool_that_cannot_be_is_refused(pages, page_bytes):
    with pytest.raises(ValueError, match="cannot be"):
        PagePool(pages, page_bytes)


def test_a_tuple_wider_than_a_page_is_refused():
    with pytest.raises(ValueError, match="Take larger pages"):
        PagedCells(PagePool(1, 16), 3)


def test_floats_pass_through_rows_bit_for_bit():
    values = np.array([0.1, -0.0, np.inf, np.nan])
    rows = rows_of([np.arange(4), values])
    assert floats_of(rows, 1).view(np.int64).tolist() == values.view(np.int64).tolist()
    assert rows[:, 0].tolist() == [0, 1, 2, 3]
