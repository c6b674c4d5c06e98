"""The time of the first and the last tuple of a row (slice metadata of Traub et al. 2019, section 5.2)."""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import ALWAYS, NEVER, Columns, Ints, Tuples
from windowpane.core.jit import kernel
from windowpane.core.partials.base import Partial
from windowpane.core.partials.counts import plain


@dataclass(frozen=True)
class Span(Partial):
    """Columns (first, last): the smallest and the largest measure value in the row."""

    def identity(self, n: int) -> Columns:
        return np.full(n, ALWAYS, np.int64), np.full(n, NEVER, np.int64)

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        cells = np.empty(8 * n_rows, np.int64)
        _span(tuples.time, rows, cells)
        lanes = cells.reshape(n_rows, 8)
        return lanes[:, :4].min(axis=1), lanes[:, 4:].max(axis=1)

    def fold_runs(self, tuples: Tuples, heads: Ints) -> Columns:
        if not tuples.rising:
            return super().fold_runs(tuples, heads)
        return tuples.time[heads], tuples.time[np.append(heads[1:], len(tuples)) - 1]

    def combine(self, a: Columns, b: Columns) -> Columns:
        return np.minimum(plain(a, 0), plain(b, 0)), np.maximum(plain(a, 1), plain(b, 1))

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        first, last = np.empty(len(low), np.int64), np.empty(len(low), np.int64)
        _span_ranges(plain(columns, 0), plain(columns, 1), low, high, first, last)
        return first, last


@kernel
def _span(time: Ints, rows: Ints, cells: Ints) -> None:
    """Four firsts and four lasts for each row, so that neighbours do not wait for each other's store.

    Without branches: which tuple is the first or last so far is as good as random under disorder.
    """
    for i in range(len(cells)):
        cells[i] = NEVER if i & 4 else ALWAYS
    for i in range(len(time)):
        # unsigned, because Numba then does not test for counting from the end
        first = np.uint64(rows[i]) * np.uint64(8) + np.uint64(i & 3)
        last = first + np.uint64(4)
        cells[first] = min(cells[first], time[i])
        cells[last] = max(cells[last], time[i])


@kernel
def _span_ranges(first: Ints, last: Ints, low: Ints, high: Ints, out_first: Ints, out_last: Ints) -> None:
    for i in range(len(low)):
        a, b = first[low[i]], last[low[i]]
        for r in range(low[i] + 1, high[i]):
            a, b = min(a, first[r]), max(b, last[r])
        out_first[i] = a
        out_last[i] = b
