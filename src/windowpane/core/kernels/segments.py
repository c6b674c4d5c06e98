"""Aggregates of many row ranges of one column: a loop where ranges are short, else a flat tree.

Only commutative operators: the flat tree (2n cells, leaves at n) meets nodes out of order.
"""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel

SHORT = 16
"""Mean length up to which a plain loop beats building and climbing a tree."""


@kernel
def sum_ranges(cells: Floats, low: Ints, high: Ints) -> Floats:
    """The sum of each range, never by differences: they would cancel, and keep NaN and inf for ever."""
    out = np.empty(len(low), np.float64)
    if (high - low).sum() <= SHORT * len(low):
        for i in range(len(low)):
            total = cells[low[i]]
            for j in range(low[i] + 1, high[i]):
                total += cells[j]
            out[i] = total
        return out
    n = len(cells)
    tree = np.empty(2 * n, np.float64)
    tree[n:] = cells
    for i in range(n - 1, 0, -1):
        tree[i] = tree[2 * i] + tree[2 * i + 1]
    for i in range(len(low)):
        left = low[i] + n
        right = high[i] + n
        total = 0.0
        while left < right:
            if left & 1:
                total += tree[left]
                left += 1
            if right & 1:
                right -= 1
                total += tree[right]
            left >>= 1
            right >>= 1
        out[i] = total
    return out


@kernel
def min_ranges(cells: Ints, low: Ints, high: Ints) -> Ints:
    """The least cell of each range."""
    out = np.empty(len(low), np.int64)
    if (high - low).sum() <= SHORT * len(low):
        for i in range(len(low)):
            least = cells[low[i]]
            for j in range(low[i] + 1, high[i]):
                least = min(least, cells[j])
            out[i] = least
        return out
    n = len(cells)
    tree = np.empty(2 * n, np.int64)
    tree[n:] = cells
    for i in range(n - 1, 0, -1):
        tree[i] = min(tree[2 * i], tree[2 * i + 1])
    for i in range(len(low)):
        left = low[i] + n
        right = high[i] + n
        least = cells[low[i]]
        while left < right:
            if left & 1:
                least = min(least, tree[left])
                left += 1
            if right & 1:
                right -= 1
                least = min(least, tree[right])
            left >>= 1
            right >>= 1
        out[i] = least
    return out


def max_ranges(cells: Ints, low: Ints, high: Ints) -> Ints:
    """The largest cell of each range: `~` turns the order of integers round without overflow."""
    return ~min_ranges(~cells, low, high)
