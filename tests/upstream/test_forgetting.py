"""Keys that were idle for long are forgotten; nothing that waits is, and the averages count all keys."""

import math
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.kernels.update_queue import arrive_many
from windowpane.core.upstream.append import queue_of
from windowpane.core.upstream.queue import new_queue

POLICIES = ["append", "shed", "fifo", "in_place", "linecutting", "freshest", "switch"]


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("policy", POLICIES)
def test_a_stream_of_ever_new_keys_does_not_grow(policy):
    clock = Clock()
    queue = wp.UpdateQueue("k", policy, clock=clock, forget=100.0)
    for minute in range(60):
        queue.put_batch(pa.table({"k": np.arange(500) + 500 * minute}))
        while len(queue):
            queue.get_batch(500)
        queue.done()
        clock.now += 60.0
        assert len(queue.staleness().keys) <= 5_000
        assert len(queue._queue._queue.keys) <= 10_000
        assert len(queue._waiting._items) == 0
    freshness = queue.staleness()
    assert len(freshness.keys) + freshness.forgotten[0] == 60 * 500 == freshness.puts


def test_a_key_whose_last_update_was_shed_is_stale_until_it_is_forgotten():
    clock = Clock()
    queue = wp.UpdateQueue("k", "shed", clock=clock, forget=100.0)
    queue.put_batch([{"k": n} for n in range(300)])
    stale = sorted(set(range(300)) - {row["k"] for row in queue.get_batch(300)})
    assert len(stale) > 100
    queue.done()
    clock.now += 80.0
    assert queue.staleness().of(stale[0]) == pytest.approx(80.0 / 2)
    for _ in range(2):
        clock.now += 60.0
        queue.put({"k": "other"})
        queue.get()
        queue.done()
    freshness = queue.staleness()
    assert freshness.keys == ("other",)
    # Until it was forgotten at 140 a key was half of that behind on average, so less over the time until now.
    expected = 140.0 / 2 * 140.0 / 200.0 * len(stale) / 301
    assert freshness.average_application == pytest.approx(expected)
    assert freshness.puts == freshness.gets + freshness.lost == 302
    queue.put({"k": stale[0]})  # it comes back as any key
    assert queue.get() == {"k": stale[0]}


def test_a_key_of_which_one_update_is_processed_and_a_later_one_was_shed_is_known():
    clock = Clock()
    queue = wp.UpdateQueue("k", "shed", clock=clock, forget=10.0)
    queue.put_batch([{"k": "a"}] * 300)
    in_hand = queue.get_batch(300)
    assert 0 < len(in_hand) < 300
    for _ in range(3):
        clock.now += 60.0
        queue.put({"k": "other"})
    assert queue.staleness().keys == ("a", "other")


@pytest.mark.parametrize("policy", ["append", "in_place", "freshest"])
def test_what_waits_or_is_being_processed_is_not_forgotten(policy):
    clock = Clock()
    queue = wp.UpdateQueue("k", policy, clock=clock, forget=10.0)
    queue.put_batch([{"k": n} for n in range(2_000)])
    got = queue.get_batch(1_500)
    queue.done()
    in_hand = queue.get_batch(300)
    clock.now += 1_000.0
    queue.put({"k": "new"})
    queue.put({"k": "again"})
    assert len(queue.staleness().keys) == 300 + 200 + 2  # those in hand, those that wait, and two
    queue.close()
    keys = [row["k"] for row in [*got, *in_hand, *queue]]
    assert sorted(map(str, keys)) == sorted(map(str, [*range(2_000), "new", "again"]))
    freshness = queue.staleness()
    assert freshness.keys[-1] == "again"
    assert freshness.forgotten[0] == 1_500


