"""Loops over the arithmetic progressions that window edges form."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import NEVER, Bools, Ints
from windowpane.core.jit import kernel

_NEVER = NEVER


@kernel
def progression_edges(phase: Ints, period: Ints, low: int, high: int) -> Ints:
    """Every edge in (low, high], sorted, each once."""
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
    if len(phase) < 2:
        return found
    found.sort()
    kept = 0
    for i in range(total):
        if i == 0 or found[i] != found[i - 1]:
            found[kept] = found[i]
            kept += 1
    return found[:kept].copy()


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

    Most tuples fall into the slice of the one before, so that is tried first (Traub et al. 2019,
    section 5.3, step 1); others start from a grid over the range and walk at most a few edges.
    """
    n, m = len(measure), len(edges)
    if m == 1:
        used[0] = n > 0
        for i in range(n):
            out[i] = 0
        return
    shift = 0
    while ((edges[m - 1] - edges[0]) >> shift) > 4 * m:
        shift += 1
    cells = ((edges[m - 1] - edges[0]) >> shift) + 1
    grid = np.empty(cells, np.int64)
    at = 0
    for c in range(cells):
        while at + 1 < m and edges[at + 1] <= edges[0] + (np.int64(c) << shift):
            at += 1
        grid[c] = at
    here, low, high = 0, edges[0], edges[0]
    for i in range(n):
        t = measure[i]
        if t < low or t >= high:
            c = min((t - edges[0]) >> shift, cells - 1)
            here = grid[c]
            while here + 1 < m and edges[here + 1] <= t:
                here += 1
            used[here] = True
            low = edges[here]
            high = edges[here + 1] if here + 1 < m else np.int64(9223372036854775807)
        out[i] = here
