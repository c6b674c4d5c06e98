"""Loops that number tuples within their scope and follow markers within their key."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Bools, Ints
from windowpane.core.jit import kernel


@kernel
def number_tuples(scope: Ints, counts: Ints) -> Ints:
    """The position of each tuple in its scope, counting on from `counts`, which is advanced."""
    rank = np.empty(len(scope), np.int64)
    for i in range(len(scope)):
        rank[i] = counts[scope[i]]
        counts[scope[i]] += 1
    return rank


@kernel
def follow_markers(
    key: Ints,
    time: Ints,
    starts: Bools,
    ends: Bools,
    has_start: bool,
    has_end: bool,
    is_open: Bools,
    ordinal: Ints,
    begin: Ints,
    latest: Ints,
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Assign tuples sorted by (key, time) to the windows that markers open and close.

    The per-key state (`is_open`, `ordinal`, `begin`, `latest`) is advanced. Gives each tuple's window
    number (-1: in none) and the windows closed: key, number, start, end.
    """
    n = len(key)
    number = np.full(n, -1, np.int64)
    closed_key, closed_number = np.empty(n, np.int64), np.empty(n, np.int64)
    closed_start, closed_end = np.empty(n, np.int64), np.empty(n, np.int64)
    closed = 0
    i = 0
    while i < n:
        k, t = key[i], time[i]
        j, any_start, any_end = i, False, False
        while j < n and key[j] == k and time[j] == t:
            any_start |= starts[j]
            any_end |= ends[j]
            j += 1
        if any_start and has_start and (not is_open[k] or not has_end):
            if is_open[k]:
                closed_key[closed], closed_number[closed] = k, ordinal[k]
                closed_start[closed], closed_end[closed] = begin[k], t
                closed += 1
                ordinal[k] += 1
            is_open[k] = True
            begin[k] = t
        if not has_start:
            is_open[k] = True
        if is_open[k]:
            number[i:j] = ordinal[k]
            latest[k] = t
        if any_end and has_end and is_open[k]:
            closed_key[closed], closed_number[closed] = k, ordinal[k]
            closed_start[closed], closed_end[closed] = begin[k], t + 1
            closed += 1
            ordinal[k] += 1
            is_open[k] = False
            begin[k] = t + 1
        i = j
    return (
        number,
        closed_key[:closed].copy(),
        closed_number[:closed].copy(),
        closed_start[:closed].copy(),
        closed_end[:closed].copy(),
    )
