"""Where a stream begins. Before any tuple, only the first ones themselves can tell which of them are absurd.

The stream begins at the middle one of the first tuples, together with all that are near it: those that are
reached from it, up or down, in steps of at most `max_ahead`. What lies above these is too far ahead.
"""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Bools, Ints


def far_apart(rising: Ints, max_ahead: int) -> Bools:
    """Between which neighbours of rising times a new run begins; the distance of two times may pass int64."""
    return np.asarray(np.diff(rising).view(np.uint64) > np.uint64(max_ahead))


def beginning(low: Ints, top: Ints, rows: Ints, max_ahead: int) -> int:
    """The largest time of the tuples around the middle one; of two in the middle, around the lower.

    Tuples come as runs, within which no gap is above `max_ahead`: the smallest and the largest time, and how
    many rows of it tell where the middle is.
    """
    order = np.argsort(low, kind="stable")
    reach = np.maximum.accumulate(top[order])
    # no sum passes int64: times are within 2**62 of 0, and max_ahead is 2**61 at most
    last = np.append(low[order][1:] > reach[:-1] + max_ahead, True)
    upto = np.cumsum(rows[order])
    middle = np.searchsorted(upto[last], (int(upto[-1]) + 1) // 2)
    return int(reach[last][middle])


def markers_tell(data: int, markers: int) -> bool:
    """Whether markers tell where the stream begins: if there is no data, or of two tuples as the other."""
    return data == 0 or data + markers <= 2


def first_tuples(data: Ints, markers: Ints, max_ahead: int) -> tuple[int, bool]:
    """Where the stream begins by its first tuples (the largest time), and whether only one has a place."""
    both = np.concatenate([data, markers])
    if int(both.max()) - int(both.min()) <= max_ahead:
        return int(both.max()), len(both) == 1
    tell = np.ones(len(both), np.int64)
    tell[len(data) :] = markers_tell(len(data), len(markers))
    start = beginning(both, both, tell, max_ahead)
    return start, int(np.count_nonzero(both <= start)) == 1
