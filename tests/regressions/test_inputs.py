"""Inputs that once failed without a message, or were taken though they make no sense."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import BadQuery


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["x", "y"])])
def test_categories_of_polars_are_keys_and_values(kind):
    frame = pl.DataFrame({"t": [1, 2, 3], "k": ["x", "y", "x"]}).with_columns(pl.col("k").cast(kind))
    query = wp.stream(frame, time="t", keys="k").window(wp.tumbling(10)).agg(wp.count(), wp.last("k"))
    found = query.run().table.select(["k", "count", "last_k"]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [("x", 2, "x"), ("y", 1, "y")]


def test_a_key_column_is_named_once():
    rows = pa.table({"t": [1], "k": ["x"]})
    with pytest.raises(BadQuery, match="keys names 'k' twice"):
        wp.stream(rows, time="t", keys=["k", "k"])
    with pytest.raises(BadQuery, match="keys names 'k' twice"):
        wp.stream(rows, time="t").window(wp.tumbling(10), keys=["k", "k"])
