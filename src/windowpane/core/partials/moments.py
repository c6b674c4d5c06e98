"""Moments: count, mean and sum of squared deviations, for variances without cancellation."""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Columns, Ints, Tuples
from windowpane.core.kernels.moments import combine_moments, fold_moments
from windowpane.core.partials.base import Partial
from windowpane.core.partials.counts import plain
from windowpane.core.partials.reading import floats, present_values
from windowpane.core.partials.tree import combine_ranges


@dataclass(frozen=True)
class Moments(Partial):
    """(n, mean, sum of squared deviations from it)."""

    column: str

    def identity(self, n: int) -> Columns:
        return np.zeros(n, np.int64), np.zeros(n, np.float64), np.zeros(n, np.float64)

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        values, rows = present_values(tuples, rows, self.column)
        return fold_moments(rows, floats(values), n_rows)

    def combine(self, a: Columns, b: Columns) -> Columns:
        # Contiguous copies: strided views would compile the kernel once more.
        args = [np.ascontiguousarray(plain(side, i)) for side in (a, b) for i in range(3)]
        return combine_moments(*args)

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return combine_ranges(self.combine, columns, low, high)
