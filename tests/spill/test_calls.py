"""How often kernels are called and how much is touched: counted, since times say little."""

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.core.spill import rolling
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
