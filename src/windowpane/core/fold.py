"""Fold: a batch of tuples becomes rows, one for each non-empty slice of each key."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Bools, Ints, Tuples
from windowpane.core.edges import Edges
from windowpane.core.kernels import cells as kernels
from windowpane.core.kernels import edges as edge_kernels
from windowpane.core.kernels.clock import scan
from windowpane.core.rows import Layout, Rows, no_rows

_DENSE = 4
"""Cells per tuple up to which a dense grid of (slice, key) is cheaper than hashing."""


def fold(layout: Layout, tuples: Tuples, measure: Ints, edges: Edges, n_keys: int, *, rising: bool) -> Rows:
    """Reduce a batch to rows sorted by (start, key); `rising` if the measure never falls."""
    if len(tuples) == 0:
        return no_rows(layout)
    if rising and n_keys <= 1:
        runs = _runs(measure, edges)
        if runs is not None:
            partials = tuple(partial.fold_runs(tuples, runs[1]) for partial in layout)
            return Rows(runs[0], np.zeros(len(runs[0]), np.int64), partials)
    starts, slices, used = slice_of(measure, edges)
    if n_keys > 1:
        return fold_slices(layout, tuples, starts, slices, n_keys)
    # without keys a row is a slice: fold into all of them and drop the empty ones, instead of renumbering
    partials = tuple(partial.fold(tuples, slices, len(starts)) for partial in layout)
    rows = Rows(starts, np.zeros(len(starts), np.int64), partials)
    return rows if bool(used.all()) else rows.take(used)


def _runs(measure: Ints, edges: Edges) -> tuple[Ints, Ints] | None:
    """The slices of a rising measure and where each begins among the tuples; None if edges are too many."""
    low, high = int(measure[0]), int(measure[-1])
    if edges.expected(low, high) > _DENSE * len(measure) + 1024:
        return None
    starts = edges.between(low, high)
    heads = np.searchsorted(measure, starts, side="left")
    heads[0] = 0
    used = np.diff(heads, append=len(measure)) > 0
    return starts[used], heads[used]


def slice_of(measure: Ints, edges: Edges) -> tuple[Ints, Ints, Bools]:
    """Slice starts, the index of each tuple's slice among them, and which slices hold tuples."""
    low, high, _ = scan(measure)
    if edges.expected(low, high) <= _DENSE * len(measure) + 1024:
        starts = edges.between(low, high)
        slices, used = np.empty(len(measure), np.int64), np.zeros(len(starts), np.bool_)
        edge_kernels.slice_index(measure, starts, slices, used)
        return starts, slices, used
    # A few tuples far apart: listing every edge between them would cost more than asking for theirs.
    distinct, back = np.unique(measure, return_inverse=True)
    starts, again = np.unique(edges.floor(distinct), return_inverse=True)
    return starts, again[back].astype(np.int64), np.ones(len(starts), np.bool_)


def fold_slices(layout: Layout, tuples: Tuples, starts: Ints, slices: Ints, n_keys: int) -> Rows:
    """Reduce tuples whose slice is known; rows come sorted by (start, key)."""
    if len(tuples) == 0:
        return no_rows(layout)
    if len(starts) * n_keys <= _DENSE * len(tuples) + 65536:
        used, rows = kernels.used_cells(slices * n_keys + tuples.key, len(starts) * n_keys)
        slice_, key = used // n_keys, used % n_keys
    else:
        slice_, key, rows = _hashed(slices, tuples.key, n_keys)
    partials = tuple(partial.fold(tuples, rows, len(slice_)) for partial in layout)
    return Rows(starts[slice_], key, partials)


def _hashed(slices: Ints, key: Ints, n_keys: int) -> tuple[Ints, Ints, Ints]:
    cells, rows = kernels.hash_cells(slices * n_keys + key)
    order = np.argsort(cells)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    cells = cells[order]
    return cells // n_keys, cells % n_keys, rank[rows]
