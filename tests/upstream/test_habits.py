"""The habits of keys stay numbers, however long a stream lasts and however regular it is."""

import numpy as np
import pytest

from windowpane.core.kernels.habits import _MOST, ALL, HAZARD, LEFT, SEEN, new_habits, notice
from windowpane.core.upstream.queue import KeyQueue


@pytest.mark.parametrize("gap", [0.0, 1.0, 3.0, 1e6])
def test_a_regular_stream_of_any_length_leaves_no_infinite_habit(gap):
    habits = new_habits()
    for _ in range(1_200):  # each time half of what was counted is forgotten, after 8,192 updates that is
        habits[ALL, SEEN] = _MOST - 1
        notice(habits, gap)
    assert np.isfinite(habits).all()
    assert (habits[HAZARD : LEFT + 1] > 0).all()


def test_no_key_starves_after_such_a_stream():
    arrays = KeyQueue(cost=1.0).arrays()
    for _ in range(1_200):
        arrays["habits"][ALL, SEEN] = _MOST - 1
        notice(arrays["habits"], 1.0)
    queue = KeyQueue.restore("freshest", arrays)
    for now in range(40):
        queue.enqueue(np.arange(10), np.full(10, float(now)))
    queue.enqueue(np.array([10]), np.array([40.0]))
    taken = queue.take(500.0)
    assert sorted(taken.ids.tolist()) == list(range(11))
    assert np.isfinite(queue._queue.ranks["square"]).all()
