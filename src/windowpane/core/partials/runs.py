"""Value counts: the distinct values of a row, sorted, each with how often it came.

Sorting within slices and run-length encoding is what Traub et al. 2019 do for quantiles (section 5.4.1).
"""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Columns, Ints, Ragged, Tuples
from windowpane.core.kernels.ordering import encode
from windowpane.core.kernels.value_counts import grid_runs, merge_runs, number, sorted_runs
from windowpane.core.partials.base import Partial
from windowpane.core.partials.reading import present_values

_GRID = 16
"""Cells per tuple up to which counting in a grid is cheaper than sorting."""
_SAMPLE = 16_384
_NONE = np.empty(0, np.int64)


def ragged(columns: Columns, at: int = 0) -> Ragged:
    """One column that is known to be ragged."""
    cells = columns[at]
    if not isinstance(cells, Ragged):
        raise TypeError("this column is not ragged")
    return cells


def gather(cells: Ragged, low: Ints, high: Ints) -> Ragged:
    """Rows `low[i] .. high[i]-1` one after the other as row i."""
    begin = cells.offsets[low]
    sizes = cells.offsets[high] - begin
    offsets = np.zeros(len(low) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    source = np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], sizes)
    return Ragged(offsets, cells.values[source], cells.weights[source])


def rank(values: Ints) -> tuple[Ints, Ints]:
    """The distinct values, sorted, and the index of each value among them."""
    if _mostly_distinct(values):
        return _rank_by_sorting(values)
    distinct, numbers = number(values)
    order = np.argsort(distinct)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return distinct[order], place[numbers]


def _mostly_distinct(values: Ints) -> bool:
    """Judged by a sample: a hash table of all values would not stay in the cache."""
    sample = values[:: max(1, len(values) // _SAMPLE)]
    return len(values) > _SAMPLE and 10 * len(np.unique(sample)) > 9 * len(sample)


def _rank_by_sorting(values: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(values)
    sorted_ = values[order]
    fresh = np.concatenate([[True], sorted_[1:] != sorted_[:-1]])
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.cumsum(fresh) - 1
    return sorted_[fresh], ranks


def fold_runs(values: Ints, rows: Ints, n_rows: int) -> Ragged:
    """Runs of the values of each row."""
    distinct, ranks = rank(values)
    n_ranks = max(1, len(distinct))
    if n_rows * n_ranks <= _GRID * len(values):
        offsets, found, weights = grid_runs(rows, ranks, n_rows, n_ranks)
    else:
        offsets, found, weights = sorted_runs(np.sort(rows * n_ranks + ranks), _NONE, n_rows, n_ranks)
    return Ragged(offsets, distinct[found], weights)


def merge_rows(lists: Ragged) -> Ragged:
    """Runs from rows that hold values in any order and more than once."""
    distinct, ranks = rank(lists.values)
    n_ranks = max(1, len(distinct))
    sizes = lists.offsets[1:] - lists.offsets[:-1]
    cells = np.repeat(np.arange(len(lists)) * n_ranks, sizes) + ranks
    order = np.argsort(cells, kind="stable")  # quick here: rows are concatenations of sorted runs
    offsets, found, weights = sorted_runs(cells[order], lists.weights[order], len(lists), n_ranks)
    return Ragged(offsets, distinct[found], weights)


@dataclass(frozen=True)
class ValueCounts(Partial):
    """Runs of order-preserving codes (ids for text), so that NaN and zeros need no care."""

    column: str
    text: bool = False
    fixed = False

    def identity(self, n: int) -> Columns:
        return (Ragged(np.zeros(n + 1, np.int64), _NONE, _NONE),)

    def id_columns(self) -> dict[int, str]:
        return {0: self.column} if self.text else {}

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        values, rows = present_values(tuples, rows, self.column)
        return (fold_runs(encode(values), rows, n_rows),)

    def combine(self, a: Columns, b: Columns) -> Columns:
        x, y = ragged(a), ragged(b)
        return (Ragged(*merge_runs(x.offsets, x.values, x.weights, y.offsets, y.values, y.weights)),)

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return (merge_rows(gather(ragged(columns), low, high)),)
