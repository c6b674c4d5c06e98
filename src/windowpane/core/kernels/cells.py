"""Loops that number the cells (slice, key) that a batch of tuples falls into."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Ints
from windowpane.core.jit import kernel


@kernel
def used_cells(cells: Ints, n_cells: int) -> tuple[Ints, Ints]:
    """The cells that occur, sorted, and for each tuple the index of its cell among them."""
    row = np.full(n_cells, -1, np.int64)
    last = -1
    for i in range(len(cells)):
        if cells[i] != last:
            last = cells[i]
            row[last] = 0
    used = np.empty(n_cells, np.int64)
    n = 0
    for c in range(n_cells):
        if row[c] == 0:
            row[c] = n
            used[n] = c
            n += 1
    if n == n_cells:
        return used, cells
    rows = np.empty(len(cells), np.int64)
    for i in range(len(cells)):
        rows[i] = row[cells[i]]
    return used[:n].copy(), rows


@kernel
def hash_cells(cells: Ints) -> tuple[Ints, Ints]:
    """The cells that occur, in order of appearance, and for each tuple the index of its cell among them."""
    n = len(cells)
    size = 64
    while size < 2 * n:
        size *= 2
    # Start small: a batch has far fewer cells than tuples, and a small table stays in the cache.
    size = min(size, 4096)
    slot_row = np.full(size, -1, np.int64)
    found = np.empty(n, np.int64)
    rows = np.empty(n, np.int64)
    used = 0
    for i in range(n):
        if 2 * used >= size:
            size *= 4
            slot_row = np.full(size, -1, np.int64)
            for r in range(used):
                at = _slot(found[r], size)
                while slot_row[at] >= 0:
                    at = (at + 1) & (size - 1)
                slot_row[at] = r
        at = _slot(cells[i], size)
        while slot_row[at] >= 0 and found[slot_row[at]] != cells[i]:
            at = (at + 1) & (size - 1)
        if slot_row[at] < 0:
            slot_row[at] = used
            found[used] = cells[i]
            used += 1
        rows[i] = slot_row[at]
    return found[:used].copy(), rows


@kernel
def _slot(cell: int, size: int) -> np.int64:
    """Fibonacci hashing; the high bits of the product are the well-mixed ones, so they are folded in."""
    mixed = np.uint64(cell) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(size - 1))
