"""A far punctuation is a typed error, and what a failed push had answered comes with the next step."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import windowpane as wp

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])


@pytest.mark.parametrize("window", [wp.landmark("1 s"), wp.last_rows(2, "1 s")], ids=repr)
def test_a_bound_that_closes_absurdly_many_windows_is_refused_and_undone(window):
    runner = wp.stream(schema=SCHEMA, time="ts", delay="1 s").window(window).agg(wp.count()).start()
    runner.push(pa.table({"ts": [datetime(2026, 1, 1, tzinfo=UTC)], "v": [1]}, schema=SCHEMA))
    before = runner.bound
    with pytest.raises(wp.errors.TooManyWindows, match="Move it in smaller steps, or use a longer step"):
        runner.punctuate(datetime(9999, 1, 1, tzinfo=UTC))
    assert runner.bound == before
    assert runner.answers(runner.close()).num_rows == 1


def test_answers_before_a_batch_that_fails_come_with_the_next_step():
    schema = pa.schema([("t", pa.int64())])
    runner = wp.stream(schema=schema, time="t").window(wp.tumbling(10)).agg(wp.count()).start()
    good = pa.table({"t": [1, 25]}, schema=schema)
    with pytest.raises(wp.errors.UnknownColumn):
        runner.push([good, pa.table({"x": [1]})])
    with pytest.raises(wp.errors.BadQuery, match="have not been taken yet"):
        runner.snapshot()
    assert runner.answers(runner.push(good.slice(0, 0))).num_rows == 1
    assert runner.answers(runner.close()).num_rows == 1
    assert runner.counts.kept == 2
