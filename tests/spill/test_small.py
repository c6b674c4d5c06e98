"""By hand: a few rows over a store, beside the same run in memory."""

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.core.spill.shapes import stored_type
from windowpane.errors import WrongType
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


WIDTHS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
KINDS = [pa.float16(), pa.float32(), pa.float64(), *(getattr(pa, name)() for name in WIDTHS)]


@pytest.mark.parametrize(
    ("kind", "encoded"),
    # Arrow has no encoded columns of float16
    [(kind, encoded) for kind in KINDS for encoded in (False, True) if kind != pa.float16() or not encoded],
)
def test_a_column_of_any_type_leaves_a_window_as_it_came(kind, encoded):
    """What was read from disk is what was added: fractions, signs and the largest values."""
    values = [1.5, -2.25] if pa.types.is_floating(kind) else [1, min(2 ** (kind.bit_width - 1) - 1, 2**60)]
    column = pa.array(values * 200).cast(kind)
    rows = {"t": list(range(400)), "v": column.dictionary_encode() if encoded else column}

    def run(memory):
        query = wp.stream(pa.table(rows), time="t").window(wp.per_row(10))
        return query.agg(total=wp.mean("v"), least=wp.min("v"), n=wp.count("v")).run(memory=memory).table

    assert shown(run(Budget(10**6, block_bytes=512, blocks=2)).to_pylist()) == shown(run(None).to_pylist())


def test_a_column_that_no_block_can_hold_is_refused():
    with pytest.raises(WrongType, match=r"column 'v' has type decimal128\(10, 2\)"):
        stored_type("v", pa.decimal128(10, 2))
