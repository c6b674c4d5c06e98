"""A user's own aggregate as a partial."""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Columns, Ints, Tuples
from windowpane.core.kernels.folds import count
from windowpane.core.partials.base import Partial, take
from windowpane.core.partials.counts import plain
from windowpane.core.partials.reading import group, present
from windowpane.core.partials.tree import combine_ranges
from windowpane.values.user_aggregates import UserAggregate


@dataclass(frozen=True)
class Lifted(Partial):
    """State: the arrays that `lift` gives. Ranges always use a tree, which needs no `invert`."""

    aggregate: UserAggregate
    commutative: bool = True

    def identity(self, n: int) -> Columns:
        return self.aggregate.identities(n)

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        kept, rows = present(tuples, rows, self.aggregate.columns)
        if len(rows) == 0:
            return self.identity(n_rows)
        state: Columns = self.aggregate.lifted(
            *(kept.columns[name].values for name in self.aggregate.columns)
        )
        order = group(rows, n_rows)
        state = state if order is None else take(state, order)
        sizes = count(rows, n_rows)
        ends = np.cumsum(sizes)
        held = np.nonzero(sizes)[0]
        return self._spread(self.ranges(state, (ends - sizes)[held], ends[held]), held, n_rows)

    def _spread(self, state: Columns, held: Ints, n_rows: int) -> Columns:
        if len(held) == n_rows:
            return state
        out = []
        for i, empty in enumerate(self.identity(n_rows)):
            cells = plain(state, i)
            wide = np.asarray(empty).astype(np.result_type(plain((empty,), 0).dtype, cells.dtype))
            wide[held] = cells
            out.append(wide)
        return tuple(out)

    def combine(self, a: Columns, b: Columns) -> Columns:
        left = tuple(plain(a, i) for i in range(len(a)))
        right = tuple(plain(b, i) for i in range(len(b)))
        return tuple(np.asarray(part) for part in self.aggregate.combine(left, right))

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        return combine_ranges(self.combine, columns, low, high)
