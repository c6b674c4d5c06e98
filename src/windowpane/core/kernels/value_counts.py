"""Loops over sorted runs of (value, how often): make them, merge them, and count them as a window moves.

A walk keeps one histogram over the ranks of all values and moves from range to range by adding and
removing the rows that differ. `coarse` counts whole blocks of `fine`, so that finding the k-th value
looks at one block only.
"""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel


@kernel
def number(values: Ints) -> tuple[Ints, Ints]:
    """The distinct values in order of appearance, and the index of each value among them."""
    bits = 10
    slots = np.full(1 << bits, -1, np.int64)
    found = np.empty(len(values), np.int64)
    index = np.empty(len(values), np.int64)
    used = 0
    for i in range(len(values)):
        at = _slot(values[i], bits)
        while slots[at] >= 0 and found[slots[at]] != values[i]:
            at = (at + 1) & (len(slots) - 1)
        if slots[at] < 0:
            slots[at] = used
            found[used] = values[i]
            used += 1
        index[i] = slots[at]
        if 2 * used >= len(slots):
            bits += 2
            slots = np.full(1 << bits, -1, np.int64)
            for known in range(used):
                at = _slot(found[known], bits)
                while slots[at] >= 0:
                    at = (at + 1) & (len(slots) - 1)
                slots[at] = known
    return found[:used].copy(), index


@kernel
def _slot(value: int, bits: int) -> np.int64:
    """Fibonacci hashing by the top bits: codes of floats often differ in their upper bits only."""
    mixed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(64 - bits))


@kernel
def grid_runs(rows: Ints, ranks: Ints, n_rows: int, n_ranks: int) -> tuple[Ints, Ints, Ints]:
    """Runs by counting every (row, rank): offsets, ranks and counts."""
    grid = np.zeros(n_rows * n_ranks, np.int64)
    for i in range(len(rows)):
        grid[rows[i] * n_ranks + ranks[i]] += 1
    total = 0
    for cell in range(len(grid)):
        total += int(grid[cell] > 0)
    offsets = np.zeros(n_rows + 1, np.int64)
    values = np.empty(total, np.int64)
    weights = np.empty(total, np.int64)
    n = 0
    for row in range(n_rows):
        for rank in range(n_ranks):
            held = grid[row * n_ranks + rank]
            if held > 0:
                values[n] = rank
                weights[n] = held
                n += 1
        offsets[row + 1] = n
    return offsets, values, weights


@kernel
def sorted_runs(cells: Ints, weights: Ints, n_rows: int, n_ranks: int) -> tuple[Ints, Ints, Ints]:
    """Runs of sorted cells `row * n_ranks + rank`; empty `weights` stand for ones."""
    offsets = np.zeros(n_rows + 1, np.int64)
    values = np.empty(len(cells), np.int64)
    totals = np.empty(len(cells), np.int64)
    n = 0
    for i in range(len(cells)):
        weight = weights[i] if len(weights) else 1
        if i > 0 and cells[i] == cells[i - 1]:
            totals[n - 1] += weight
        else:
            row = cells[i] // n_ranks
            values[n] = cells[i] - row * n_ranks
            totals[n] = weight
            offsets[row + 1] += 1
            n += 1
    for row in range(n_rows):
        offsets[row + 1] += offsets[row]
    return offsets, values[:n].copy(), totals[:n].copy()


@kernel
def merge_runs(
    a_offsets: Ints, a_values: Ints, a_weights: Ints, b_offsets: Ints, b_values: Ints, b_weights: Ints
) -> tuple[Ints, Ints, Ints]:
    """Row by row the runs of both, sorted, equal values as one."""
    offsets = np.zeros(len(a_offsets), np.int64)
    values = np.empty(len(a_values) + len(b_values), np.int64)
    weights = np.empty(len(a_values) + len(b_values), np.int64)
    n = 0
    for row in range(len(a_offsets) - 1):
        i, j = a_offsets[row], b_offsets[row]
        while i < a_offsets[row + 1] or j < b_offsets[row + 1]:
            in_a = i < a_offsets[row + 1] and (j == b_offsets[row + 1] or a_values[i] <= b_values[j])
            in_b = j < b_offsets[row + 1] and (i == a_offsets[row + 1] or b_values[j] <= a_values[i])
            weights[n] = 0
            if in_a:
                values[n] = a_values[i]
                weights[n] += a_weights[i]
                i += 1
            if in_b:
                values[n] = b_values[j]
                weights[n] += b_weights[j]
                j += 1
            n += 1
        offsets[row + 1] = n
    if n == len(values):
        return offsets, values, weights
    return offsets, values[:n].copy(), weights[:n].copy()


