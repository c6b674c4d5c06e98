"""Random load shedding: as much is kept as the consumer can do, at the start, in batches and after a lull."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.kernels.append_queue import close_ranks
from windowpane.core.upstream.append import AppendQueue
from windowpane.core.upstream.change import changed
from windowpane.simulate.overload import Arrivals, arrivals, simulate, zipf


def kept_of(queue, times, batches, cost=1.0):
    """Tuples in batches, before a consumer that does what it can until the next one; which were kept."""
    kept = np.ones(len(times), np.bool_)
    free = times[0]
    for part in np.array_split(np.arange(len(times)), batches):
        now = times[part[0]]
        while len(queue) and free <= now:
            queue.take(now, limit=1)
            free += cost
        free = free if len(queue) else max(free, now)
        kept[queue.enqueue(np.zeros(len(part), np.int64), times[part], part)] = False
    return kept


def test_a_first_batch_is_not_thrown_away():
    queue = wp.UpdateQueue("k", "shed", cost=0.001, clock=lambda: 5.0)
    queue.put_batch([{"k": n} for n in range(100)])
    assert len(queue) > 30


def test_a_tuple_that_finds_nobody_waiting_is_kept_whatever_the_load():
    queue = AppendQueue("shed", cost=1.0)
    for i in range(2_000):  # five times too many tuples; the consumer takes each at once
        assert len(queue.enqueue(np.array([0]), np.array([i / 5]), np.array([i]))) == 0
        queue.take(i / 5, limit=1)


def test_a_burst_after_a_lull_is_shed_too():
    queue = AppendQueue("shed", cost=1.0)
    calm, burst = 2.0 * np.arange(1_000), 1e6 + 0.1 * np.arange(20_000)
    assert kept_of(queue, calm, 1_000).mean() == 1.0
    queue.take(1e6)
    kept = kept_of(queue, burst, 20_000)
    assert kept[:20].sum() >= 18  # there is room
    assert kept[10_000:].mean() == pytest.approx(0.1, rel=0.1)
    assert len(queue) < 64


@pytest.mark.parametrize("length", [0.5, 20.0, 3_000.0])
def test_batches_are_shed_by_what_the_consumer_can_do_between_them(length):
    rate, rounds = 4.0, max(60, round(4_000 / length))
    sizes = np.full(rounds, round(rate * length))
    times = np.repeat(length * np.arange(1, rounds + 1), sizes)
    queue = AppendQueue("shed", cost=1.0)
    kept = kept_of(queue, times, rounds)
    late = kept[len(kept) // 2 :].sum() / (length * rounds / 2)
    assert len(queue) < 64 + 2 * length
    assert 0.8 < late < 1.02


def test_the_queue_sheds_what_the_simulator_sheds():
    """The same updates, costs and random numbers: the same tuples are served, so staleness is the same."""
    updates = arrivals(zipf(20, 0.6), 3_000, seed=2)
    outcome = simulate("shed", updates, 3.0, seed=0)
    queue, free, current, at = AppendQueue("shed", cost=3.0, seed=0), -np.inf, None, 0
    while at < len(updates.ids):
        now = min(updates.times[at], free if current is not None else np.inf)
        if updates.times[at] <= now:
            queue.enqueue(updates.ids[at : at + 1], updates.times[at : at + 1], np.array([at]))
            at += 1
        if current is not None and free <= now:
            queue.deliver(current.ids, np.array([now]))
            current = None
        if current is None and len(queue):
            current, free = queue.take(now, limit=1), now + 3.0
    found = queue.staleness(updates.span)
    np.testing.assert_allclose(found.queue, outcome.staleness.queue)
    np.testing.assert_allclose(found.application, outcome.staleness.application)
    assert 0.25 < outcome.serves.sum() / 3_000 < 0.34


def test_after_a_lull_the_simulator_forgets():
    burst = np.concatenate([np.arange(100.0), 1e7 + np.arange(30_000) / 5])
    stream = Arrivals(burst, np.zeros(len(burst), np.int64), 1)
    assert simulate("shed", stream, 1.0).most_waiting < 64
    assert simulate("append", stream, 1.0).most_waiting > 20_000


@pytest.mark.parametrize("batch", [1, 100])
def test_what_was_shed_takes_no_room_while_nobody_gets(batch):
    queue = AppendQueue("shed", cost=1.0)
    for i in range(3_000):
        queue.enqueue(np.arange(batch) % 7, np.full(batch, 0.1 * i), np.arange(batch))
    assert len(queue) < 80
    assert len(queue.views()["line ids"]) <= len(queue._line.ids) <= 4 * (2 * 80 + batch)


STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.25, 1.0, 9.0]),
        st.lists(st.integers(0, 3), max_size=12),
        st.integers(0, 4),
        st.booleans(),
    ),
    max_size=40,
)


@given(steps=STEPS)
@pytest.mark.parametrize("policy", ["shed", "append"])
def test_a_line_without_what_was_shed_is_as_good_as_the_whole(policy, steps):
    whole, short = AppendQueue(policy, cost=1.0), AppendQueue(policy, cost=1.0)
    whole._make_room(4, 4_000)  # so that its line is never closed up
    short._make_room(4, 1)
    now, row, held = 0.0, 0, np.empty(0, np.int64)
    for gap, ids, limit, delivers in steps:
        now, rows = now + gap, row + np.arange(len(ids))
        row += len(ids)
        close_ranks(short._line, short._last)
        found = [
            queue.enqueue(np.array(ids, np.int64), np.full(len(ids), now), rows) for queue in (whole, short)
        ]
        assert found[0].tolist() == found[1].tolist()
        if delivers:
            for queue in (whole, short):
                queue.deliver(held, np.full(len(held), now))
            held = held[:0]
        taken = [queue.take(now, limit=limit) for queue in (whole, short)]
        assert taken[0].rows.tolist() == taken[1].rows.tolist()
        held = np.concatenate([held, taken[0].ids])
        assert whole.idle(now).tolist() == short.idle(now).tolist()
        assert whole.waiting_rows().tolist() == short.waiting_rows().tolist()
        assert whole.oldest() == short.oldest()
        need_same_staleness(whole, short, now + 1.0)
    for queue in (whole, short):
        queue.take(now + 2.0)
    need_same_staleness(whole, short, now + 5.0)


def need_same_staleness(one, other, now):
    a, b = one.staleness(now), other.staleness(now)
    assert a.queue.tolist() == b.queue.tolist()
    assert a.application.tolist() == b.application.tolist()
    changes = [changed(queue, "in_place", (np.empty(0, np.int64),) * 2).arrays() for queue in (one, other)]
    assert all(changes[0][name].tolist() == changes[1][name].tolist() for name in ("pending", "first"))
