"""The ledger: which answers went out and may still be revised because of allowed lateness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Bools, Ints


def _none() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of keys by identity: the definition, the key, and the reported start and end."""

    definition: Ints
    key: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.definition)

    def take(self, at: Ints | Bools) -> Windows:
        """The windows at these positions (or under this mask)."""
        return Windows(self.definition[at], self.key[at], self.start[at], self.end[at])


def no_windows() -> Windows:
    """The empty list."""
    return Windows(_none(), _none(), _none(), _none())


@dataclass(frozen=True, slots=True)
class Ledger:
    """Answers that were given, each with its latest revision and the time at which it closed.

    An answer that was withdrawn at revision r is kept as `~r`, in case that it comes back.
    """

    windows: Windows
    revision: Ints
    closes: Ints

    def __len__(self) -> int:
        return len(self.revision)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        w = self.windows
        named = w.definition.nbytes + w.key.nbytes + w.start.nbytes + w.end.nbytes
        return named + self.revision.nbytes + self.closes.nbytes

    def revisions(self, asked: Windows) -> Ints:
        """The latest revision of each window, below -1 where withdrawn; -1 where there was no answer yet."""
        match = _match(self.windows, asked)
        return (
            np.where(match >= 0, self.revision[np.maximum(match, 0)], -1)
            if len(self)
            else np.full(len(asked), -1)
        )

    def missing(self, current: Windows) -> Bools:
        """Which answered windows do not exist any more."""
        return _match(current, self.windows) < 0

    def record(self, windows: Windows, revision: Ints, closes: Ints) -> Ledger:
        """With these answers added, in place of older revisions of the same windows."""
        keep = self.missing(windows) if len(self) and len(windows) else np.ones(len(self), np.bool_)
        return joined([self.select(keep), Ledger(windows, revision, closes)])

    def select(self, which: Bools) -> Ledger:
        """Only these answers."""
        return Ledger(self.windows.take(which), self.revision[which], self.closes[which])

    def span(self, low: int, high: int) -> Ledger:
        """The answers from one position up to another, without a copy."""
        w, at = self.windows, slice(low, high)
        windows = Windows(w.definition[at], w.key[at], w.start[at], w.end[at])
        return Ledger(windows, self.revision[at], self.closes[at])


def joined(ledgers: Sequence[Ledger]) -> Ledger:
    """The answers of all, in order."""
    if not ledgers:
        return empty_ledger()
    names = ("definition", "key", "start", "end")
    windows = Windows(*(np.concatenate([getattr(each.windows, name) for each in ledgers]) for name in names))
    return Ledger(
        windows,
        np.concatenate([each.revision for each in ledgers]),
        np.concatenate([each.closes for each in ledgers]),
    )


def empty_ledger() -> Ledger:
    """Nothing answered yet."""
    return Ledger(no_windows(), _none(), _none())


def _match(known: Windows, asked: Windows) -> Ints:
    """For each asked window its index among the known ones; -1 where it is unknown."""
    out = np.full(len(asked), -1, np.int64)
    if len(known) == 0 or len(asked) == 0:
        return out
    # a few revisions among many answers: only those that end where the others do can match
    mine, theirs = _ending_within(known, asked), _ending_within(asked, known)
    match = _match_sorted(known.take(mine), asked.take(theirs))
    out[theirs] = np.where(match >= 0, mine[np.maximum(match, 0)], -1) if len(mine) else -1
    return out


def _ending_within(some: Windows, others: Windows) -> Ints:
    """The positions of the windows whose end lies in the range of the others' ends."""
    return np.nonzero((some.end >= others.end.min()) & (some.end <= others.end.max()))[0]


def _match_sorted(known: Windows, asked: Windows) -> Ints:
    """As `_match`, by sorting both."""
    n = len(known)
    out = np.full(len(asked), -1, np.int64)
    if n == 0 or len(asked) == 0:
        return out
    columns = [
        np.concatenate([getattr(known, name), getattr(asked, name)])
        for name in ("definition", "key", "start", "end")
    ]
    # known ones sort before asked ones of the same identity, so a match stands directly before
    order = np.lexsort((np.arange(n + len(asked)), *columns))
    same = np.ones(len(order), np.bool_)
    for column in columns:
        same[1:] &= column[order][1:] == column[order][:-1]
    same[0] = False
    at = np.nonzero(same)[0]
    found = order[at] >= n
    head = np.where(same, -1, np.arange(len(order)))
    head = np.maximum.accumulate(head)
    first = order[head[at[found]]]
    out[order[at[found]] - n] = np.where(first < n, first, -1)
    return out
