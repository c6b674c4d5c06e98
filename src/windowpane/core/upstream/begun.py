"""Windows that are begun: the partials of at most one of each key, found by the id of the key.

What is taken and put costs what it is, however many windows are begun.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from windowpane.core.arrays import Bools, Cells, Ints, Ragged, Values
from windowpane.core.kernels.update_windows import NONE
from windowpane.core.rows import Rows, heads_of, no_rows


class Begun:
    """Rows by key; the start of a row is the end of its window, which names it."""

    __slots__ = ("_ends", "_partials")

    def __init__(self) -> None:
        self._ends: Ints = np.empty(0, np.int64)
        self._partials: tuple[list[Values], ...] = ()

    def __len__(self) -> int:
        return int(np.count_nonzero(self._ends != NONE))

    def ends(self, keys: Ints) -> Ints:
        """The end of the window that each key has begun; `NONE` where there is none."""
        if len(keys):
            self._reach(int(keys.max()) + 1)
        found: Ints = self._ends[keys]
        return found

    def take(self, keys: Ints) -> Rows:
        """Take out what these keys have begun, sorted by (end, key)."""
        keys = np.sort(keys[self.ends(keys) != NONE])
        keys = keys[heads_of(keys)]
        if not len(keys):
            return no_rows(())
        keys = keys[np.argsort(self._ends[keys], kind="stable")]
        ends = self._ends[keys]
        self._ends[keys] = NONE
        return Rows(ends, keys, tuple(tuple(_taken(c, keys) for c in columns) for columns in self._partials))

    def take_all(self) -> Rows:
        """Take out all that is begun, sorted by (end, key)."""
        return self.take(np.flatnonzero(self._ends != NONE))

    def put(self, rows: Rows) -> None:
        """Rows of keys that have begun nothing else."""
        if not len(rows):
            return
        self._reach(int(rows.key.max()) + 1)
        cells = [[_packed(c) for c in columns] for columns in rows.partials]
        if not self._partials:
            self._partials = tuple([_widened(c[:0], len(self._ends)) for c in columns] for columns in cells)
        for kept, new in zip(self._partials, cells, strict=True):
            kept[:] = [_written(a, rows.key, b) for a, b in zip(kept, new, strict=True)]
        self._ends[rows.key] = rows.start

    def keep(self, live: Bools) -> None:
        """Forget the keys that are not live, and number the others anew, in order."""
        self._reach(len(live))
        at = np.flatnonzero(live)
        self._ends = self._ends[at]
        self._partials = tuple([column[at] for column in columns] for columns in self._partials)

    def _reach(self, count: int) -> None:
        """Have a place for at least so many keys."""
        known = len(self._ends)
        if count <= known:
            return
        self._ends = _widened(self._ends, 2 * count)
        self._ends[known:] = NONE
        for columns in self._partials:
            columns[:] = [_widened(column, 2 * count) for column in columns]


class _Run(NamedTuple):
    """A cell of a ragged column."""

    values: Values
    weights: Ints


def _packed(cells: Cells) -> Values:
    """Cells that can be written one by one."""
    if not isinstance(cells, Ragged):
        return cells
    made = np.empty(len(cells), np.object_)
    for i, (low, high) in enumerate(pairwise(cells.offsets.tolist())):
        made[i] = _Run(cells.values[low:high].copy(), cells.weights[low:high].copy())
    return made


def _taken(column: Values, keys: Ints) -> Cells:
    """The cells of these keys, at least one; a column of objects lets go of them."""
    cells = column[keys]
    if column.dtype != np.object_:
        return cells
    column[keys] = None
    if not isinstance(cells[0], _Run):
        return cells
    offsets = np.cumsum([0, *(len(run.values) for run in cells)])
    return Ragged(offsets, *(np.concatenate(parts) for parts in zip(*cells, strict=True)))


def _written(column: Values, keys: Ints, cells: Values) -> Values:
    """The column with these cells; a user's aggregate may give another type than it began with."""
    wide = column.astype(np.result_type(column, cells), copy=False)
    wide[keys] = cells
    return wide


def _widened(column: Values, size: int) -> Values:
    """The column with places for so many keys."""
    made = np.empty((size, *column.shape[1:]), column.dtype)
    made[: len(column)] = column
    return made
