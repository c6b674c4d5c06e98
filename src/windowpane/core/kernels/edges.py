"""Loops over the arithmetic progressions that window edges form."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import NEVER, Bools, Ints
from windowpane.core.jit import kernel

_NEVER = NEVER


@kernel
def progression_edges(phase: Ints, period: Ints, low: int, high: int) -> Ints:
    """Every edge in (low, high], progression by progression; the same edge may come from several."""
    total = 0
    for i in range(len(phase)):
        total += (high - phase[i]) // period[i] - (low - phase[i]) // period[i]
    found = np.empty(total, np.int64)
    at = 0
    for i in range(len(phase)):
        first, last = (low - phase[i]) // period[i] + 1, (high - phase[i]) // period[i]
        for k in range(first, last + 1):
            found[at] = phase[i] + k * period[i]
            at += 1
    return found


@kernel
def progression_floor(phase: Ints, period: Ints, times: Ints) -> Ints:
    """The last edge at or below each time; NEVER where there is no progression."""
    out = np.full(len(times), _NEVER, np.int64)
    for i in range(len(times)):
        for j in range(len(phase)):
            edge = phase[j] + (times[i] - phase[j]) // period[j] * period[j]
            if edge > out[i]:
                out[i] = edge
    return out


@kernel
def slice_index(measure: Ints, edges: Ints, out: Ints, used: Bools) -> None:
    """Which slice `[edges[i], edges[i+1])` holds each value; the last slice is open. Marks slices as used.

    A grid over the range says where to begin. If no cell of it holds two edges, one comparison decides and
    there are no branches for disorder to mispredict; otherwise a few edges are walked.
    """
    n, m = len(measure), len(edges)
    if m == 1:
        used[0] = n > 0
        for i in range(n):
            out[i] = 0
        return
    closest = edges[1] - edges[0]
    for i in range(2, m):
        closest = min(closest, edges[i] - edges[i - 1])
    reach = edges[m - 1] - edges[0]
    shift = 0
    while (np.int64(2) << shift) <= closest:
        shift += 1
    single = (reach >> shift) <= 16 * m + 4096
    while (reach >> shift) > 16 * m + 4096:
        shift += 1
    grid = _grid(edges, shift)
    ends = np.append(edges[1:], np.int64(9223372036854775807))
    # indexes are unsigned, because Numba then does not test them for counting from the end
    base, last, step = edges[0], np.uint64(len(grid) - 1), np.uint64(shift)
    if single:
        for i in range(n):
            here = np.uint64(grid[min(np.uint64(measure[i] - base) >> step, last)])
            here += np.uint64(ends[here] <= measure[i])
            used[here] = True
            out[i] = np.int64(here)
        return
    for i in range(n):
        here = np.uint64(grid[min(np.uint64(measure[i] - base) >> step, last)])
        while ends[here] <= measure[i]:
            here += np.uint64(1)
        used[here] = True
        out[i] = np.int64(here)


@kernel
def _grid(edges: Ints, shift: int) -> Ints:
    """For each cell of 2**shift, counted from the first edge, the last edge at or below its start."""
    cells = ((edges[-1] - edges[0]) >> shift) + 1
    grid = np.empty(cells, np.int64)
    at = 0
    for c in range(cells):
        while at + 1 < len(edges) and edges[at + 1] <= edges[0] + (np.int64(c) << shift):
            at += 1
        grid[c] = at
    return grid