def test_a_forgotten_key_counts_in_the_averages():
    clock = Clock()
    queue = wp.UpdateQueue("k", "in_place", clock=clock, forget=5.0)
    queue.put({"k": "a"})
    clock.now += 4
    queue.get()
    queue.done()
    clock.now += 12
    queue.put({"k": "b"})
    clock.now += 4
    freshness = queue.staleness()
    assert freshness.keys == ("b",)
    assert freshness.forgotten == (1, pytest.approx(8 / 20), pytest.approx(8 / 20))
    assert freshness.average_application == pytest.approx((8 + 8) / 20 / 2)
    assert freshness.average_queue == freshness.average_application


moves = st.lists(
    st.one_of(st.lists(st.integers(0, 8), min_size=1, max_size=5), st.integers(0, 4), st.just("forget")),
    min_size=1,
    max_size=20,
)


@pytest.mark.parametrize("policy", ["append", "fifo", "in_place", "linecutting"])
@given(moves=moves)
@example(moves=[[2], [0, 1, 3, 4, 5], 1, "forget", [2], 3, [2]])
def test_a_queue_that_forgets_serves_as_one_that_does_not(policy, moves):
    whole, lossy = queue_of(policy, cost=0.5), queue_of(policy, cost=0.5)
    ids, now, row = {}, 0.0, 0
    for move in moves:
        now += 1.0
        if isinstance(move, list):
            rows = np.arange(row, row + len(move))
            row += len(move)
            mine = np.array([ids.setdefault(key, len(ids)) for key in move])
            whole.enqueue(np.array(move), np.full(len(move), now), rows)
            lossy.enqueue(mine, np.full(len(move), now), rows)
        elif move == "forget":
            idle = lossy.idle(now - 2.0)
            if len(idle):
                lossy.keep(~idle, now)
                left = [key for key, number in ids.items() if not idle[number]]
                ids = {key: number for number, key in enumerate(left)}
        else:
            taken = [queue.take(now, limit=move) for queue in (whole, lossy)]
            if policy != "linecutting":
                assert taken[0].rows.tolist() == taken[1].rows.tolist()
            for queue, some in zip((whole, lossy), taken, strict=True):
                queue.deliver(some.ids, np.full(len(some), now))
        if policy != "linecutting":  # who is served goes by how often keys updated, and who waits by that
            assert len(whole) == len(lossy)
    known, seen = lossy.staleness(now + 1), whole.staleness(now + 1)
    if policy != "linecutting":
        total = known.application.sum() + known.forgotten[2]
        assert total == pytest.approx(seen.application.sum(), abs=1e-9)


def test_nan_within_a_key_of_several_columns_is_one_key():
    queue = wp.UpdateQueue(["a", "b"], "in_place")
    for n in range(3):
        queue.put_batch(pa.table({"a": [float("nan")], "b": ["x"], "n": [n]}))
        queue.put({"a": math.nan * 1, "b": "x", "n": n})
    by_function = wp.UpdateQueue(lambda row: (("x", row * float("nan")), 1), "in_place")
    by_function.put_batch([1.0, 2.0])
    assert len(queue) == 1
    assert len(by_function) == 1
    queue.close()
    assert [row["n"] for row in queue] == [2]


def test_a_put_does_not_look_at_every_key():
    """No array over all keys is made for a batch; as Python, since Numba's memory is not traced."""
    plain = getattr(arrive_many, "py_func", arrive_many)
    queue = new_queue(400_000, 1.0, 0.0)
    one, when = np.array([7]), np.array([1.0])
    plain(queue, 1, one, when, one)
    tracemalloc.start()
    plain(queue, 1, one, when, one)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_keys_of_a_put_that_failed_are_no_keys():
    clock = Clock()
    queue = wp.UpdateQueue("k", "in_place", clock=clock, forget=50.0)
    beyond = pa.table({"k": [1, 2], "t": pa.array([2**40, 0], pa.timestamp("s"))})  # no time that Python has
    with pytest.raises((ValueError, OverflowError)):
        queue.put_batch(beyond)
    assert queue.staleness().keys == ()
    for key in (2, 3):
        queue.put({"k": key})
        queue.get()
        queue.done()
        clock.now += 100.0
    assert queue.staleness().keys == (3,)
