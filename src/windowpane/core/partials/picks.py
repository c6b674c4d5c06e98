"""Picks: one tuple of each row, the first in a lexicographic order that no two different answers share."""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from windowpane.core.arrays import Bools, Columns, Ints, Tuples
from windowpane.core.kernels.folds import best_of_rows, count, min_ints
from windowpane.core.kernels.ordering import encode
from windowpane.core.partials.base import Partial
from windowpane.core.partials.counts import plain
from windowpane.core.partials.reading import order_of, present, present_values
from windowpane.core.partials.tree import combine_ranges

Which = Literal["first", "last", "arg_min", "arg_max"]


@dataclass(frozen=True)
class Pick(Partial):
    """(1 if there is a tuple, the keys it was picked by, its value).

    Keys are integers and the least wins; `~` turns an order round without overflow. `first` goes by
    (time, value), `last` by the largest of these, `arg_min` and `arg_max` by (by, time, value).
    """

    which: Which
    column: str
    by: str | None = None
    floating: bool = False
    text: bool = False

    def identity(self, n: int) -> Columns:
        keys = 2 if self.by is None else 3
        value = np.zeros(n, np.float64 if self.floating else np.int64)
        return *(np.zeros(n, np.int64) for _ in range(1 + keys)), value

    def id_columns(self) -> dict[int, str]:
        return {3 if self.by is None else 4: self.column} if self.text else {}

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        names = (self.column,) if self.by is None else (self.column, self.by)
        kept, rows = present(tuples, rows, names)
        keys = self._keys(kept)
        at = best_of_rows(rows, keys[0], keys[1], keys[-1], n_rows)
        held = np.nonzero(at >= 0)[0]
        result = self.identity(n_rows)
        plain(result, 0)[held] = 1
        for i, source in enumerate((*keys, kept.columns[self.column].values), start=1):
            # Adding 0 makes one zero of -0.0 and 0.0, which are equal in order.
            plain(result, i)[held] = source[at[held]] + 0
        return result

    def _keys(self, tuples: Tuples) -> tuple[Ints, ...]:
        order = order_of(tuples, self.column)
        if self.by is None:
            return (~tuples.time, ~order) if self.which == "last" else (tuples.time, order)
        by = encode(tuples.columns[self.by].values)
        return (~by if self.which == "arg_max" else by), tuples.time, order

    def combine(self, a: Columns, b: Columns) -> Columns:
        second = _before(b, a)
        return tuple(np.where(second, plain(b, i), plain(a, i)) for i in range(len(a)))

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return combine_ranges(self.combine, columns, low, high)


def _before(a: Columns, b: Columns) -> Bools:
    """Where the pick of `a` beats that of `b`: by the last key, unless an earlier one decides."""
    less = np.zeros(len(plain(a, 0)), np.bool_)
    for i in range(len(a) - 2, 0, -1):
        x, y = plain(a, i), plain(b, i)
        less = (x < y) | ((x == y) & less)
    only: Bools = (plain(a, 0) > plain(b, 0)) | ((plain(a, 0) == plain(b, 0)) & less)
    return only


@dataclass(frozen=True)
class ExtremeCount(Partial):
    """(code of the least or largest value, how many tuples hold it); for the largest codes are turned."""

    column: str
    largest: bool

    def identity(self, n: int) -> Columns:
        return np.full(n, np.iinfo(np.int64).max, np.int64), np.zeros(n, np.int64)

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        values, rows = present_values(tuples, rows, self.column)
        codes = ~encode(values) if self.largest else encode(values)
        best = min_ints(rows, codes, n_rows)
        return best, count(rows[codes == best[rows]], n_rows)

    def combine(self, a: Columns, b: Columns) -> Columns:
        best = np.minimum(plain(a, 0), plain(b, 0))
        held = np.where(plain(a, 0) == best, plain(a, 1), 0) + np.where(plain(b, 0) == best, plain(b, 1), 0)
        return best, held

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return combine_ranges(self.combine, columns, low, high)
