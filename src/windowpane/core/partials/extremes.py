"""Least and largest values, kept as order-preserving integers (see `kernels/ordering.py`)."""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Columns, Ints, Tuples
from windowpane.core.kernels.folds import max_ints, min_ints
from windowpane.core.kernels.ordering import encode
from windowpane.core.kernels.segments import max_ranges, min_ranges
from windowpane.core.partials.base import Partial
from windowpane.core.partials.counts import plain
from windowpane.core.partials.reading import all_valid

_LEAST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def _codes(tuples: Tuples, column: str, fill: int) -> Ints:
    codes, mask = encode(tuples.columns[column].values), all_valid(tuples, (column,))
    return codes if mask is None else np.where(mask, codes, np.int64(fill))


@dataclass(frozen=True)
class Min(Partial):
    """The least value's code; the largest integer where there is none."""

    column: str

    def identity(self, n: int) -> Columns:
        return (np.full(n, _LARGEST, np.int64),)

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        codes = _codes(tuples, self.column, _LARGEST)
        return (min_ints(rows, codes, n_rows),)

    def combine(self, a: Columns, b: Columns) -> Columns:
        return (np.minimum(plain(a, 0), plain(b, 0)),)

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return (min_ranges(plain(columns, 0), low, high),)


@dataclass(frozen=True)
class Max(Partial):
    """The largest value's code; the least integer where there is none."""

    column: str

    def identity(self, n: int) -> Columns:
        return (np.full(n, _LEAST, np.int64),)

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        codes = _codes(tuples, self.column, _LEAST)
        return (max_ints(rows, codes, n_rows),)

    def combine(self, a: Columns, b: Columns) -> Columns:
        return (np.maximum(plain(a, 0), plain(b, 0)),)

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return (max_ranges(plain(columns, 0), low, high),)
