"""The append queue against the definitions."""

import numpy as np
import pytest
from hypothesis import given

from tests.upstream import model
from tests.upstream.test_staleness import streams
from windowpane.core.upstream.append import AppendQueue, queue_of
from windowpane.core.upstream.queue import KeyQueue
from windowpane.simulate.overload import arrivals, simulate, zipf


@given(stream=streams())
def test_tuples_leave_in_arrival_order_and_staleness_is_as_defined(stream):
    updates, costs = stream
    times, ids = updates.times.tolist(), updates.ids.tolist()
    until = updates.span + 50.0
    trace = model.run("append", times, ids, costs, until)
    queue, at, done = AppendQueue(), 0, []
    for when, _, _ in trace.serves:
        arrived = int(np.searchsorted(updates.times, when, side="right"))
        for i in range(at, arrived):
            queue.enqueue(updates.ids[i : i + 1], updates.times[i : i + 1], np.array([i]))
        at = arrived
        if done:
            queue.deliver(*done)
        taken = queue.take(when, limit=1)
        done = (taken.ids, np.array([when + costs[taken.ids[0]]]))
        assert taken.rows.tolist() == [next(n for t, _, n in trace.serves if t == when)]
    if done and done[1][0] <= until:
        queue.deliver(*done)
    if at < len(ids):
        queue.enqueue(updates.ids[at:], updates.times[at:])
    for key in range(queue.keys):
        queued = model.staleness(trace, times, ids, key, until, queue=True)
        assert queue.staleness(until).queue[key] == pytest.approx(queued, abs=1e-9)


@pytest.mark.parametrize("policy", ["append", "shed"])
def test_what_is_not_shed_leaves_once_and_in_order(policy):
    updates = arrivals(zipf(20, 0.6), 6_000, seed=2)
    queue, got, shed = AppendQueue(policy, cost=2.0), [], []
    for at in range(0, 6_000, 100):
        now = updates.times[at + 99]
        rows = np.arange(at, at + 100)
        shed += queue.enqueue(updates.ids[rows], updates.times[rows], rows).tolist()
        taken = queue.take(now, budget=100.0)
        assert taken.times.tolist() == [now + 2.0 * i for i in range(len(taken))]
        queue.deliver(taken.ids, taken.times + 2.0)
        got += taken.rows.tolist()
    got += queue.take(now + 100.0).rows.tolist()
    assert sorted(got + shed) == list(range(6_000))
    assert got == sorted(got)
    later = sum(row >= 3_000 for row in shed)  # once the load is known
    # Half is too much; what waits for the consumer's next turn takes some more room.
    assert 0.5 < later / 3_000 < 0.7 if policy == "shed" else later == 0
    assert queue.staleness(now).average_queue > 0


def test_shedding_bounds_what_waits():
    updates = arrivals(zipf(20, 0.6), 50_000, seed=2)
    assert simulate("append", updates, 3.0).most_waiting > 30_000
    assert simulate("shed", updates, 3.0).most_waiting < 500


def test_every_policy_has_its_queue():
    assert isinstance(queue_of("shed"), AppendQueue)
    assert isinstance(queue_of("in_place"), KeyQueue)
