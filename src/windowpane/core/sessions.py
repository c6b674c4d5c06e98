"""Sessions: bursts of one key, merged from rows that are no wider than the gap.

All tuples of such a row are at most the gap apart, so they belong to one session whatever else arrives.
Rows and sessions therefore only ever merge; nothing is split or recomputed (Traub et al. 2019, 5.1).
Two tuples exactly the gap apart are in one session.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windowpane.core.arrays import ALWAYS, Bools, Ints
from windowpane.core.jit import kernel
from windowpane.core.partials.counts import plain
from windowpane.core.partials.span import Span
from windowpane.core.rows import Layout, Rows, reduce_runs, stack


@dataclass(frozen=True)
class Sessions:
    """The sessions of one definition that may still grow or be revised; rows sorted by (key, first time)."""

    layout: Layout
    gap: int
    since: int
    rows: Rows

    def insert(self, new: Rows) -> Sessions:
        """Merge rows in."""
        new = new.take(span(self.layout, new)[0] >= self.since)
        if len(new) == 0:
            return self
        both = stack([self.rows, new])
        first, last = span(self.layout, both)
        order = np.lexsort((first, both.key))
        heads = _session_heads(both.key[order], first[order], last[order], self.gap)
        merged = reduce_runs(self.layout, both.take(order), heads)
        return replace(self, rows=Rows(span(self.layout, merged)[0], merged.key, merged.partials))

    def touched(self, new: Rows) -> Bools:
        """Which sessions hold tuples of these rows, all of which were inserted."""
        first = span(self.layout, new)[0]
        seen = first >= self.since
        hit = np.zeros(len(self.rows), np.bool_)
        _mark_sessions(self.rows.key, self.rows.start, new.key[seen], first[seen], hit)
        return hit

    def ends(self) -> Ints:
        """The reported end of each session: its last tuple plus the gap."""
        return span(self.layout, self.rows)[1] + self.gap

    def closed(self, bound: int) -> Bools:
        """Which sessions no tuple at or after `bound` can join."""
        if bound == ALWAYS:
            return np.ones(len(self.rows), np.bool_)
        return self.ends() < bound

    def keep(self, which: Bools) -> Sessions:
        """Only these sessions."""
        return self if bool(which.all()) else replace(self, rows=self.rows.take(which))


def span(layout: Layout, rows: Rows) -> tuple[Ints, Ints]:
    """The first and last tuple time of each row."""
    columns = rows.partials[layout.index(Span())]
    return plain(columns, 0), plain(columns, 1)


@kernel
def _session_heads(key: Ints, first: Ints, last: Ints, gap: int) -> Ints:
    """Where a new session begins in rows sorted by (key, first)."""
    heads = np.empty(len(key), np.int64)
    n, reach = 0, np.int64(0)
    for i in range(len(key)):
        if i == 0 or key[i] != key[i - 1] or first[i] - gap > reach:
            heads[n] = i
            n += 1
            reach = last[i]
        else:
            reach = max(reach, last[i])
    return heads[:n].copy()


@kernel
def _mark_sessions(key: Ints, start: Ints, new_key: Ints, new_first: Ints, hit: Bools) -> None:
    """Mark the last session of the same key that starts at or before each new row."""
    for i in range(len(new_key)):
        low, high = 0, len(key)
        while low < high:
            middle = (low + high) >> 1
            if key[middle] < new_key[i] or (key[middle] == new_key[i] and start[middle] <= new_first[i]):
                low = middle + 1
            else:
                high = middle
        if low > 0 and key[low - 1] == new_key[i]:
            hit[low - 1] = True