@kernel
def drop_zeros(offsets: Ints, values: Ints, weights: Ints) -> tuple[Ints, Ints, Ints]:
    """The runs without those of weight 0."""
    total = 0
    for i in range(len(weights)):
        total += int(weights[i] != 0)
    kept_offsets = np.zeros(len(offsets), np.int64)
    kept, held = np.empty(total, np.int64), np.empty(total, np.int64)
    n = 0
    for row in range(len(offsets) - 1):
        for i in range(offsets[row], offsets[row + 1]):
            if weights[i] != 0:
                kept[n] = values[i]
                held[n] = weights[i]
                n += 1
        kept_offsets[row + 1] = n
    return kept_offsets, kept, held


@kernel
def _change(ranks: Ints, weights: Ints, begin: int, end: int, sign: int, fine: Ints, coarse: Ints) -> int:
    """Add or remove runs; gives by how many the distinct values changed."""
    shift = coarse[-1]
    distinct = 0
    for i in range(begin, end):
        rank = ranks[i]
        before = fine[rank]
        after = before + sign * weights[i]
        fine[rank] = after
        coarse[rank >> shift] += sign * weights[i]
        distinct += int(after != 0) - int(before != 0)
    return distinct


@kernel
def _move(
    ranks: Ints, weights: Ints, begin: int, end: int, new_begin: int, new_end: int, fine: Ints, coarse: Ints
) -> int:
    """Turn the histogram of runs [begin, end) into that of [new_begin, new_end)."""
    if new_begin >= end or new_end <= begin:
        distinct = _change(ranks, weights, begin, end, -1, fine, coarse)
        return distinct + _change(ranks, weights, new_begin, new_end, 1, fine, coarse)
    distinct = _change(ranks, weights, begin, new_begin, -1, fine, coarse)
    distinct += _change(ranks, weights, new_begin, begin, 1, fine, coarse)
    distinct += _change(ranks, weights, new_end, end, -1, fine, coarse)
    return distinct + _change(ranks, weights, end, new_end, 1, fine, coarse)


@kernel
def _blocks(n_ranks: int) -> Ints:
    """Empty coarse counts for blocks of about the square root of all ranks; the last cell is the shift."""
    shift = 7
    while 1 << (2 * shift) < n_ranks:
        shift += 1
    coarse = np.zeros((n_ranks >> shift) + 2, np.int64)
    coarse[-1] = shift
    return coarse


@kernel
def _totals(weights: Ints) -> Ints:
    """How many values stand before each run, and after the last."""
    totals = np.zeros(len(weights) + 1, np.int64)
    for i in range(len(weights)):
        totals[i + 1] = totals[i] + weights[i]
    return totals


@kernel
def _kth(fine: Ints, coarse: Ints, k: int) -> int:
    """The rank that holds position k, counted from 0."""
    block = 0
    while coarse[block] <= k:
        k -= coarse[block]
        block += 1
    rank: int = block << coarse[-1]
    while fine[rank] <= k:
        k -= fine[rank]
        rank += 1
    return rank


