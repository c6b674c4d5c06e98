"""Loops over sorted tables: merging by (start, key), ordering by key."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Ints
from windowpane.core.jit import kernel


@kernel
def merge_places(
    old_start: Ints, old_key: Ints, new_start: Ints, new_key: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """How two tables sorted by (start, key) interleave.

    Gives the rows only in the old table, only in the new, the pairs in both, and for each row of the
    merged table its place in the concatenation (only old, only new, both).
    """
    n, m = len(old_start), len(new_start)
    only_old, only_new = np.empty(n, np.int64), np.empty(m, np.int64)
    both_old, both_new = np.empty(min(n, m), np.int64), np.empty(min(n, m), np.int64)
    kind = np.empty(n + m, np.int8)
    i = j = a = b = c = at = 0
    while i < n or j < m:
        if j == m:
            side = 0
        elif i == n:
            side = 1
        elif old_start[i] == new_start[j] and old_key[i] == new_key[j]:
            side = 2
        elif old_start[i] < new_start[j] or (old_start[i] == new_start[j] and old_key[i] < new_key[j]):
            side = 0
        else:
            side = 1
        kind[at] = side
        at += 1
        if side == 0:
            only_old[a] = i
            a += 1
            i += 1
        elif side == 1:
            only_new[b] = j
            b += 1
            j += 1
        else:
            both_old[c] = i
            both_new[c] = j
            c += 1
            i += 1
            j += 1
    place = np.empty(at, np.int64)
    p, q, r = 0, a, a + b
    for t in range(at):
        if kind[t] == 0:
            place[t] = p
            p += 1
        elif kind[t] == 1:
            place[t] = q
            q += 1
        else:
            place[t] = r
            r += 1
    return only_old[:a], only_new[:b], both_old[:c], both_new[:c], place


@kernel
def counting_order(key: Ints, n_keys: int) -> Ints:
    """A stable order by dense key."""
    at = np.zeros(n_keys + 1, np.int64)
    for i in range(len(key)):
        at[key[i] + 1] += 1
    for k in range(n_keys):
        at[k + 1] += at[k]
    order = np.empty(len(key), np.int64)
    for i in range(len(key)):
        order[at[key[i]]] = i
        at[key[i]] += 1
    return order


@kernel
def time_order(time: Ints, tie: Ints) -> Ints:
    """A stable order by (time, tie).

    Most tuples of a stream are in order already. Those that are not below the largest before them stay as
    they are; only the stragglers are sorted, and both are merged.
    """
    n = len(time)
    steady, late = np.empty(n, np.int64), np.empty(n, np.int64)
    s = b = 0
    for i in range(n):
        top = steady[s - 1] if s else 0
        ahead = s == 0 or time[i] > time[top] or (time[i] == time[top] and tie[i] >= tie[top])
        steady[s] = i
        late[b] = i
        s += ahead
        b += not ahead
    if b == 0:
        return steady
    stragglers = late[:b]
    stragglers = stragglers[_radix_order(time[stragglers], tie[stragglers])]
    return merge_order(time, tie, steady[:s], stragglers)


@kernel
def merge_order(time: Ints, tie: Ints, a: Ints, b: Ints) -> Ints:
    """Two lists of positions, each in order of (time, tie), as one; ties go by position."""
    out = np.empty(len(a) + len(b), np.int64)
    i = j = 0
    for at in range(len(out)):
        if j == len(b):
            first = True
        elif i == len(a):
            first = False
        else:
            x, y = a[i], b[j]
            first = time[x] < time[y] or (
                time[x] == time[y] and (tie[x] < tie[y] or (tie[x] == tie[y] and x < y))
            )
        out[at] = a[i] if first else b[j]
        i += first
        j += not first
    return out


@kernel
def _radix_order(time: Ints, tie: Ints) -> Ints:
    """A stable order by (time, tie): radix passes over the times, then the few ties by insertion or merge."""
    n = len(time)
    order = np.arange(n)
    if n < 2:
        return order
    low, high = time.min(), time.max()
    span = np.uint64(high) - np.uint64(low)
    digits = time.astype(np.uint64) - np.uint64(low)
    other_order, other_digits = np.empty(n, np.int64), np.empty(n, np.uint64)
    shift = np.uint64(0)
    while True:
        at = np.zeros(2049, np.int64)
        for i in range(n):
            at[np.int64((digits[i] >> shift) & np.uint64(2047)) + 1] += 1
        for c in range(2048):
            at[c + 1] += at[c]
        for i in range(n):
            d = np.int64((digits[i] >> shift) & np.uint64(2047))
            other_order[at[d]] = order[i]
            other_digits[at[d]] = digits[i]
            at[d] += 1
        order, other_order = other_order, order
        digits, other_digits = other_digits, digits
        shift += np.uint64(11)
        if shift >= np.uint64(64) or (span >> shift) == np.uint64(0):
            break
    i = 0
    while i < n:
        j = i + 1
        while j < n and digits[j] == digits[i]:
            j += 1
        if j - i > 1:
            _order_ties(order, tie, i, j)
        i = j
    return order


@kernel
def _order_ties(order: Ints, tie: Ints, low: int, high: int) -> None:
    if high - low > 64:
        part = order[low:high].copy()
        order[low:high] = part[np.argsort(tie[part], kind="mergesort")]
        return
    for i in range(low + 1, high):
        moving, value = order[i], tie[order[i]]
        j = i - 1
        while j >= low and tie[order[j]] > value:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = moving
