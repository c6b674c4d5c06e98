"""Sums: of integers exact in 96 bits, of floats in float64."""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Columns, Ints, Tuples, Values
from windowpane.core.kernels.folds import (
    count,
    magnitude,
    sum_float_runs,
    sum_floats,
    sum_int_runs,
    sum_ints,
    sum_small_ints,
)
from windowpane.core.kernels.segments import sum_ranges
from windowpane.core.partials.base import Partial
from windowpane.core.partials.counts import plain, prefix_ranges
from windowpane.core.partials.reading import filled, floats, present, present_values

_LOWER = np.int64(0xFFFFFFFF)


def _normal(high: Ints, low: Ints) -> Columns:
    """Carry, so that equal sums have equal columns."""
    return high + (low >> 32), low & _LOWER


def _fit_one_word(values: Ints) -> bool:
    return len(values).bit_length() + int(magnitude(values)).bit_length() <= 62


@dataclass(frozen=True)
class IntSum(Partial):
    """An exact sum of integers: `high * 2**32 + low` with `0 <= low < 2**32`."""

    column: str
    invertible = True

    def identity(self, n: int) -> Columns:
        return np.zeros(n, np.int64), np.zeros(n, np.int64)

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        values = filled(tuples, self.column, 0)
        if _fit_one_word(values):
            totals = sum_small_ints(rows, values, n_rows)
            return totals >> 32, totals & _LOWER
        return _normal(*sum_ints(rows, values, n_rows))

    def fold_runs(self, tuples: Tuples, heads: Ints) -> Columns:
        values = filled(tuples, self.column, 0)
        if not _fit_one_word(values):
            return super().fold_runs(tuples, heads)
        totals = sum_int_runs(values, heads)
        return totals >> 32, totals & _LOWER

    def combine(self, a: Columns, b: Columns) -> Columns:
        return _normal(plain(a, 0) + plain(b, 0), plain(a, 1) + plain(b, 1))

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return _normal(*(prefix_ranges(plain(columns, i), low, high) for i in (0, 1)))


class _FloatSums(Partial):
    """Parallel sums. Not inverted: a difference would cancel digits and keep NaN and inf for ever."""

    def combine(self, a: Columns, b: Columns) -> Columns:
        with np.errstate(invalid="ignore", over="ignore"):
            return tuple(plain(a, i) + plain(b, i) for i in range(len(a)))

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return tuple(self._range(plain(columns, i), low, high) for i in range(len(columns)))

    def _range(self, cells: Values, low: Ints, high: Ints) -> Values:
        exact = cells.dtype == np.int64
        return prefix_ranges(cells, low, high) if exact else sum_ranges(cells, low, high)


@dataclass(frozen=True)
class FloatSum(_FloatSums):
    """The sum of a float column."""

    column: str

    def identity(self, n: int) -> Columns:
        return (np.zeros(n, np.float64),)

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        return (sum_floats(rows, floats(filled(tuples, self.column, 0)), n_rows),)

    def fold_runs(self, tuples: Tuples, heads: Ints) -> Columns:
        return (sum_float_runs(floats(filled(tuples, self.column, 0)), heads),)


@dataclass(frozen=True)
class LogSum(_FloatSums):
    """The sum of logarithms: -inf for a zero, NaN below zero."""

    column: str

    def identity(self, n: int) -> Columns:
        return (np.zeros(n, np.float64),)

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        values, rows = present_values(tuples, rows, self.column)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(floats(values))
        return (sum_floats(rows, logs, n_rows),)


@dataclass(frozen=True)
class WeightedSum(_FloatSums):
    """(tuples, sum of value * weight, sum of weights) where neither is null."""

    value: str
    weight: str

    def identity(self, n: int) -> Columns:
        return np.zeros(n, np.int64), np.zeros(n, np.float64), np.zeros(n, np.float64)

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        kept, rows = present(tuples, rows, (self.value, self.weight))
        weights = floats(kept.columns[self.weight].values)
        with np.errstate(invalid="ignore", over="ignore"):
            products = floats(kept.columns[self.value].values) * weights
        return count(rows, n_rows), sum_floats(rows, products, n_rows), sum_floats(rows, weights, n_rows)