@kernel
def walk_quantiles(
    ranks: Ints, weights: Ints, begin: Ints, end: Ints, order: Ints, n_ranks: int, shares: Floats
) -> tuple[Ints, Ints, Floats]:
    """For each range of runs and each share: the ranks on either side of its position, and how far between.

    The rank is -1 where the range is empty.
    """
    fine, coarse, totals = np.zeros(n_ranks, np.int64), _blocks(n_ranks), _totals(weights)
    lower = np.full((len(begin), len(shares)), -1, np.int64)
    upper = np.full((len(begin), len(shares)), -1, np.int64)
    part = np.zeros((len(begin), len(shares)), np.float64)
    a = b = 0
    for at in order:
        _move(ranks, weights, a, b, begin[at], end[at], fine, coarse)
        a, b = begin[at], end[at]
        total = totals[b] - totals[a]
        if total == 0:
            continue
        for s in range(len(shares)):
            position = shares[s] * (total - 1)
            k = int(position)
            lower[at, s] = _kth(fine, coarse, k)
            upper[at, s] = lower[at, s] if k == position else _kth(fine, coarse, k + 1)
            part[at, s] = position - k
    return lower, upper, part


@kernel
def walk_distinct(ranks: Ints, weights: Ints, begin: Ints, end: Ints, order: Ints, n_ranks: int) -> Ints:
    """The number of distinct values of each range of runs."""
    fine, coarse = np.zeros(n_ranks, np.int64), _blocks(n_ranks)
    out = np.zeros(len(begin), np.int64)
    a = b = distinct = 0
    for at in order:
        distinct += _move(ranks, weights, a, b, begin[at], end[at], fine, coarse)
        a, b = begin[at], end[at]
        out[at] = distinct
    return out


@kernel
def walk_frequent(
    ranks: Ints, weights: Ints, begin: Ints, end: Ints, order: Ints, n_ranks: int, most: int, share: float
) -> tuple[Ints, Ints, Ints, Ints]:
    """The at most `most` most frequent ranks of each range, of those with at least `share` of the total.

    Gives where each range's list begins in the flat lists, its length, and the flat ranks and counts.
    """
    fine, coarse, totals = np.zeros(n_ranks, np.int64), _blocks(n_ranks), _totals(weights)
    heads, sizes = np.zeros(len(begin), np.int64), np.zeros(len(begin), np.int64)
    found, counts = np.empty(1024, np.int64), np.empty(1024, np.int64)
    used = a = b = 0
    for at in order:
        _move(ranks, weights, a, b, begin[at], end[at], fine, coarse)
        a, b = begin[at], end[at]
        while len(found) < used + min(most, n_ranks, b - a):
            found = np.concatenate((found, np.empty_like(found)))
            counts = np.concatenate((counts, np.empty_like(counts)))
        least = max(1.0, share * (totals[b] - totals[a]))
        heads[at] = used
        if b - a < n_ranks:
            sizes[at] = _select_of_runs(ranks, a, b, fine, least, most, found[used:], counts[used:])
        else:
            n = 0
            for rank in range(n_ranks):
                if fine[rank] >= least:
                    n = _insert(rank, fine[rank], n, most, found[used:], counts[used:])
            sizes[at] = n
        used += sizes[at]
    return heads, sizes, found[:used].copy(), counts[:used].copy()


@kernel
def _select_of_runs(
    ranks: Ints, begin: int, end: int, fine: Ints, least: float, most: int, found: Ints, counts: Ints
) -> int:
    """Look at the runs of a small range only; a negative count marks a rank that was seen already."""
    n = 0
    for i in range(begin, end):
        held = fine[ranks[i]]
        if held >= least:
            n = _insert(ranks[i], held, n, most, found, counts)
        if held > 0:
            fine[ranks[i]] = -held
    for i in range(begin, end):
        fine[ranks[i]] = abs(fine[ranks[i]])
    return n


@kernel
def _insert(rank: int, held: int, n: int, most: int, found: Ints, counts: Ints) -> int:
    """Put a rank in its place by count, then by rank; the list never grows beyond `most`."""
    at = min(n, most - 1)
    if n == most and not (held > counts[at] or (held == counts[at] and rank < found[at])):
        return n
    while at > 0 and (held > counts[at - 1] or (held == counts[at - 1] and rank < found[at - 1])):
        counts[at] = counts[at - 1]
        found[at] = found[at - 1]
        at -= 1
    counts[at] = held
    found[at] = rank
    return min(n + 1, most)
