"""By hand: a few rows over a store, beside the same run in memory."""

import pyarrow as pa

import windowpane as wp
from windowpane.values.sizes import Budget

ROWS = {
    "t": [1, 2, 2, 5, 9, 14, 14, 30],
    "k": ["a", "b", "a", None, "a", "b", "b", "a"],
    "v": [1.5, 2.5, None, 4.0, 5.0, -1.0, 0.25, 7.0],
    "n": [1, 2, 3, None, 5, 6, 7, 8],
}
TYPES = {"t": pa.int64(), "k": pa.string(), "v": pa.float64(), "n": pa.int64()}


def aggregates():
    return (
        wp.count(),
        wp.sum("v"),
        wp.sum("n"),
        wp.mean("n"),
        wp.min("v"),
        wp.max("n"),
        wp.weighted_mean("v", "n"),
        wp.variance("v"),
        wp.geometric_mean("n"),
        wp.count("k"),
    )


def both(window, technique, **options):
    table = pa.table(ROWS, schema=pa.schema(TYPES))
    named = {f"a{i}": aggregate for i, aggregate in enumerate(aggregates())}
    budget = Budget(10**6, block_bytes=256, blocks=2, technique=technique)
    found = [
        wp.stream(table, time="t", keys="k", **options).window(window).agg(**named).run(memory=memory)
        for memory in (None, budget)
    ]
    return [result.table.to_pylist() for result in found]


def shown(rows):
    return sorted(repr(row) for row in rows)


def test_sliding_over_tuples():
    memory, spilled = both(wp.sliding(10, 5), "1W")
    assert shown(memory) == shown(spilled)


def test_sliding_over_slices():
    memory, spilled = both(wp.sliding(10, 4), "2LA")
    assert shown(memory) == shown(spilled)


def test_a_window_for_each_tuple_of_all_keys():
    memory, spilled = both(wp.per_row(10), "1W")
    assert shown(memory) == shown(spilled)


def test_a_window_for_each_tuple_of_its_key():
    memory, spilled = both(wp.per_row(10).per(), "1W")
    assert shown(memory) == shown(spilled)
