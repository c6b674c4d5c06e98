"""How often kernels are called and how much is touched: counted, since times say little."""

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.core.spill import rolling, waiting
from windowpane.core.spill.shapes import SliceShape
from windowpane.core.spill.state import write_operator
from windowpane.values.sizes import Budget

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "v": pa.float64()})


def rows(first, n, keys):
    t = np.arange(first, first + n)
    return pa.table({"t": t, "k": t % keys, "v": t / 8}, schema=SCHEMA)


@pytest.mark.parametrize("keys", [1, 3])
def test_windows_by_tuple_slide_in_few_calls(monkeypatch, keys):
    """As many answers at once as keys allow, not as if every row had a key of its own."""
    calls = []
    roll = rolling.roll
    monkeypatch.setattr(rolling, "roll", lambda *given: calls.append(len(given[10])) or roll(*given))
    stream = wp.stream(schema=SCHEMA, time="t", keys=["k"] * (keys > 1))
    runner = stream.window(wp.per_row(5_000)).agg(total=wp.sum("v")).start(memory=Budget(10**6, blocks=2))
    for i in range(4):
        runner.push(rows(20_000 * i, 20_000, keys))
    runner.discard()
    assert sum(calls) == 79_999  # the last tuple is not settled yet
    assert len(calls) <= 40


def test_a_push_touches_few_of_the_tuples_that_wait(monkeypatch):
    """A long delay and small pushes: a tuple is merged a logarithm of times, not once for every push."""
    touched, joined = [], waiting.concat_tuples
    monkeypatch.setattr(
        waiting, "concat_tuples", lambda a, b: touched.append(len(a) + len(b)) or joined(a, b)
    )
    stream = wp.stream(schema=SCHEMA, time="t", keys="k", delay=30_000)
    runner = stream.window(wp.sliding(100, 10)).agg(n=wp.count()).start(memory=Budget(10**7, technique="1W"))
    for i in range(600):
        runner.push(rows(100 * i, 100, 7))
    runner.discard()
    assert sum(touched) <= 60_000 * 15


def test_a_push_touches_few_of_the_slices_that_wait(monkeypatch):
    folded, fold = [], SliceShape._fold
    monkeypatch.setattr(
        SliceShape,
        "_fold",
        lambda self, start, *given: folded.append(len(start)) or fold(self, start, *given),
    )
    # panes that end together far in the future: every slice of them waits
    stream = wp.stream(schema=SCHEMA, time="t", keys="k")
    budget = Budget(10**8, technique="2LA")
    runner = stream.window(wp.tumbling(10**6)).agg(n=wp.count()).start(memory=budget)
    for i in range(400):
        runner.push(rows(50 * i, 50, 10**6))
    runner.discard()
    assert sum(folded) <= 20_000 * 15


@pytest.mark.parametrize("technique", ["1W", "2LA"])
def test_a_checkpoint_rewrites_the_sums_of_keys_that_changed(technique):
    stream = wp.stream(schema=SCHEMA, time="t", keys="k")
    budget = Budget(10**8, technique=technique)
    query = stream.window(wp.sliding(10**6, 10_000)).agg(total=wp.sum("v"), most=wp.max("v"))
    with query.start(memory=budget) as runner:
        runner.push(rows(0, 20_000, 20_000))
        runner.punctuate(20_000)
        before = write_operator(runner._spill)
        runner.push(pa.table({"t": [20_000, 20_001], "k": [3, 4], "v": [1.0, 1.0]}, schema=SCHEMA))
        runner.punctuate(20_002)
        after = write_operator(runner._spill)
        put, gone = after.changed(before.digests)
    sums = {name for name in after if name.startswith("sums")}
    assert not gone
    assert len(sums) > 50
    assert sum(len(after[name]) for name in sums & set(put)) < sum(len(after[name]) for name in sums) / 5


@pytest.mark.parametrize("technique", ["1W", "2LA"])
def test_memory_and_disk_shrink_when_the_keys_and_the_rate_do(tmp_path, technique):
    stream = wp.stream(schema=SCHEMA, time="t", keys="k")
    query = stream.window(wp.sliding(2_000, 500)).agg(total=wp.sum("v"))
    budget = Budget(10**8, block_bytes=1024, blocks=2, technique=technique)
    with query.start(memory=budget, spill_dir=tmp_path / "run") as runner:
        for i in range(8):
            t = np.repeat(np.arange(500 * i, 500 * i + 500), 20)
            key = np.arange(10_000) + 10_000 * i
            runner.push(pa.table({"t": t, "k": key, "v": t / 8}, schema=SCHEMA))
        memory, disk = runner.state_bytes, runner.disk_bytes
        for i in range(8, 120):
            t = np.arange(500 * i, 500 * i + 500, 50)
            runner.push(pa.table({"t": t, "k": t % 7, "v": t / 8}, schema=SCHEMA))
        assert runner.state_bytes < memory / 10
        assert runner.disk_bytes < disk / 1.5
        assert runner.answers(runner.close()).column("total").to_pylist()
