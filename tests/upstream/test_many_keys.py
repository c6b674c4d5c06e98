"""What serving and putting cost does not grow with the keys that are known."""

import tracemalloc
from functools import cache
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.kernels.zones import HELD
from windowpane.core.keys import KeyIndex
from windowpane.core.upstream.append import AppendQueue, queue_of
from windowpane.core.upstream.memory import PagePool
from windowpane.core.upstream.windows import UpdateWindow, WindowQueue

FEW, MANY = 1_000, 200_000
SLACK = 4_000
"""Bytes; an array of one bit for each of MANY keys would be more."""


def peak(step):
    """The most bytes that a step had at once; an earlier one has compiled the loops."""
    step()
    tracemalloc.start()
    step()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def known(policy, keys):
    """A queue that knows so many keys, of which ten wait."""
    queue = queue_of(policy)
    queue.enqueue(np.arange(keys), np.full(keys, 1.0))
    taken = queue.take(2.0, limit=keys - 10)
    queue.deliver(taken.ids, taken.times)
    queue.learn(taken.ids[::2], np.full(len(taken.ids[::2]), 0.5))
    return queue


@pytest.mark.parametrize("policy", ["append", "shed", "fifo", "in_place", "linecutting", "freshest"])
@pytest.mark.parametrize("budget", [np.inf, 5.0])
def test_to_put_and_take_one_tuple_makes_no_array_of_all_keys(policy, budget):
    def step_of(queue):
        def step():
            queue.enqueue(np.array([3]), np.array([3.0]))
            assert len(queue.take(3.0, limit=1, budget=budget)) == 1

        return step

    few, many = (peak(step_of(known(policy, keys))) for keys in (FEW, MANY))
    assert many < few + SLACK


@pytest.mark.parametrize("commit", ["lazy", "eager"])
def test_to_serve_a_window_looks_at_no_key_that_does_not_wait(commit):
    """A wrong count of a key that does not wait would ask for more memory than there is."""
    queue = WindowQueue(UpdateWindow(2, 2, commit), PagePool(64, 4096), 1)
    queue.grow(MANY)
    queue.enqueue(np.array([5, 5, 7]), np.zeros((3, 1), np.int64), np.array([1.0, 1.0, 1.0]))
    queue.machine.memory.chains[MANY - 1, HELD] = 2**50
    assert queue.serve(2.0, 1).tuples >= 1


def test_rows_of_one_side_of_a_join_are_forgotten_without_a_look_at_the_other():
    def step_of(keys):
        join = wp.Updates("k", "t").join(within=3)
        right = pa.table({"k": np.arange(keys), "t": np.zeros(keys, np.int64)})
        join.push(right.slice(0, 0), right)
        times = count(10, 5)

        def step():
            left = {"k": np.zeros(8, np.int64), "t": np.array([next(times) for _ in range(8)])}
            join.push(pa.table(left), right.slice(0, 0))
            assert len(join._rows[0]) <= 2

        return step

    few, many = (peak(step_of(keys)) for keys in (FEW, MANY))
    assert many < few + SLACK


def test_a_line_that_moves_to_the_front_knows_the_last_tuple_of_each_key():
    queue, plain = AppendQueue(), []
    rng = np.random.default_rng(1)
    row = 0
    for now in range(400):
        ids = rng.integers(0, 6, int(rng.integers(0, 5)))
        rows = np.arange(row, row + len(ids))
        row += len(ids)
        queue.enqueue(ids, np.full(len(ids), float(now)), rows)
        plain += zip(ids.tolist(), rows.tolist(), strict=True)
        count = int(rng.integers(0, 5))
        taken = queue.take(float(now), limit=count)
        assert list(zip(taken.ids.tolist(), taken.rows.tolist(), strict=True)) == plain[:count]
        del plain[:count]
        newest = [column.tolist() for column in queue.newest()]
        assert dict(zip(*newest, strict=True)) == dict(plain)


@cache
def index_of(keys):
    """Keys that came in batches, so that their values lie in pieces of several sizes."""
    index = KeyIndex(("k",), (pa.string(),))
    for at in range(0, keys, 300):
        index.encode([pa.array([f"key {i}" for i in range(at, min(at + 300, keys))])])
    return index


@pytest.mark.parametrize("ids", [[5], [19_999], [10_000, 5, 19_999, 5]], ids=str)
def test_the_values_of_few_keys_are_read_without_a_copy_of_all(ids):
    index = index_of(20_000)
    usual, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        (values,) = index.values(np.array(ids))
        found = values.to_pylist()
        del values  # before the pool that it is in
    finally:
        pa.set_memory_pool(usual)
    assert found == [f"key {i}" for i in ids]
    assert pool.max_memory() < SLACK


@given(ids=st.lists(st.integers(0, 8_999), max_size=40))
def test_the_values_of_keys_come_in_the_order_of_their_ids(ids):
    (found,) = index_of(9_000).values(np.array(ids, np.int64))
    assert found.type == pa.string()
    assert found.to_pylist() == [f"key {i}" for i in ids]
