"""Texts within a budget: numbers on disk, a dictionary that counts, and nothing of texts that are gone."""

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spill.test_values import shown
from windowpane.errors import OverBudget
from windowpane.values.sizes import Budget

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "s": pa.string()})
WINDOWS = [wp.sliding(1_000, 250), wp.per_row(1_000).per()]


STREAM = wp.stream(schema=SCHEMA, time="t", keys="k", delay=20)


def query(window):
    return STREAM.window(window).agg(kinds=wp.distinct("s"), top=wp.top_k("s", 2), n=wp.count("s"))


def fresh(first, n):
    """Texts that never come again, and now and then none."""
    t = np.arange(first, first + n)
    texts = [None if at % 17 == 0 else f"a text with number {at}" for at in t]
    return pa.table({"t": t, "k": t % 3, "s": texts}, schema=SCHEMA)


@pytest.mark.parametrize("window", WINDOWS, ids=["slide", "by tuple"])
def test_texts_that_left_their_windows_are_forgotten(window):
    """Their numbers are given to others, also over restarts, and the answers are those in memory."""
    budget = Budget(3_000_000, block_bytes=1024, blocks=2)
    memory = query(window).start()
    with query(window).start(memory=budget) as runner:
        for at in range(0, 40_000, 4_000):
            batch = fresh(at, 4_000)
            assert shown(runner.answers(runner.push(batch))) == shown(memory.answers(memory.push(batch)))
            slots = runner._spill.texts["s"]
            assert len(slots) < 3 * 4_000
            assert len(slots.index) < 3 * 4_000
        assert runner._spill.texts["s"].nbytes < 1_000_000


@pytest.mark.parametrize("window", WINDOWS, ids=["slide", "by tuple"])
def test_texts_outlive_the_process(window, tmp_path):
    memory = query(window).start()
    runner = query(window).start(memory="1 MB", spill_dir=tmp_path / "run")
    for at in range(0, 5_000, 500):
        batch = fresh(at, 500)
        assert shown(runner.answers(runner.push(batch))) == shown(memory.answers(memory.push(batch)))
        runner.checkpoint()
        runner.discard()
        runner = query(window).resume(tmp_path / "run")
    assert shown(runner.answers(runner.close())) == shown(memory.answers(memory.close()))


def test_texts_count_for_the_budget():
    """Where numbers in the place of the texts fit, they do not."""
    budget, window = Budget(800_000, block_bytes=1024), wp.tumbling(10**6)
    with STREAM.window(window).agg(kinds=wp.distinct("t")).start(memory=budget) as runner:
        runner.push(fresh(0, 20_000))
        assert runner.state_bytes < budget.memory
    with query(window).start(memory=budget) as runner, pytest.raises(OverBudget, match="Give at least"):
        runner.push(fresh(0, 20_000))


def test_a_text_is_four_bytes_on_disk():
    with query(WINDOWS[0]).start(memory="1 MB") as runner:
        runner.push(fresh(0, 100))
        assert dict(runner._spill.lanes[0].store.layout.columns)["s"] == "<i4"
