"""Rows and markers of the far future: they are rejected as in this process, and spoil nothing."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import windowpane as wp
from tests.spark.pump import STRAYS, Pump
from windowpane.local.runner import joined
from windowpane.spark.bucket import Counts

SCHEMA = pa.schema([("t", pa.int64()), ("m", pa.bool_())])
POLICIES = {"external": wp.external("m"), "slack": wp.slack(2), "delay": wp.delay(7)}
# the only row near which is a marker is not alone
MARKER_BETWEEN, MARKERS_ABOVE = [(0, False), (1, True), (2, False)], [(0, False), (1, True), (1, True)]
row = st.tuples(st.one_of(st.integers(0, 300), st.integers(10**6, 10**6 + 90)), st.booleans())
micro_batches = st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=5)


def query_of(policy, ahead):
    stream = wp.stream(schema=SCHEMA, time="t", punctuation=policy, max_ahead=ahead)
    return stream.window(wp.session(5)).agg(wp.count())


def table_of(rows):
    return pa.table([[t for t, _ in rows], [m for _, m in rows]], schema=SCHEMA)


def counted(counts):
    ahead = counts.too_far_ahead if isinstance(counts, Counts) else counts.rejected
    return (counts.kept, counts.late, counts.markers, ahead)


def told(table):
    return [] if table is None else sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("name", POLICIES)
@given(batches=micro_batches, tasks=st.integers(1, 3), ahead=st.integers(0, 60), again=st.booleans())
@example(batches=[MARKER_BETWEEN], tasks=1, ahead=1, again=False)
@example(batches=[MARKERS_ABOVE], tasks=1, ahead=1, again=False)
def test_the_verdict_on_every_row_is_that_of_this_process_in_order_of_time(
    name, batches, tasks, ahead, again
):
    query = query_of(POLICIES[name], ahead)
    pump, runner, steps = Pump(query, strays=STRAYS, tasks=tasks, restart=again), query.start(), []
    for rows in batches:
        before = runner.bound
        steps.append(runner.push(table_of(sorted(rows))))
        if name == "slack" and any(t >= before for t in steps[-1].late["t"].to_pylist()):
            return  # late by rows of its own batch: only this process can know that
        pump.push(table_of(rows))
        assert pump.bound == runner.bound
        if not pump.waits:
            whole = joined(steps)
            assert (told(pump.table("late")), told(pump.table("rejects"))) == (
                told(whole.late),
                told(whole.rejects),
            )
            assert counted(pump.counts) == counted(runner.counts)
    pump.end()
    whole = joined([*steps, runner.close()])
    assert told(pump.table("rejects")) == told(whole.rejects)
    assert told(pump.table()) == told(runner.answers(whole))


@pytest.mark.parametrize("size", [1, 2, 6])
def test_a_marker_of_the_far_future_is_rejected_and_no_row_after_it_is_late(size):
    rows = [(0, False), (10, False), (60, True), (10**12, True), (61, False), (62, False)]
    pump = Pump(query_of(wp.external("m"), 1000), strays=STRAYS)
    for at in range(0, 6, size):
        pump.push(table_of(rows[at : at + size]))
    assert pump.counts == Counts(kept=4, markers=1, too_far_ahead=1)
    assert pump.bound == 60
    assert pump.table("rejects").to_pylist() == [{"t": 10**12, "m": True, "reason": "too far ahead"}]


def test_as_many_absurd_rows_as_the_slack_do_not_hide_the_good_ones():
    pump = Pump(query_of(wp.slack(2), 100), strays=STRAYS, tasks=1)
    for i in range(3):
        good = [(int(t), False) for t in np.arange(60 * i, 60 * i + 60)]
        pump.push(table_of([*good, *((10**9 + j, False) for j in range(3))]))
    assert pump.counts == Counts(kept=180, too_far_ahead=9)
    assert pump.bound == 177
