"""Forward context aware windows: which windows kept tuples define, and which tuples they still need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import ALWAYS, Bools, Column, Ints, Tuples, Values
from windowpane.core.closing import multiples
from windowpane.core.emission import Moment
from windowpane.core.extents import WindowList
from windowpane.core.jit import kernel
from windowpane.core.kernels.ranges import first_at_least
from windowpane.values.windows import ContextAwareWindow, LastRows, PerRow

Forward = PerRow | LastRows | ContextAwareWindow
ARRIVAL = "$arrival"
"""The column with each tuple's position in its scope by arrival, numbered on entry."""


@dataclass(frozen=True, slots=True)
class Known:
    """The kept tuples in event-time order, each with its scope and its rank in the scope."""

    tuples: Tuples
    scope: Ints
    rank: Ints


def list_windows(number: int, window: Forward, known: Known, ends: Moment, *, scoped: bool) -> WindowList:
    """The windows of one definition that close above the moment's `before` and not above its `bound`."""
    after, upto = ends.before, ends.bound
    match window:
        case PerRow():
            scope, low, high, start, end = _per_row(window, known, after, upto, scoped=scoped)
        case LastRows():
            scope, low, high, start, end = _last_rows(window, known, ends, scoped=scoped)
        case ContextAwareWindow():
            scope, low, high, start, end = _own(window, known, after, upto)
    listed = WindowList(np.full(len(low), number, np.int64), low, high, start, end, scope)
    return listed.take(np.lexsort((listed.high, listed.scope)))


def closing_time(window: Forward, ends: Ints) -> Ints:
    """The bound that closes windows with these reported ends; `(t - size, t]` needs all tuples at t."""
    return ends + 1 if isinstance(window, PerRow) else ends


def reach(window: Forward, known: Known, settled: int, n_scopes: int) -> Bools:
    """Which tuples a window that closes above `settled` may hold."""
    time = known.tuples.time
    match window:
        case PerRow():
            return time > settled - window.size
        case LastRows():
            below = np.bincount(known.scope[time < settled], minlength=n_scopes)
            first = np.full(n_scopes, ALWAYS, np.int64)
            first[known.scope[::-1]] = known.rank[::-1]  # ranks rise, so the first of a scope stays
            return known.rank >= (first + below)[known.scope] - window.size
        case ContextAwareWindow():
            return time >= settled - window.horizon


_Lists = tuple[Ints, Ints, Ints, Ints, Ints]


def _per_row(window: PerRow, known: Known, after: int, upto: int, *, scoped: bool) -> _Lists:
    time = known.tuples.time
    position = known.rank
    if window.order == "arrival" and len(time):
        position = known.tuples.columns[ARRIVAL].values
    chosen = (time >= after) & (time < upto) & ((position + 1) % window.every == 0)
    scope = known.scope[chosen] if scoped else np.full(int(chosen.sum()), -1, np.int64)
    # equal times name the same window
    both = np.unique(np.stack([scope, time[chosen]]), axis=1)
    scope, end = both[0], both[1]
    return scope, end - window.size + 1, end + 1, end - window.size, end


def _last_rows(window: LastRows, known: Known, ends: Moment, *, scoped: bool) -> _Lists:
    after, upto, none = ends.before, ends.bound, np.empty(0, np.int64)
    time = known.tuples.time
    if len(time) == 0 or upto <= max(after, int(time[0])):
        return none, none, none, none, none
    latest = (max(int(time[-1]), ends.high) - window.origin) // window.every + 1
    first = (max(after, int(time[0])) - window.origin) // window.every + 1
    last = latest if upto == ALWAYS else (upto - window.origin) // window.every
    if last < first:
        return none, none, none, none, none
    ticks = multiples(0, 1, first - 1, last) * window.every + window.origin
    order = np.argsort(known.scope, kind="stable") if scoped else np.arange(len(time))
    scope = known.scope[order]
    heads = np.concatenate([[0], np.nonzero(scope[1:] != scope[:-1])[0] + 1, [len(scope)]]).astype(np.int64)
    run, low, high, start, end = _ticks(time[order], known.rank[order], heads, ticks, window.size)
    return (scope[heads[run]] if scoped else np.full(len(run), -1, np.int64)), low, high, start, end


@kernel
def _ticks(
    time: Ints, rank: Ints, heads: Ints, ticks: Ints, size: int
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """For each scope and tick the ranks of the last tuples below the tick."""
    total = (len(heads) - 1) * len(ticks)
    run, low, high = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    start, end = np.empty(total, np.int64), np.empty(total, np.int64)
    n = 0
    for i in range(len(heads) - 1):
        for tick in ticks:
            at = first_at_least(time, heads[i], heads[i + 1], tick)
            if at > heads[i]:
                run[n] = i
                high[n] = rank[at - 1] + 1
                low[n] = high[n] - size
                start[n] = time[max(heads[i], at - size)]
                end[n] = tick
                n += 1
    return run[:n].copy(), low[:n].copy(), high[:n].copy(), start[:n].copy(), end[:n].copy()


def _own(window: ContextAwareWindow, known: Known, after: int, upto: int) -> _Lists:
    tuples, none = known.tuples, np.empty(0, np.int64)
    if len(tuples) == 0:
        return none, none, none, none, none
    order = np.argsort(tuples.key, kind="stable")
    columns = {name: _filled(tuples.columns[name])[order] for name in window.columns}
    found = window.windows(tuples.key[order], tuples.time[order], columns)
    listed = np.stack([np.asarray(a, np.int64) for a in found])
    # tuples of one time may name the same window
    key, start, end = np.unique(listed[:, (listed[2] > after) & (listed[2] <= upto)], axis=1)
    return key, start, end, start, end


def _filled(column: Column) -> Values:
    """What a user's window sees: 0, False or NaN where there is null."""
    if column.valid is None:
        return column.values
    return np.where(column.valid, column.values, np.nan if column.values.dtype.kind == "f" else 0)
