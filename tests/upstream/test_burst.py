"""Row 22 of the reliability matrix: ten times the load for 60 s."""

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.simulate.overload import phases, simulate, zipf

KEYS, RATE, COST = 200, 100.0, 0.008  # at rest the consumer is 80% busy
REST, BURST, AFTER = 200.0, 60.0, 260.0


@pytest.mark.parametrize("policy", ["fifo", "in_place", "linecutting", "freshest"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_burst_leaves_nothing_behind(policy, seed):
    # The same updates before and after, with a burst between them and without.
    updates, calm = (
        phases(zipf(KEYS, 0.9), [(REST, RATE), (BURST, rate), (AFTER, RATE)], seed=seed)
        for rate in (10 * RATE, RATE)
    )

    def average(stream, begin, end):
        return simulate(policy, stream, COST, measured=begin, until=end).staleness.average_application

    over = REST + BURST
    assert average(updates, REST, over) > 2 * average(calm, REST, over)  # it was a burst
    after = over + 60, over + AFTER
    assert average(updates, *after) <= 1.02 * average(calm, *after)  # and it is forgotten
    outcome = simulate(policy, updates, COST, until=updates.span + KEYS * COST + 1)
    assert outcome.most_waiting <= len(np.unique(updates.ids))
    assert outcome.covered.all()
    assert outcome.updates.sum() == len(updates.ids)


@pytest.mark.parametrize("behind", [0.5, 10.0])
def test_a_queue_that_switches_holds_no_more_than_its_limit_or_its_keys(behind):
    updates = phases(zipf(KEYS, 0.9), [(REST, RATE), (BURST, 10 * RATE), (AFTER, RATE)], seed=1)
    over = REST + BURST
    end = updates.span + KEYS * COST + behind + 1
    outcome = simulate("switch", updates, COST, until=end, behind=behind)
    assert behind / COST - 2 <= outcome.most_waiting or behind / COST < KEYS
    assert outcome.most_waiting <= max(len(np.unique(updates.ids)), behind / COST + 1)
    assert outcome.covered.all()
    later = simulate("switch", updates, COST, measured=over + 60, until=over + AFTER, behind=behind)
    assert later.staleness.average_application < 1.0  # all tuples are kept again, and none waits long


def test_an_append_queue_is_still_behind_after_60_s():
    updates = phases(zipf(KEYS, 0.9), [(REST, RATE), (BURST, 10 * RATE), (AFTER, RATE)], seed=1)
    over = REST + BURST
    later = simulate("append", updates, COST, measured=over + 60, until=over + 260)
    assert later.staleness.average_application > 60
    assert later.most_waiting > 100 * KEYS


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def before_a_consumer(queue, clock, updates, cost):
    """The updates before one consumer until all is served; the most that waited, what came out, and when.

    Staleness summed over keys and time is noted at the given moments.
    """
    most, got, current, free, areas = 0, {}, None, np.inf, {}
    moments = [REST, REST + BURST, REST + BURST + 60.0, updates.span]
    events = sorted(
        [*((when, 0, at) for at, when in enumerate(updates.times.tolist())), *((m, 1, 0) for m in moments)]
    )
    at = 0
    while at < len(events) or current is not None or len(queue):
        arrival = events[at][0] if at < len(events) else np.inf
        clock.now = min(arrival, free)
        if arrival <= clock.now:
            _, mark, number = events[at]
            if mark:
                found = queue.staleness()
                areas[clock.now] = found.application.sum() * clock.now
            else:
                queue.put({"k": int(updates.ids[number]), "n": number})
            most, at = max(most, len(queue)), at + 1
        if free <= clock.now:
            queue.done()
            current, free = None, np.inf
        if current is None and len(queue):
            current = queue.get()
            assert got.get(current["k"], -1) < current["n"]
            got[current["k"]] = current["n"]
            free = clock.now + cost
    return most, got, areas


@pytest.mark.parametrize(
    ("policy", "schema"),
    [
        *((policy, None) for policy in ("fifo", "in_place", "linecutting", "freshest")),
        ("freshest", pa.schema({"k": pa.int64(), "n": pa.int64()})),
    ],
    ids=["fifo", "in_place", "linecutting", "freshest", "freshest in pages"],
)
def test_a_burst_leaves_nothing_behind_in_a_live_queue(policy, schema):
    rate, cost, keys = RATE / 40, COST * 40, KEYS // 10  # as above, with fewer updates
    averages = {}
    for name, factor in (("burst", 10), ("calm", 1)):
        updates = phases(zipf(keys, 0.9), [(REST, rate), (BURST, factor * rate), (AFTER, rate)], seed=1)
        clock = Clock()
        queue = wp.UpdateQueue("k", policy, cost=cost, clock=clock, schema=schema)
        most, got, areas = before_a_consumer(queue, clock, updates, cost)
        assert most <= len(np.unique(updates.ids))
        assert got == {int(key): number for number, key in enumerate(updates.ids)}
        rest, over, later, end = areas
        averages[name] = [(areas[b] - areas[a]) / (b - a) / keys for a, b in ((rest, over), (later, end))]
    assert averages["burst"][0] > 2 * averages["calm"][0]  # it was a burst
    assert averages["burst"][1] <= 1.05 * averages["calm"][1]  # and it is forgotten
