"""Loops that fold tuples into rows. Rows come mostly in runs, so each run is reduced in registers.

Nulls are filled with a neutral value or removed by the caller: a copy costs less than more kernels.
"""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.jit import kernel


@kernel
def run_end(rows: Ints, start: int) -> int:
    """The end of the run of equal rows that begins at `start`."""
    row = rows[start]
    end = start + 1
    while end < len(rows) and rows[end] == row:
        end += 1
    return end


@kernel
def scattered(rows: Ints) -> bool:
    """Whether rows change so often that walking them run by run would mispredict at every turn."""
    n = min(len(rows), 4096)
    changes = 0
    for i in range(1, n):
        changes += rows[i] != rows[i - 1]
    return changes * 16 > n


@kernel
def count(rows: Ints, n_rows: int) -> Ints:
    """The number of tuples of each row."""
    if scattered(rows):
        return _count_scattered(rows, n_rows)
    out = np.zeros(n_rows, np.int64)
    start = 0
    while start < len(rows):
        end = run_end(rows, start)
        out[rows[start]] += end - start
        start = end
    return out


@kernel
def _count_scattered(rows: Ints, n_rows: int) -> Ints:
    """Four cells per row, so that neighbours of the same row do not wait for each other's store."""
    cells = np.zeros(4 * n_rows, np.int64)
    for i in range(len(rows)):
        # unsigned, because Numba then does not test for counting from the end
        cells[np.uint64(rows[i]) * np.uint64(4) + np.uint64(i & 3)] += 1
    return cells[0::4] + cells[1::4] + cells[2::4] + cells[3::4]


@kernel
def sum_small_ints(rows: Ints, values: Ints, n_rows: int) -> Ints:
    """Sums that the caller knows to fit int64."""
    if scattered(rows):
        return _sum_scattered(rows, values, n_rows)
    out = np.zeros(n_rows, np.int64)
    start = 0
    while start < len(rows):
        end = run_end(rows, start)
        total = np.int64(0)
        for i in range(start, end):
            total += values[i]
        out[rows[start]] += total
        start = end
    return out


@kernel
def _sum_scattered(rows: Ints, values: Ints, n_rows: int) -> Ints:
    """As `_count_scattered`."""
    cells = np.zeros(4 * n_rows, np.int64)
    for i in range(len(rows)):
        cells[np.uint64(rows[i]) * np.uint64(4) + np.uint64(i & 3)] += values[i]
    return cells[0::4] + cells[1::4] + cells[2::4] + cells[3::4]


@kernel
def sum_int_runs(values: Ints, heads: Ints) -> Ints:
    """Sums of neighbouring tuples, which the caller knows to fit int64."""
    out = np.zeros(len(heads), np.int64)
    for r in range(len(heads)):
        end = heads[r + 1] if r + 1 < len(heads) else len(values)
        total = np.int64(0)
        for i in range(heads[r], end):
            total += values[i]
        out[r] = total
    return out


@kernel
def sum_float_runs(values: Floats, heads: Ints) -> Floats:
    """Sums of neighbouring tuples."""
    out = np.zeros(len(heads), np.float64)
    for r in range(len(heads)):
        out[r] = sum_slice(values, heads[r], heads[r + 1] if r + 1 < len(heads) else len(values))
    return out


@kernel
def sum_ints(rows: Ints, values: Ints, n_rows: int) -> tuple[Ints, Ints]:
    """Sums of the upper and of the lower 32 bits, which cannot overflow below 2**31 tuples."""
    high = np.zeros(n_rows, np.int64)
    low = np.zeros(n_rows, np.int64)
    for i in range(len(rows)):
        high[rows[i]] += values[i] >> 32
        low[rows[i]] += values[i] & 0xFFFFFFFF
    return high, low


@kernel
def sum_floats(rows: Ints, values: Floats, n_rows: int) -> Floats:
    """Float sums; four accumulators hide the latency of an addition."""
    out = np.zeros(n_rows, np.float64)
    start = 0
    while start < len(rows):
        end = run_end(rows, start)
        if end - start == 1:
            out[rows[start]] += values[start]
        else:
            out[rows[start]] += sum_slice(values, start, end)
        start = end
    return out


@kernel
def sum_slice(values: Floats, start: int, end: int) -> float:
    """The sum of `values[start:end]`."""
    a = b = c = d = 0.0
    i = start
    while i + 4 <= end:
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        i += 4
    while i < end:
        a += values[i]
        i += 1
    return (a + b) + (c + d)


@kernel
def min_ints(rows: Ints, values: Ints, n_rows: int) -> Ints:
    """The least value of each row; the largest integer where there is none."""
    out = np.full(n_rows, np.iinfo(np.int64).max, np.int64)
    start = 0
    while start < len(rows):
        end = run_end(rows, start)
        least = out[rows[start]]
        for i in range(start, end):
            least = min(least, values[i])
        out[rows[start]] = least
        start = end
    return out


@kernel
def max_ints(rows: Ints, values: Ints, n_rows: int) -> Ints:
    """The largest value of each row; the least integer where there is none."""
    out = np.full(n_rows, np.iinfo(np.int64).min, np.int64)
    start = 0
    while start < len(rows):
        end = run_end(rows, start)
        most = out[rows[start]]
        for i in range(start, end):
            most = max(most, values[i])
        out[rows[start]] = most
        start = end
    return out


@kernel
def best_of_rows(rows: Ints, first: Ints, second: Ints, third: Ints, n_rows: int) -> Ints:
    """The position of the tuple with the least (first, second, third) of each row; -1 where there is none."""
    out = np.full(n_rows, -1, np.int64)
    start = 0
    while start < len(rows):
        end = run_end(rows, start)
        best = out[rows[start]]
        if best < 0:
            best = start
        a, b, c = first[best], second[best], third[best]
        for i in range(start, end):
            if first[i] > a:
                continue
            if first[i] < a or second[i] < b or (second[i] == b and third[i] < c):
                best = i
                a, b, c = first[i], second[i], third[i]
        out[rows[start]] = best
        start = end
    return out


@kernel
def count_valid(rows: Ints, valid: Bools, n_rows: int) -> Ints:
    """The number of valid tuples of each row."""
    out = np.zeros(n_rows, np.int64)
    start = 0
    while start < len(rows):
        end = run_end(rows, start)
        held = 0
        for i in range(start, end):
            held += valid[i]
        out[rows[start]] += held
        start = end
    return out


@kernel
def magnitude(values: Ints) -> np.int64:
    """A number of at least as many bits as any of the values without its sign."""
    bits = np.int64(0)
    for value in values:
        bits |= value ^ (value >> 63)
    return bits
