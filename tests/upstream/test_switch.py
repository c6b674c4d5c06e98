"""A queue that switches by load: all tuples while the consumer keeps up, the newest of each key while not."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import windowpane as wp
from tests.upstream import model
from tests.upstream.test_staleness import streams
from windowpane.core.upstream.append import AppendQueue
from windowpane.core.upstream.change import Load, wanted
from windowpane.core.upstream.queue import KeyQueue
from windowpane.errors import BadQuery, OutOfMemory
from windowpane.simulate.overload import Arrivals, arrivals, phases, simulate, zipf


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def played(updates, costs, *, behind, until, **options):
    """The updates before one consumer, in virtual time; the queue, what happened, its policies in order."""
    clock, trace, policies = Clock(), model.Trace(), []
    queue = wp.UpdateQueue("k", "switch", cost=float(np.mean(costs)), behind=behind, clock=clock, **options)
    current, free, at = None, np.inf, 0
    while True:
        arrival = updates.times[at] if at < len(updates.times) else np.inf
        clock.now = min(arrival, free)
        if clock.now > until:
            clock.now = until
            return queue, trace, policies
        if arrival <= clock.now:
            queue.put({"k": int(updates.ids[at]), "n": at})
            at += 1
            policies += [queue.policy.value] if queue.policy.value not in policies[-1:] else []
            if at < len(updates.times) and updates.times[at] == clock.now:
                continue
        if current is not None and free <= clock.now:
            queue.done()
            trace.deliveries.append((clock.now, current["k"], current["n"]))
            current, free = None, np.inf
        if current is None and len(queue):
            current = queue.get()
            trace.serves.append((clock.now, current["k"], current["n"]))
            free = clock.now + costs[current["k"]]


SERVED_SINCE = Arrivals(np.array([1.0, 1.25, 1.5, *[2.25] * 4]), np.zeros(7, np.int64), 1)
"""When only the newest is kept, the key has been served since its first tuple that waits."""


@given(stream=streams(), behind=st.sampled_from([0.5, 3.0, 20.0]))
@example(stream=(SERVED_SINCE, [1.0]), behind=3.0)
def test_staleness_is_as_defined_across_switches(stream, behind):
    updates, costs = stream
    times, ids = updates.times.tolist(), updates.ids.tolist()
    until = updates.span + 3.3
    queue, trace, _ = played(updates, costs, behind=behind, until=until)
    found = queue.staleness()
    for key in set(ids):
        application = model.staleness(trace, times, ids, key, until, queue=False)
        queued = model.staleness(trace, times, ids, key, until, queue=True)
        assert found.of(key) == pytest.approx(application, abs=1e-9)
        assert found.queue[found.keys.index(key)] == pytest.approx(queued, abs=1e-9)
    assert found.gets + found.lost + found.waiting == found.puts
    for key in set(ids):  # never an older one after a newer one
        own = [number for _, k, number in trace.serves if k == key]
        assert own == sorted(set(own))


@pytest.mark.parametrize(
    "schema", [None, pa.schema({"k": pa.int64(), "n": pa.int64()})], ids=["objects", "pages"]
)
def test_it_loses_nothing_until_the_consumer_falls_behind_and_again_once_it_has_caught_up(schema):
    # 0.7 of what the consumer can do, then three times too much for a while, then 0.7 again.
    updates = phases(zipf(20, 0.6), [(400.0, 0.7), (200.0, 3.0), (600.0, 0.7)], seed=4)
    queue, trace, policies = played(
        updates, [1.0] * 20, behind=16.0, until=updates.span + 40.0, schema=schema
    )
    assert policies == ["append", "freshest", "append"]
    served = {number for _, _, number in trace.serves}
    lost = updates.times[sorted(set(range(len(updates.ids))) - served)]
    assert len(lost) == queue.staleness().lost > 300
    # Lost are tuples of the burst, and a few that came before the measured load was below 1 again.
    assert lost.min() > 390.0
    assert lost.max() < 600.0 + 4 * 16.0
    last = {int(key): number for number, key in enumerate(updates.ids)}
    assert {key: number for _, key, number in trace.serves} == last


def test_what_waits_is_bounded_by_the_work_and_then_by_the_keys():
    clock = Clock()
    queue = wp.UpdateQueue("k", "switch", cost=0.01, behind=1.0, clock=clock)
    queue.put_batch([{"k": n % 7, "n": n} for n in range(100)])
    assert (queue.policy, len(queue)) == ("append", 100)
    queue.put({"k": 0, "n": 100})
    assert (queue.policy, len(queue)) == ("freshest", 7)
    assert {row["k"]: row["n"] for row in queue.get_batch(9)} == {0: 100} | {
        n % 7: n for n in range(93, 100) if n % 7
    }
    assert queue.staleness().lost == 94


def test_the_simulator_switches_as_the_queue_does():
    # Times and costs in quarters, so that sums of them are exact.
    drawn = phases(zipf(12, 0.6), [(200.0, 0.6), (150.0, 2.0), (300.0, 0.6)], seed=2)
    updates = Arrivals(np.round(drawn.times * 4.0) / 4.0, drawn.ids, drawn.keys)
    queue, trace, policies = played(updates, [1.0] * 12, behind=8.0, until=updates.span)
    outcome = simulate("switch", updates, 1.0, behind=8.0)
    assert policies == ["append", "freshest", "append"]
    found = queue.staleness()
    order = [found.keys.index(key) for key in range(12)]
    assert outcome.staleness.application.tolist() == pytest.approx(found.application[order].tolist())
    assert outcome.staleness.queue.tolist() == pytest.approx(found.queue[order].tolist())
    assert outcome.serves.sum() == len(trace.serves)


@pytest.mark.parametrize("keys", [1, 3, 10, 100])
def test_below_a_load_of_1_it_is_an_append_queue_and_above_nearly_as_fresh_as_freshest(keys):
    updates = arrivals(zipf(keys, 0.6), 20_000, seed=1)
    for load, other, factor in ((0.8, "append", 1.0), (2.0, "freshest", 1.1), (5.0, "freshest", 1.1)):
        found, best = (simulate(p, updates, load, behind=100.0) for p in ("switch", other))
        assert found.staleness.average_application <= factor * best.staleness.average_application
        if other == "append":
            assert found.serves.sum() == best.serves.sum()
        else:
            assert found.most_waiting <= max(100.0 / load, keys)


def test_the_rule_in_both_directions():
    line, newest = AppendQueue(), KeyQueue()
    assert wanted(line, behind=2.0, cost=1.0, load=9.0) == "append"  # whatever comes, nothing waits
    line.enqueue(np.zeros(3, np.int64), np.zeros(3))
    assert wanted(line, behind=3.0, cost=1.0) == "append"
    assert wanted(line, behind=2.0, cost=1.0) == "freshest"
    assert wanted(newest, behind=2.0, cost=1.0, load=0.9) == "append"
    assert wanted(newest, behind=2.0, cost=1.0, load=1.0) == "freshest"
    newest.enqueue(np.zeros(1, np.int64), np.zeros(1))
    assert wanted(newest, behind=2.0, cost=1.0, load=0.1) == "freshest"


def test_the_load_is_that_of_late():
    load = Load(10.0, 0.0)
    for now in range(1, 200):
        found = load.add(3.0, float(now))
    assert found == pytest.approx(3.0, rel=0.1)
    assert load.add(0.0, 230.0) < 0.2


def test_a_span_of_nothing_is_refused():
    with pytest.raises(
        BadQuery, match=r"behind=0: give the seconds of work that may wait, or a text .* more than 0\."
    ):
        wp.UpdateQueue("k", "switch", behind=0)


PAIRS = pa.schema({"k": pa.int64(), "n": pa.int64()})


@pytest.mark.parametrize("behind", [0.1, 1e9])
@pytest.mark.parametrize("before", [0, 200])
def test_where_memory_is_short_only_the_newest_stays(behind, before):
    queue = wp.UpdateQueue("k", "switch", schema=PAIRS, memory=4096, behind=behind, cost=1e-4, clock=Clock())
    room = queue.usage.page_tuples
    queue.put_batch(pa.table({"k": np.arange(before) % 2, "n": np.arange(before)}))
    assert (queue.policy, len(queue)) == ("append", before)
    queue.put_batch(pa.table({"k": np.full(300, 7), "n": np.arange(300)}))
    assert (queue.policy, len(queue)) == ("freshest", 3 if before else 1)
    found = queue.staleness()
    assert (found.puts, found.waiting + found.lost) == (before + 300, before + 300)
    wanted = {0: before - 2, 1: before - 1, 7: 299} if before else {7: 299}
    assert {row["k"]: row["n"] for row in queue.get_batch(9)} == wanted
    queue.put_batch(pa.table({"k": np.arange(room), "n": np.arange(room)}))
    assert len(queue) == room


def test_where_not_even_the_newest_has_room_nothing_changes():
    queue = wp.UpdateQueue("k", "switch", schema=PAIRS, memory=4096, behind=1e9, clock=Clock())
    room = queue.usage.page_tuples
    rows = pa.table({"k": np.arange(room) % 7, "n": np.arange(room)})
    queue.put_batch(rows)
    with pytest.raises(OutOfMemory, match="more cells of"):
        queue.put_batch(pa.table({"k": np.arange(7, room + 1), "n": np.arange(7, room + 1)}))
    found = queue.staleness()
    assert (queue.policy, found.puts, found.lost, len(found.keys)) == ("append", room, 0, 7)
    assert queue.get_table(room).equals(rows)
    queue.put_batch(rows)
    queue.put_batch(pa.table({"k": np.arange(7, room), "n": np.arange(7, room)}))
    assert (queue.policy, len(queue)) == ("freshest", room)
