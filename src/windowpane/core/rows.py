"""Rows: the columnar table that slices, sessions and single tuples all live in.

A row is a slice of one key: where it starts on the measure, and the partials of the tuples in it.
A single tuple is a slice of one. Tables are values: every operation gives a new one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Columns, Ints, Values
from windowpane.core.kernels import tables
from windowpane.core.partials.base import Partial, concat, part, take

Layout = tuple[Partial, ...]
"""Which partials a table keeps, in order; shared by every aggregate of a lane."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Parallel columns, one entry per slice; sorted by (start, key) or by (key, start) as the owner says."""

    start: Ints
    key: Ints
    partials: tuple[Columns, ...]

    def __len__(self) -> int:
        return len(self.start)

    def take(self, at: Values) -> Rows:
        """The rows at these positions (or under this mask)."""
        if at.dtype == np.bool_:
            at = np.nonzero(at)[0]
        return Rows(self.start[at], self.key[at], tuple(take(c, at) for c in self.partials))

    def span(self, low: int, high: int) -> Rows:
        """The rows `low .. high-1`."""
        if low == 0 and high == len(self):
            return self
        partials = tuple(part(columns, low, high) for columns in self.partials)
        return Rows(self.start[low:high], self.key[low:high], partials)

    @property
    def nbytes(self) -> int:
        """Memory held by the columns."""
        return self.start.nbytes + self.key.nbytes + sum(column_bytes(c) for c in self.partials)


def column_bytes(columns: Columns) -> int:
    """Memory held by the columns of one partial."""
    total = 0
    for cells in columns:
        if isinstance(cells, np.ndarray):
            total += cells.nbytes
        else:
            total += cells.offsets.nbytes + cells.values.nbytes + cells.weights.nbytes
    return total


def no_rows(layout: Layout) -> Rows:
    """The empty table."""
    none = np.empty(0, np.int64)
    return Rows(none, none, tuple(partial.identity(0) for partial in layout))


def stack(tables_: list[Rows]) -> Rows:
    """The rows of all tables, one after the other."""
    if len(tables_) == 1:
        return tables_[0]
    return Rows(
        np.concatenate([t.start for t in tables_]),
        np.concatenate([t.key for t in tables_]),
        tuple(concat([t.partials[i] for t in tables_]) for i in range(len(tables_[0].partials))),
    )


def merge(layout: Layout, old: Rows, new: Rows) -> Rows:
    """Both tables, sorted by (start, key), as one; rows of the same slice and key combine, old before new."""
    if len(old) == 0 or len(new) == 0:
        return new if len(old) == 0 else old
    if old.start[-1] < new.start[0]:
        return stack([old, new])
    # only where both overlap is there anything to merge
    cut = int(np.searchsorted(old.start, new.start[0], side="left"))
    end = int(np.searchsorted(new.start, old.start[-1], side="right"))
    if cut or end < len(new):
        both = merge(layout, old.span(cut, len(old)), new.span(0, end))
        return stack([part for part in (old.span(0, cut), both, new.span(end, len(new))) if len(part)])
    from_old, from_new, both_old, both_new, place = tables.merge_places(
        old.start, old.key, new.start, new.key
    )
    parts = [old.take(from_old), new.take(from_new)]
    if len(both_old):
        left, right = old.take(both_old), new.take(both_new)
        parts.append(Rows(left.start, left.key, _combine(layout, left, right)))
    return stack(parts).take(place)


def _combine(layout: Layout, left: Rows, right: Rows) -> tuple[Columns, ...]:
    return tuple(p.combine(a, b) for p, a, b in zip(layout, left.partials, right.partials, strict=True))


def reduce_runs(layout: Layout, table: Rows, heads: Ints) -> Rows:
    """One row for each run of neighbours; run i begins at row `heads[i]` and keeps its start and key."""
    if len(heads) == len(table):
        return table
    return Rows(
        table.start[heads],
        table.key[heads],
        tuple(p.reduce(c, heads) for p, c in zip(layout, table.partials, strict=True)),
    )


def combined(layout: Layout, table: Rows) -> Rows:
    """Rows in any order as a table sorted by (start, key), with one row for each slice and key."""
    if len(table) == 0:
        return table
    return reduce_slices(layout, table.take(np.lexsort((table.key, table.start))))


def reduce_slices(layout: Layout, table: Rows) -> Rows:
    """One row for each run of neighbours of the same slice and key."""
    change = (table.start[1:] != table.start[:-1]) | (table.key[1:] != table.key[:-1])
    return reduce_runs(layout, table, np.concatenate([[0], np.nonzero(change)[0] + 1]))


def by_key(table: Rows, n_keys: int) -> Rows:
    """The same rows sorted by (key, start), from rows sorted by (start, key)."""
    order = key_order(table.key, n_keys)
    return table if order is None else table.take(order)


def key_order(key: Ints, n_keys: int) -> Ints | None:
    """A stable order by key; None if the keys are in order already."""
    if n_keys <= 1 or len(key) < 2 or bool(np.all(key[1:] >= key[:-1])):
        return None
    if n_keys > 4 * len(key):
        return np.argsort(key, kind="stable")
    return tables.counting_order(key, n_keys)


def heads_of(key: Ints) -> Ints:
    """Where each run of equal keys begins."""
    if len(key) == 0:
        return np.empty(0, np.int64)
    return np.concatenate([[0], np.nonzero(key[1:] != key[:-1])[0] + 1]).astype(np.int64)


def roll_up(layout: Layout, table: Rows, n_keys: int, start: int) -> Rows:
    """One row per key for the whole table, all with the given start; sorted by key."""
    sorted_ = by_key(table, n_keys)
    rolled = reduce_runs(layout, sorted_, heads_of(sorted_.key))
    return Rows(np.full(len(rolled), start, np.int64), rolled.key, rolled.partials)
