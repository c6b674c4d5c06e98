"""Extents: which rows every window holds. One range finder serves slices, sessions and tuples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Bools, Ints
from windowpane.core.kernels import ranges as kernels
from windowpane.core.rows import Rows, heads_of


@dataclass(frozen=True, slots=True)
class WindowList:
    """Windows to compute: the range `[low, high)` on the measure, and what is reported.

    Sorted by (scope, definition, high). `scope` says whose windows they are: -1 for all keys.
    """

    definition: Ints
    low: Ints
    high: Ints
    start: Ints
    end: Ints
    scope: Ints

    def __len__(self) -> int:
        return len(self.low)

    def take(self, at: Ints) -> WindowList:
        """The windows at these positions (or under this mask)."""
        return WindowList(
            self.definition[at], self.low[at], self.high[at], self.start[at], self.end[at], self.scope[at]
        )


def for_all_keys(definition: Ints, low: Ints, high: Ints, start: Ints | None = None) -> WindowList:
    """Windows that every key has, reported as `[start or low, high)`."""
    return WindowList(
        definition, low, high, low if start is None else start, high, np.full(len(low), -1, np.int64)
    )


def join(lists: list[WindowList]) -> WindowList:
    """All windows of several lists, sorted."""
    columns = [
        np.concatenate([getattr(w, name) for w in lists]) if lists else np.empty(0, np.int64)
        for name in _FIELDS
    ]
    both = WindowList(*columns)
    if len(lists) < 2:
        return both
    return both.take(np.lexsort((both.high, both.definition, both.scope)))


_FIELDS = ("definition", "low", "high", "start", "end", "scope")


@dataclass(frozen=True, slots=True)
class Extents:
    """Every non-empty (window, key): the window's index in its list, the key, and the rows `[low, high)`."""

    window: Ints
    key: Ints
    low: Ints
    high: Ints

    def __len__(self) -> int:
        return len(self.window)

    def take(self, at: Ints | Bools) -> Extents:
        """The pairs at these positions (or under this mask)."""
        return Extents(self.window[at], self.key[at], self.low[at], self.high[at])


def extents(table: Rows, windows: WindowList, scope_of_key: Ints | None = None) -> Extents:
    """The rows of each key inside each window; the table is sorted by (key, start).

    `scope_of_key[k]` is the scope whose windows key k belongs to; None when windows are for all keys.
    """
    none = np.empty(0, np.int64)
    if len(table) == 0 or len(windows) == 0:
        return Extents(none, none, none, none)
    heads = heads_of(table.key)
    keys = table.key[heads]
    changes = (windows.definition[1:] != windows.definition[:-1]) | (windows.scope[1:] != windows.scope[:-1])
    group_heads = np.concatenate([[0], np.nonzero(changes)[0] + 1, [len(windows)]]).astype(np.int64)
    if scope_of_key is None:
        first = np.zeros(len(keys), np.int64)
        last = np.full(len(keys), len(group_heads) - 1, np.int64)
    else:
        scopes = windows.scope[group_heads[:-1]]
        first = np.searchsorted(scopes, scope_of_key[keys], side="left")
        last = np.searchsorted(scopes, scope_of_key[keys], side="right")
    inner = np.ones(len(windows), np.bool_)
    inner[group_heads[:-1]] = False
    rising = bool(np.all(windows.low[inner] >= windows.low[np.nonzero(inner)[0] - 1]))
    run, window, low, high = kernels.ranges_by_key(
        table.start, np.append(heads, len(table)), first, last, group_heads, windows.low, windows.high, rising
    )
    return Extents(window, keys[run], low, high)


def relocate(table: Rows, windows: WindowList, pairs: Extents) -> Extents:
    """The same (window, key) pairs, with their rows in another table sorted by (key, start)."""
    heads = heads_of(table.key)
    low, high = kernels.locate_ranges(
        table.start,
        np.append(heads, len(table)),
        table.key[heads],
        pairs.key,
        windows.low[pairs.window],
        windows.high[pairs.window],
    )
    return Extents(pairs.window, pairs.key, low, high)
