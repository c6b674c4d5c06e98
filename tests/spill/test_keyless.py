"""Queries without keys: in memory where their slices are known to fit, over a store where they are not."""

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.local.spill import SpillRunner
from windowpane.planner.spill import always_fits
from windowpane.values.sizes import Budget

SCHEMA = pa.schema({"t": pa.int64(), "v": pa.float64(), "s": pa.string(), "end": pa.bool_()})
LAGS = {
    "ordered": (wp.ordered(), True),
    "a short delay": (wp.delay(100), True),
    "a long delay": (wp.delay(10**6), False),
    "rows": (wp.slack(10), False),
    "the source": (wp.external("end"), False),
    "by hand": (wp.manual(), False),
    "sources": (wp.melded("s", wp.ordered()), False),
    "a clock over order": (wp.heartbeat("1 s"), True),
    "a clock over rows": (wp.heartbeat("1 s", policy=wp.slack(10)), False),
}


def query(policy=None, window=None):
    stream = wp.stream(schema=SCHEMA, time="t", punctuation=policy or wp.ordered())
    return stream.window(window or wp.tumbling(1)).agg(total=wp.sum("v"), n=wp.count())


@pytest.mark.parametrize(("policy", "fits"), LAGS.values(), ids=LAGS)
def test_what_waits_for_the_punctuation_counts(policy, fits):
    assert always_fits(query(policy).plan, Budget(100_000)) == fits
    with query(policy).start(memory=Budget(100_000, block_bytes=4096)) as runner:
        assert isinstance(runner, SpillRunner) != fits


def test_a_long_delay_keeps_to_the_budget():
    budget = Budget(200_000, block_bytes=4096)
    with query(wp.delay(2_000)).start(memory=budget) as runner:
        for at in range(0, 20_000, 500):
            times = list(range(at, at + 500))
            ones = [1.0] * 500
            runner.push(
                pa.table({"t": times, "v": ones, "s": [""] * 500, "end": [False] * 500}, schema=SCHEMA)
            )
            assert runner.state_bytes <= budget.memory


def test_a_directory_is_used_even_where_memory_would_do(tmp_path):
    rows = pa.table({"t": [1, 2, 3], "v": [1.0, 2.0, 3.0], "s": [""] * 3, "end": [False] * 3}, schema=SCHEMA)
    window = wp.tumbling(2)
    with query(window=window).start(memory="1 MB", spill_dir=tmp_path / "run") as runner:
        found = runner.answers(runner.push(rows)).to_pylist()
        runner.checkpoint()
    with query(window=window).resume(tmp_path / "run") as runner:
        found += runner.answers(runner.close()).to_pylist()
    assert [(row["window"]["start"], row["total"]) for row in found] == [(0, 1.0), (2, 5.0)]


def test_every_run_is_left_and_explained_alike():
    with query().start(memory="1 MB") as runner:
        assert "because" in runner.explain()
        runner.discard()
