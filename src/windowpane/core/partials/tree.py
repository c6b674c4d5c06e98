"""Aggregates of many ranges with nothing but a vectorised `combine`: in order, for all ranges at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from windowpane.core.arrays import Columns, Ints, Ragged, Values
from windowpane.core.partials.base import take

Combine = Callable[[Columns, Columns], Columns]

_SHORT_MEAN = 8
_SHORT_MOST = 64
"""Up to here one `combine` per position is cheaper than building a tree."""


def combine_ranges(combine: Combine, columns: Columns, low: Ints, high: Ints) -> Columns:
    """The combination of rows `low[i] .. high[i]-1` in order, for every i; columns of fixed width."""
    lengths = high - low
    longest = int(lengths.max(initial=0))
    if longest <= _SHORT_MOST and float(lengths.sum()) <= _SHORT_MEAN * len(low):
        return _step_by_step(combine, columns, low, high, longest)
    first = int(low.min())
    inside = tuple(_plain(cells)[first : int(high.max())] for cells in columns)
    return _climb(combine, inside, low - first, high - first)


def _plain(cells: Values | Ragged) -> Values:
    if isinstance(cells, Ragged):
        raise TypeError("ragged columns have ranges of their own")
    return cells


def _step_by_step(combine: Combine, columns: Columns, low: Ints, high: Ints, longest: int) -> Columns:
    result = take(columns, low)
    for step in range(1, longest):
        at = np.nonzero(low + step < high)[0]
        result = _put(result, at, combine(take(result, at), take(columns, low[at] + step)))
    return result


def _climb(combine: Combine, level: Columns, low: Ints, high: Ints) -> Columns:
    """Level by level: what sticks out on either side is combined, the rest is left to the pairs above.

    Levels are built only while some range still needs them, so up to log2 of the longest.
    """
    left: tuple[Columns, Ints] = (take(level, low), low + 1)  # every range begins with its first row
    result, low = left
    tail: Columns = take(level, high - 1)  # overwritten before it is read: `has_tail` starts False
    has_tail = np.zeros(len(low), np.bool_)
    while True:
        low, result = _add_left(combine, level, low, high, result)
        high, tail = _add_right(combine, level, low, high, tail, has_tail)
        if not bool((low < high).any()):
            break
        low, high = low >> 1, high >> 1
        pairs = len(_plain(level[0])) // 2
        level = combine(_every_other(level, 0, pairs), _every_other(level, 1, pairs))
    at = np.nonzero(has_tail)[0]
    return _put(result, at, combine(take(result, at), take(tail, at)))


def _add_left(
    combine: Combine, level: Columns, low: Ints, high: Ints, result: Columns
) -> tuple[Ints, Columns]:
    at = np.nonzero((low < high) & (low & 1 == 1))[0]
    result = _put(result, at, combine(take(result, at), take(level, low[at])))
    low = low.copy()
    low[at] += 1
    return low, result


def _add_right(
    combine: Combine, level: Columns, low: Ints, high: Ints, tail: Columns, has_tail: Values
) -> tuple[Ints, Columns]:
    at = np.nonzero((low < high) & (high & 1 == 1))[0]
    high = high.copy()
    high[at] -= 1
    fresh, known = at[~has_tail[at]], at[has_tail[at]]
    tail = _put(tail, fresh, take(level, high[fresh]))
    tail = _put(tail, known, combine(take(level, high[known]), take(tail, known)))
    has_tail[at] = True
    return high, tail


def _every_other(level: Columns, start: int, pairs: int) -> Columns:
    return tuple(_plain(cells)[start : 2 * pairs : 2] for cells in level)


def _put(columns: Columns, at: Ints, new: Columns) -> Columns:
    if len(at) == 0:
        return columns
    return tuple(_put_cells(_plain(old), at, _plain(cells)) for old, cells in zip(columns, new, strict=True))


def _put_cells(old: Values, at: Ints, cells: Values) -> Values:
    wide = np.result_type(old.dtype, cells.dtype)
    if old.dtype != wide:
        old = old.astype(wide)
    old[at] = cells
    return old
