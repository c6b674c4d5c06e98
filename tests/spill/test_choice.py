"""What the first batch tells, and the choice that follows from it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.planner.spill import seen_in
from windowpane.values.sizes import Budget

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "v": pa.int32()})


def chosen(times, keys, window):
    stream = wp.stream(schema=SCHEMA, time="t", keys="k")
    with stream.window(window).agg(total=wp.sum("v"), n=wp.count()).start(memory=Budget(10**7)) as runner:
        runner.push(pa.table({"t": times, "k": keys, "v": [1] * len(times)}, schema=SCHEMA))
        return runner.choice


def test_one_row_is_no_million_a_second():
    choice = chosen([10**9], [1], wp.sliding(10**7, 10**6))
    assert choice.technique == "1W"
    assert choice.one_window < 10_000


@pytest.mark.parametrize("shift", [0, 1])
def test_a_batch_of_one_instant_is_taken_for_a_pane(shift):
    """As many rows as keys: tuples are smaller. A hundred rows to a key: slices are."""
    times = [5] * 1_000
    times[-1] += shift * 10**6
    window = wp.sliding(10**8, 10**6)
    assert chosen(times, range(1_000), window).technique == "1W"
    assert chosen(times, [i % 10 for i in range(1_000)], window).technique == "2LA"


@given(st.lists(st.tuples(st.integers(-(10**17), 10**17), st.integers(0, 5)), min_size=1, max_size=30))
def test_keys_in_a_pane_on_average(rows):
    time, key = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    pane = 1_000
    seen = seen_in(time, [key], pane)
    first = min(t for t, _ in rows)
    panes = {(t - first) // pane for t, _ in rows}
    pairs = {((t - first) // pane, k) for t, k in rows}
    assert seen.groups == (len({k for _, k in rows}),)
    assert seen.active_groups == (len(pairs) / len(panes),)
    assert seen.rate == len(rows) / ((max(t for t, _ in rows) - first) or pane)
