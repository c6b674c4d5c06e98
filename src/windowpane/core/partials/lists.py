"""Lists: every value kept, in the order of time; the built-in partial that does not commute."""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Columns, Ints, Ragged, Tuples
from windowpane.core.kernels.folds import count
from windowpane.core.partials.base import Partial, concat, take
from windowpane.core.partials.reading import group, present_values
from windowpane.core.partials.runs import gather, ragged


@dataclass(frozen=True)
class Lists(Partial):
    """All values of a row in the order given, which is that of time."""

    column: str
    floating: bool = False
    text: bool = False
    commutative = False
    fixed = False

    def identity(self, n: int) -> Columns:
        values = np.empty(0, np.float64 if self.floating else np.int64)
        return (Ragged(np.zeros(n + 1, np.int64), values, np.empty(0, np.int64)),)

    def id_columns(self) -> dict[int, str]:
        return {0: self.column} if self.text else {}

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        values, rows = present_values(tuples, rows, self.column)
        order = group(rows, n_rows)
        offsets = np.zeros(n_rows + 1, np.int64)
        np.cumsum(count(rows, n_rows), out=offsets[1:])
        # A copy, as the values may be a view of a batch that would stay in memory for their sake.
        values = values.copy() if order is None else values[order]
        return (Ragged(offsets, values, np.ones(len(values), np.int64)),)

    def combine(self, a: Columns, b: Columns) -> Columns:
        n = len(ragged(a))
        both = ragged(concat([a, b]))
        pairs = np.stack((np.arange(n), np.arange(n, 2 * n)), axis=1).ravel()
        joined = ragged(take((both,), pairs))
        return (Ragged(joined.offsets[::2].copy(), joined.values, joined.weights),)

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return (gather(ragged(columns), low, high),)
