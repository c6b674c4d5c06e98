"""What a partial is: fold tuples into rows, combine rows, aggregate ranges of rows.

A partial is a frozen value. Two aggregates that need an equal partial share its columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windowpane.core.arrays import Cells, Columns, Ints, Ragged, Tuples


class Partial(ABC):
    """One piece of aggregate state, kept as parallel columns with one entry per row (slice).

    Subclasses are frozen dataclasses. `combine` must be associative; `a` comes before `b` in event
    time unless `commutative`.
    """

    commutative: bool = True
    invertible: bool = False
    """True if `ranges` answers by an exact difference of running values."""
    fixed: bool = True
    """False if the state of a row has no constant bound (holistic)."""

    @abstractmethod
    def identity(self, n: int) -> Columns:
        """The neutral state for n rows."""

    @abstractmethod
    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        """Aggregate each tuple i into row `rows[i]`; rows without tuples hold the identity.

        Within a row, tuples are combined in the order given.
        """

    def fold_runs(self, tuples: Tuples, heads: Ints) -> Columns:
        """As `fold`, for tuples in order of rows: row i is tuples `heads[i] .. heads[i+1]-1`, never none."""
        sizes = np.diff(heads, append=len(tuples))
        return self.fold(tuples, np.repeat(np.arange(len(heads)), sizes), len(heads))

    @abstractmethod
    def combine(self, a: Columns, b: Columns) -> Columns:
        """Row by row `a + b`; both have the same number of rows."""

    @abstractmethod
    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        """The combination of rows `low[i] .. high[i]-1` in order, for every i; `low < high`."""

    def id_columns(self) -> dict[int, str]:
        """Which state columns hold interned ids, and of which input column."""
        return {}

    def reduce(self, columns: Columns, starts: Ints) -> Columns:
        """Combine runs of neighbouring rows: run i is `starts[i] .. starts[i+1]-1` (the last to the end)."""
        n = length(columns)
        return self.ranges(columns, starts, np.append(starts[1:], n))


@dataclass(frozen=True)
class Ranged:
    """A partial over row ranges, computed when first asked for; `lower` functions receive these."""

    partial: Partial
    columns: Columns
    low: Ints
    high: Ints

    @cached_property
    def value(self) -> Columns:
        """The combined state of each range."""
        if len(self.low) == 0:
            return self.partial.identity(0)
        if bool(np.all(self.high - self.low == 1)):
            return take(self.columns, self.low)
        near = self.narrowed()
        return self.partial.ranges(near.columns, near.low, near.high)

    def narrowed(self) -> Ranged:
        """The same ranges over the rows that some range holds, if these are the lesser part of the table.

        Few windows of a large table must not cost what the table costs.
        """
        n = length(self.columns)
        if 2 * int((self.high - self.low).sum()) >= n:
            return self
        rows, moved = _covered(self.low, self.high)
        return Ranged(self.partial, take(self.columns, rows), self.low - moved, self.high - moved)

    def __len__(self) -> int:
        return len(self.low)


def _covered(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """The rows inside some range, in order, and how far down each range moves when only these are kept."""
    order = np.argsort(low, kind="stable")
    reach = np.maximum.accumulate(high[order])
    fresh = np.concatenate([[True], low[order][1:] > reach[:-1]])
    heads = np.nonzero(fresh)[0]
    begin, end = low[order][heads], reach[np.append(heads[1:], len(low)) - 1]
    gaps = begin - np.concatenate([[0], np.cumsum(end - begin)[:-1]])
    moved = np.empty(len(low), np.int64)
    moved[order] = gaps[np.cumsum(fresh) - 1]
    sizes = end - begin
    return np.arange(sizes.sum()) + np.repeat(gaps, sizes), moved


def length(columns: Columns) -> int:
    """The number of rows."""
    return len(columns[0])


def take(columns: Columns, at: Ints) -> Columns:
    """The rows at these positions."""
    return tuple(_take(cells, at) for cells in columns)


def part(columns: Columns, low: int, high: int) -> Columns:
    """The rows `low .. high-1`, without copying where that is possible."""
    if any(isinstance(cells, Ragged) for cells in columns):
        return take(columns, np.arange(low, high))
    return tuple(cells[low:high] for cells in columns if not isinstance(cells, Ragged))


def concat(parts: list[Columns]) -> Columns:
    """The rows of all parts, one after the other; at least one part."""
    if len(parts) == 1:
        return parts[0]
    return tuple(_concat([part[i] for part in parts]) for i in range(len(parts[0])))


def _take(cells: Cells, at: Ints) -> Cells:
    if not isinstance(cells, Ragged):
        return cells[at]
    sizes = (cells.offsets[1:] - cells.offsets[:-1])[at]
    offsets = np.zeros(len(at) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    source = np.arange(offsets[-1]) + np.repeat(cells.offsets[:-1][at] - offsets[:-1], sizes)
    return Ragged(offsets, cells.values[source], cells.weights[source])


def _concat(cells: list[Cells]) -> Cells:
    ragged = [c for c in cells if isinstance(c, Ragged)]
    if not ragged:
        return np.concatenate([c for c in cells if not isinstance(c, Ragged)])
    ends = np.cumsum([0, *(int(c.offsets[-1]) for c in ragged)])
    return Ragged(
        np.concatenate(
            [ragged[0].offsets[:1], *(c.offsets[1:] + e for c, e in zip(ragged, ends, strict=False))]
        ),
        np.concatenate([c.values for c in ragged]),
        np.concatenate([c.weights for c in ragged]),
    )
