"""What is kept: partials where they suffice, tuples only while they are unsettled, keys only while needed."""

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64(), "v": pa.int64()})


def batch(ts, k=0, v=1):
    n = len(ts)
    columns = [np.asarray(ts, np.int64), np.broadcast_to(k, n), np.broadcast_to(v, n)]
    return pa.RecordBatch.from_arrays([pa.array(np.array(c, np.int64)) for c in columns], schema=SCHEMA)


def start(window, *aggregates, keys=("k",), **options):
    options = {"delay": 100, **options}
    return wp.stream(time="ts", keys=keys, schema=SCHEMA, **options).window(window).agg(*aggregates).start()


RESIDUE = 500_000
"""Bytes that may be held where nothing is needed: what a step does not find worth forgetting."""
PARTIALS = [wp.sliding(100, 10), wp.tumbling(7), wp.landmark(10), wp.cumulative(10, 100), wp.session(3)]


@pytest.mark.parametrize("lateness", [0, 200])
@pytest.mark.parametrize("window", PARTIALS, ids=repr)
def test_state_does_not_grow_with_the_tuples_of_a_slice(window, lateness):
    def held(copies):
        runner = start(window, wp.sum("v"), wp.max("v"), wp.variance("v"), wp.last("v"), lateness=lateness)
        rng = np.random.default_rng(1)
        for low in range(0, 1000, 50):
            ts = np.repeat(np.arange(low, low + 50), 4 * copies)
            runner.push(batch(rng.permutation(ts), k=np.tile(np.arange(4), len(ts) // 4), v=3))
        return runner.state_bytes

    # same times and keys, ten times the tuples
    assert held(10) <= held(1)


def test_positions_keep_only_unsettled_tuples():
    runner = start(wp.rows(50, slide=10), wp.sum("v"), keys=())
    rng, sizes, seen = np.random.default_rng(2), [], []
    for low in range(0, 20_000, 500):
        ts = low + rng.permutation(500)
        ts[::5] -= np.minimum(rng.integers(0, 50, len(ts[::5])), ts[::5])
        ts = ts[ts >= runner.bound]
        runner.push(batch(np.sort(ts)))
        seen += ts.tolist()
        pending = runner.operator.lanes[0].lane.pending
        assert len(pending) == sum(t >= runner.bound for t in seen)
        sizes.append(runner.state_bytes)
    assert max(sizes[20:]) <= 1.5 * max(sizes[:20])


def test_positions_in_order_keep_no_tuples_but_those_of_the_latest_time():
    runner = start(wp.rows(50, slide=10), wp.sum("v"), keys=(), delay=None)
    for low in range(0, 5000, 500):
        runner.push(batch(np.arange(low, low + 500)))
        assert len(runner.operator.lanes[0].lane.pending) == 1


@pytest.mark.parametrize(
    "window",
    [wp.per_row(100), wp.last_rows(10, 50), wp.sliding(100, 10), wp.session(5), wp.rows(10)],
    ids=repr,
)
def test_state_stays_level_however_long_the_stream(window):
    runner = start(window, wp.sum("v"), wp.median("v"))
    sizes = []
    for low in range(0, 40_000, 400):
        runner.push(batch(np.arange(low, low + 400), k=np.arange(400) % 3))
        sizes.append(runner.state_bytes)
    assert max(sizes[50:]) <= max(sizes[:50])


def test_collect_keeps_settled_values_only_while_a_window_needs_them():
    runner = start(wp.tumbling(50), wp.collect("v"))
    sizes = []
    for low in range(0, 40_000, 400):
        runner.push(batch(np.arange(low, low + 400)))
        sizes.append(runner.state_bytes)
    assert max(sizes[50:]) <= max(sizes[:50])


@pytest.mark.parametrize("at_once", [1, 20], ids=["all in one window", "a few in each"])
@pytest.mark.parametrize("window", [wp.tumbling(1000), wp.session(10)], ids=repr)
def test_a_million_keys_that_come_once_leave_no_residue(window, at_once):
    # `.per()` is left out: positions of a key are never complete, so that its count is remembered for ever
    runner = start(window, wp.count())
    answers = 0
    for i in range(20):
        time = i * 10_000 if at_once == 20 else 0
        step = runner.push(batch(np.full(50_000, time), k=np.arange(i * 50_000, (i + 1) * 50_000)))
        answers += runner.answers(step).num_rows
    for time in range(10**9, 10**9 + 10_000, 1000):
        answers += runner.answers(runner.push(batch([time], k=-1))).num_rows
    assert answers >= 1_000_000
    assert runner.state_bytes <= RESIDUE


def test_a_push_leaves_the_segments_it_does_not_fall_into_alone():
    runner = start(wp.sliding(10**6, 1), wp.sum("v"), delay=10**7)
    for low in range(0, 60_000, 10_000):
        runner.push(batch(np.arange(low, low + 10_000)))
    before = runner.operator.lanes[0].lane.table.segments
    runner.push(batch(np.arange(60_000, 60_500)))
    after = runner.operator.lanes[0].lane.table.segments
    assert len(before) > 3
    assert all(a is b for a, b in zip(before[:-1], after, strict=False))
    runner.push(batch([5]))
    late = runner.operator.lanes[0].lane.table.segments
    assert sum(a is not b for a, b in zip(after, late, strict=True)) == 1


def test_one_window_or_a_thousand_overlapping_ones_keep_the_same_slices():
    def slices(size):
        runner = start(wp.sliding(size, 10), wp.sum("v"), delay=10**6)
        runner.push(batch(np.arange(20_000)))
        return len(runner.operator.lanes[0].lane.table)

    assert slices(10_000) == slices(10) == 2000
