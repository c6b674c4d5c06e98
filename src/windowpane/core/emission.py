"""Emissions: answers as row ranges, before their aggregates are lowered to values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from windowpane.core.arrays import ALWAYS, NEVER, Bools, Ints
from windowpane.core.extents import Extents, WindowList
from windowpane.core.ledger import Ledger, Windows
from windowpane.core.rows import Layout, Rows, key_order, no_rows


@dataclass(frozen=True, slots=True)
class Moment:
    """The progress of the stream over one step, and what is wanted of it.

    `high` is the largest time of the whole stream, of which this operator may have only some keys: windows
    that would go on for ever end with it.
    """

    before: int
    bound: int
    lateness: int = 0
    early: bool = False
    high: int = NEVER

    @property
    def settled(self) -> int:
        """Below this time nothing can change any more."""
        return shifted(self.bound, self.lateness)

    @property
    def revisable(self) -> int:
        """Answers that closed above this time could still change before this step."""
        return shifted(self.before, self.lateness)


def shifted(time: int, lateness: int) -> int:
    """A time moved back, except where it stands for never or always."""
    return time if time in (NEVER, ALWAYS) else time - lateness


@dataclass(frozen=True, slots=True)
class Group:
    """The keys of a lane: how many there are, and the scope in which each key's positions are counted.

    `scope_of_key` is None where positions count the whole stream.
    """

    n_keys: int
    scope_of_key: Ints | None = None

    @property
    def n_scopes(self) -> int:
        """How many scopes there are."""
        return 1 if self.scope_of_key is None else int(self.scope_of_key.max(initial=-1)) + 1

    def scope(self, key: Ints) -> Ints:
        """The scope of each key."""
        return np.zeros(len(key), np.int64) if self.scope_of_key is None else self.scope_of_key[key]


@dataclass(frozen=True)
class Emission:
    """Answers of one lane: windows of keys, and for each the rows `[low, high)` of a table.

    A withdrawn window has no rows and a negative revision: it was answered, and a late tuple undid it.
    """

    layout: Layout
    table: Rows
    windows: Windows
    low: Ints
    high: Ints
    revision: Ints
    final: bool

    def __len__(self) -> int:
        return len(self.low)

    def of(self, first: int, last: int) -> Ints:
        """The positions of the answers to definitions `first` to `last`, in order."""
        low, high = self._definitions
        if first <= low and high <= last:
            return np.arange(len(self))
        order, definition = self._by_definition
        return order[np.searchsorted(definition, first) : np.searchsorted(definition, last, side="right")]

    @cached_property
    def _definitions(self) -> tuple[int, int]:
        definition = self.windows.definition
        return (int(definition.min()), int(definition.max())) if len(definition) else (0, -1)

    @cached_property
    def _by_definition(self) -> tuple[Ints, Ints]:
        """The answers by definition, once for all queries: each of a thousand must not look at every one."""
        definition = self.windows.definition
        order = key_order(definition, self._definitions[1] + 1)
        return (np.arange(len(self)), definition) if order is None else (order, definition[order])


def first_answers(
    layout: Layout, table: Rows, listed: WindowList, pairs: Extents, *, final: bool
) -> Emission:
    """Answers to windows that were not answered before."""
    zeros = np.zeros(len(pairs), np.int64)
    return Emission(layout, table, identities(listed, pairs), pairs.low, pairs.high, zeros, final)


def identities(listed: WindowList, pairs: Extents) -> Windows:
    """The identity of each (window, key) pair."""
    w = pairs.window
    return Windows(listed.definition[w], pairs.key, listed.start[w], listed.end[w])


@dataclass(frozen=True, slots=True)
class Standing:
    """What is true now: closed windows that may still be revised, with their rows.

    `touched` says which of them just got a tuple, `closes` the bound that settles each.
    """

    table: Rows
    windows: Windows
    low: Ints
    high: Ints
    touched: Bools
    closes: Ints


def reconcile(layout: Layout, now: Standing, ledger: Ledger) -> tuple[list[Emission], Ledger]:
    """Compare what is true now with what was answered; answer anew what differs.

    The ledger holds all answers that may still be revised. New windows get revision 0, touched ones the
    next revision, vanished ones are withdrawn.
    """
    known = ledger.revisions(now.windows)
    speak = (known < 0) | now.touched
    # what was withdrawn and is true again goes on from where it was
    following = (np.where(known < -1, ~known, known) + 1)[speak]
    windows = now.windows.take(speak)
    answered = Emission(layout, now.table, windows, now.low[speak], now.high[speak], following, final=True)
    gone = ledger.missing(now.windows) & (ledger.revision >= 0)
    back = ledger.revision[gone] + 1
    none = np.zeros(int(gone.sum()), np.int64)
    withdrawn = Emission(layout, no_rows(layout), ledger.windows.take(gone), none, none, -back, final=True)
    left = replace(ledger, revision=np.where(gone, ~(ledger.revision + 1), ledger.revision))
    after = left.record(windows, following, now.closes[speak])
    return [e for e in (answered, withdrawn) if len(e)], after
