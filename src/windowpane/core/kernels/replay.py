"""Counts of values as rows come and go, and what each answer on the way reads from them.

The values of a step stand side by side: those of key k, sorted, at the places `offsets[k] .. offsets[k+1]-1`,
each with how often it is in the window when the step begins. A change is a place where a row comes, or
`~place` where one goes; answer i, for a key, is read after the first `upto[i]` changes. A key without changes
since its last answer has the same answer again.
"""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.rolling import Small


@kernel
def line_up(
    offsets: Ints, codes: Ints, held: Ints, key: Small, code: Ints, n_more: int, more: Ints, less: Ints
) -> tuple[Ints, Small, Ints, Ints]:
    """The changes in order, the key of each, how many come before each point, and the counts after all.

    Rows come (the first `n_more`) and go (the others), both in time order. Before point p is read, `more[p]`
    of them have come and then `less[p]` are gone. Every value has its place.
    """
    changes, of = np.empty(len(code), np.int64), np.empty(len(code), np.int32)
    upto, after = np.empty(len(more), np.int64), held.copy()
    a, e, n = 0, n_more, 0
    for p in range(len(more) + 1):
        a_end = more[p] if p < len(more) else n_more
        e_end = n_more + less[p] if p < len(more) else len(code)
        while a < a_end:
            place = _place(offsets, codes, key[a], code[a])
            changes[n] = place
            of[n] = key[a]
            after[place] += 1
            a += 1
            n += 1
        while e < e_end:
            place = _place(offsets, codes, key[e], code[e])
            changes[n] = ~place
            of[n] = key[e]
            after[place] -= 1
            e += 1
            n += 1
        if p < len(more):
            upto[p] = n
    return changes, of, upto, after


@kernel
def _place(offsets: Ints, codes: Ints, key: int, code: int) -> int:
    low: int = offsets[key]
    size = offsets[key + 1] - low
    while size > 1:
        half = size >> 1
        if codes[low + half] <= code:
            low += half
        size -= half
    return low


@kernel
def replay_distinct(offsets: Ints, start: Ints, changes: Ints, of: Small, key: Small, upto: Ints) -> Ints:
    """The number of distinct values of each answer."""
    held, kinds = start.copy(), np.zeros(len(offsets) - 1, np.int64)
    for k in range(len(kinds)):
        for place in range(offsets[k], offsets[k + 1]):
            kinds[k] += int(held[place] > 0)
    out = np.empty(len(key), np.int64)
    n = 0
    for i in range(len(key)):
        while n < upto[i]:
            place = changes[n]
            if place >= 0:
                kinds[of[n]] += int(held[place] == 0)
                held[place] += 1
            else:
                held[~place] -= 1
                kinds[of[n]] -= int(held[~place] == 0)
            n += 1
        out[i] = kinds[key[i]]
    return out


@kernel
def _running(offsets: Ints, held: Ints) -> Ints:
    """Fenwick's tree of each key's counts, side by side."""
    tree = held.copy()
    for k in range(len(offsets) - 1):
        base, size = offsets[k] - 1, offsets[k + 1] - offsets[k]
        for i in range(1, size + 1):
            above = i + (i & -i)
            if above <= size:
                tree[base + above] += tree[base + i]
    return tree


@kernel
def _kth(tree: Ints, base: int, size: int, top: int, k: int) -> tuple[int, int]:
    """The place among `size` that holds position k, counted from 0, and which of its values that is."""
    at, step = 0, top
    while step > 0:
        if at + step <= size and tree[base + at + step] <= k:
            at += step
            k -= tree[base + at]
        step >>= 1
    return base + at + 1, k


