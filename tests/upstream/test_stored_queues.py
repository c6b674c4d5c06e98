"""Queues go on from their arrays as if nothing had happened."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.upstream.append import AppendQueue, queue_of
from windowpane.core.upstream.queue import KeyQueue

moves = st.lists(
    st.one_of(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(0, 4)), min_size=1, max_size=14
)


@pytest.mark.parametrize("policy", ["append", "fifo", "in_place", "linecutting", "freshest"])
@given(moves=moves, at=st.integers(0, 13))
def test_a_stored_queue_serves_as_the_other_does(policy, moves, at):
    queue = other = queue_of(policy, cost=0.5)
    now, row = 0.0, 0
    for i, move in enumerate(moves):
        now += 1.0
        if isinstance(move, list):
            ids, rows = np.array(move), np.arange(row, row + len(move))
            row += len(move)
            for each in {id(q): q for q in (queue, other)}.values():
                each.enqueue(ids, np.full(len(ids), now), rows)
        else:
            taken = [each.take(now, limit=move) for each in {id(q): q for q in (queue, other)}.values()]
            assert all(np.array_equal(taken[0].rows, t.rows) for t in taken)
            for each in {id(q): q for q in (queue, other)}.values():
                each.deliver(taken[0].ids, np.full(len(taken[0]), now + 0.5))
                each.learn(taken[0].ids, np.full(len(taken[0]), 0.5))
        if i == at:
            kind = AppendQueue if policy == "append" else KeyQueue
            other = kind.restore(policy, queue.arrays())
        assert np.array_equal(np.sort(queue.waiting_rows()), np.sort(other.waiting_rows()))
        assert queue.oldest() == other.oldest()
    np.testing.assert_array_equal(queue.staleness(now + 1).application, other.staleness(now + 1).application)
