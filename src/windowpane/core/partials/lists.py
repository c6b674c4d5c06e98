"""Lists: every value kept, in the order of time; the built-in partial that does not commute."""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Columns, Ints, Ragged, Tuples
from windowpane.core.kernels.folds import count
from windowpane.core.partials.base import Partial, concat, take
from windowpane.core.partials.reading import order_of, present
from windowpane.core.partials.runs import gather, ragged


@dataclass(frozen=True)
class Lists(Partial):
    """All values of a row in the order of time, of equal times in the order of values."""

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
        kept, rows = present(tuples, rows, (self.column,))
        order = _order(rows, kept.time, order_of(kept, self.column))
        offsets = np.zeros(n_rows + 1, np.int64)
        np.cumsum(count(rows, n_rows), out=offsets[1:])
        values = kept.columns[self.column].values
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


def _order(rows: Ints, time: Ints, value: Ints) -> Ints | None:
    """The order by row, time and value; None if the tuples are in it already, as in most files."""
    same = rows[1:] == rows[:-1]
    tied = same & (time[1:] == time[:-1])
    falls = (rows[1:] < rows[:-1]) | (same & (time[1:] < time[:-1])) | (tied & (value[1:] < value[:-1]))
    return np.lexsort((value, time, rows)) if falls.any() else None