@kernel
def replay_quantiles(
    offsets: Ints, start: Ints, changes: Ints, of: Small, key: Small, upto: Ints, shares: Floats
) -> tuple[Ints, Ints, Floats]:
    """For each answer and share: the places on either side of its position, and how far between.

    The place is -1 where there is no value.
    """
    held, tree = start.copy(), _running(offsets, start)
    n_keys = len(offsets) - 1
    totals, tops, last = np.zeros(n_keys, np.int64), np.ones(n_keys, np.int64), np.full(n_keys, -1, np.int64)
    for k in range(n_keys):
        for place in range(offsets[k], offsets[k + 1]):
            totals[k] += held[place]
        while 2 * tops[k] <= offsets[k + 1] - offsets[k]:
            tops[k] *= 2
    lower = np.full((len(key), len(shares)), -1, np.int64)
    upper = np.full((len(key), len(shares)), -1, np.int64)
    part = np.zeros((len(key), len(shares)), np.float64)
    n = 0
    for i in range(len(key)):
        while n < upto[i]:
            k = of[n]
            sign = 1 if changes[n] >= 0 else -1
            place = changes[n] if changes[n] >= 0 else ~changes[n]
            base, size = offsets[k] - 1, offsets[k + 1] - offsets[k]
            held[place] += sign
            totals[k] += sign
            last[k] = -1
            at = place - base
            while at <= size:
                tree[base + at] += sign
                at += at & -at
            n += 1
        k = key[i]
        same = last[k]
        last[k] = i
        if same >= 0:
            for s in range(len(shares)):
                lower[i, s], upper[i, s], part[i, s] = lower[same, s], upper[same, s], part[same, s]
            continue
        if totals[k] == 0:
            continue
        base, size = offsets[k] - 1, offsets[k + 1] - offsets[k]
        for s in range(len(shares)):
            position = shares[s] * (totals[k] - 1)
            whole = int(position)
            place, which = _kth(tree, base, size, tops[k], whole)
            lower[i, s] = place
            part[i, s] = position - whole
            if whole != position and which + 1 == held[place]:
                place, which = _kth(tree, base, size, tops[k], whole + 1)
            upper[i, s] = place
    return lower, upper, part


@kernel
def _better(held: Ints, a: int, b: int) -> int:
    """Of two places the one with more, or the smaller value."""
    return b if held[b] > held[a] or (held[b] == held[a] and b < a) else a


@kernel
def _winner(tree: Ints, base: int, size: int, node: int) -> int:
    return base + node - size if node >= size else tree[base + node]


@kernel
def _replaying(tree: Ints, held: Ints, base: int, size: int, place: int) -> None:
    """Ask anew who wins, from a place whose count changed up to the root, which is node 1."""
    node = (place - base + size) >> 1
    while node >= 1:
        left, right = _winner(tree, base, size, 2 * node), _winner(tree, base, size, 2 * node + 1)
        best = _better(held, left, right)
        if best == tree[base + node] and best != place:
            return  # above, it is all the same
        tree[base + node] = best
        node >>= 1


@kernel
def replay_frequent(
    offsets: Ints, start: Ints, changes: Ints, of: Small, key: Small, upto: Ints, most: int, share: float
) -> tuple[Ints, Ints, Ints, Ints, Bools]:
    """The at most `most` most frequent places of each answer, of those with at least `share` of the total.

    A tournament for each key says who is first; the next is who wins without those that were first. Gives
    where each answer's list begins in the flat lists, its length, the flat places and counts, and which
    answers have no value at all.
    """
    held, tree = start.copy(), np.empty(len(start), np.int64)
    n_keys = len(offsets) - 1
    totals, last = np.zeros(n_keys, np.int64), np.full(n_keys, -1, np.int64)
    for k in range(n_keys):
        base, size = offsets[k], offsets[k + 1] - offsets[k]
        for place in range(base, base + size):
            totals[k] += held[place]
        for node in range(size - 1, 0, -1):
            left, right = _winner(tree, base, size, 2 * node), _winner(tree, base, size, 2 * node + 1)
            tree[base + node] = _better(held, left, right)
    heads, sizes = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64)
    empty = np.zeros(len(key), np.bool_)
    found, counts = np.empty(1024, np.int64), np.empty(1024, np.int64)
    used = n = 0
    for i in range(len(key)):
        while n < upto[i]:
            k = of[n]
            sign = 1 if changes[n] >= 0 else -1
            place = changes[n] if changes[n] >= 0 else ~changes[n]
            held[place] += sign
            totals[k] += sign
            last[k] = -1
            _replaying(tree, held, offsets[k], offsets[k + 1] - offsets[k], place)
            n += 1
        k = key[i]
        same = last[k]
        last[k] = i
        if same >= 0:
            heads[i], sizes[i], empty[i] = heads[same], sizes[same], empty[same]
            continue
        heads[i], empty[i] = used, totals[k] == 0
        if empty[i]:
            continue
        base, size = offsets[k], offsets[k + 1] - offsets[k]
        while len(found) < used + min(most, size):
            found = np.concatenate((found, np.empty_like(found)))
            counts = np.concatenate((counts, np.empty_like(counts)))
        least = max(1.0, share * totals[k])
        place = _winner(tree, base, size, 1)
        while used - heads[i] < most and held[place] >= least:
            found[used] = place
            counts[used] = held[place]
            used += 1
            held[place] = -held[place]
            _replaying(tree, held, base, size, place)
            place = _winner(tree, base, size, 1)
        for at in range(heads[i], used):
            held[found[at]] = counts[at]
            _replaying(tree, held, base, size, found[at])
        sizes[i] = used - heads[i]
    return heads, sizes, found[:used].copy(), counts[:used].copy(), empty
