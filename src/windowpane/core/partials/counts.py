"""Counts: exact, and over ranges a difference of running totals."""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Columns, Ints, Ragged, Tuples, Values
from windowpane.core.kernels.folds import count, count_valid
from windowpane.core.partials.base import Partial
from windowpane.core.partials.reading import all_valid


def plain(columns: Columns, at: int) -> Values:
    """One column that is known not to be ragged."""
    cells = columns[at]
    if isinstance(cells, Ragged):
        raise TypeError("this column is ragged")
    return cells


def running(cells: Ints) -> Ints:
    """The totals before each cell, and after the last."""
    totals = np.zeros(len(cells) + 1, np.int64)
    np.cumsum(cells, out=totals[1:])
    return totals


def prefix_ranges(cells: Ints, low: Ints, high: Ints) -> Ints:
    """Range totals by differences; modular arithmetic keeps them exact even where the running total wraps."""
    totals = running(cells)
    return totals[high] - totals[low]


class _Count(Partial):
    """State: one int64 column."""

    invertible = True

    @abstractmethod
    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns: ...

    def identity(self, n: int) -> Columns:
        return (np.zeros(n, np.int64),)

    def combine(self, a: Columns, b: Columns) -> Columns:
        return (plain(a, 0) + plain(b, 0),)

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return (prefix_ranges(plain(columns, 0), low, high),)


@dataclass(frozen=True)
class RowCount(_Count):
    """The number of tuples, nulls or not."""

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:  # noqa: ARG002 - rows say it all
        return (count(rows, n_rows),)

    def fold_runs(self, tuples: Tuples, heads: Ints) -> Columns:
        return (np.diff(heads, append=len(tuples)),)


@dataclass(frozen=True)
class ValidCount(_Count):
    """The number of tuples that have a value in every one of these columns."""

    columns: tuple[str, ...]

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        mask = all_valid(tuples, self.columns)
        return (count(rows, n_rows) if mask is None else count_valid(rows, mask, n_rows),)

    def fold_runs(self, tuples: Tuples, heads: Ints) -> Columns:
        mask = all_valid(tuples, self.columns)
        return (
            np.diff(heads, append=len(tuples))
            if mask is None
            else np.add.reduceat(mask, heads, dtype=np.int64),
        )
