"""Windows that are begun: the partials of at most one of each key, found by the id of the key.

What is taken and put costs what it is, however many windows are begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from windowpane.core.arrays import Bools, Ints
from windowpane.core.kernels.update_windows import NONE
from windowpane.core.rows import Rows, no_rows, stack
from windowpane.core.upstream.kept import with_piece

_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows that were put, by rising numbers; those that were taken since are dead, and stay for a while."""

    numbers: Ints
    rows: Rows

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, at: Ints) -> _Piece:
        """The rows at these positions."""
        return _Piece(self.numbers[at], self.rows.take(at))


class Begun:
    """Rows by key; the start of a row is the end of its window, which names it."""

    __slots__ = ("_alive", "_came", "_ends", "_numbers", "_pieces")

    def __init__(self) -> None:
        self._ends: Ints = np.empty(0, np.int64)
        self._numbers: Ints = np.empty(0, np.int64)
        """Which row each key has."""
        self._pieces: tuple[_Piece, ...] = ()
        self._came = self._alive = 0

    def __len__(self) -> int:
        return self._alive

    def ends(self, keys: Ints) -> Ints:
        """The end of the window that each key has begun; `NONE` where there is none."""
        if len(keys):
            self._reach(int(keys.max()) + 1)
        found: Ints = self._ends[keys]
        return found

    def take(self, keys: Ints) -> Rows:
        """Take out what these keys have begun, sorted by (end, key)."""
        keys = np.unique(keys[self.ends(keys) != NONE])
        if not len(keys):
            return no_rows(())
        keys = keys[np.argsort(self._ends[keys], kind="stable")]
        found = self._rows(self._numbers[keys])
        self._ends[keys], self._numbers[keys] = NONE, _NOWHERE
        self._alive -= len(keys)
        return found

    def take_all(self) -> Rows:
        """Take out all that is begun, sorted by (end, key)."""
        return self.take(np.flatnonzero(self._ends != NONE))

    def put(self, rows: Rows) -> None:
        """Rows of keys that have begun nothing else."""
        if not len(rows):
            return
        self._reach(int(rows.key.max()) + 1)
        numbers = np.arange(self._came, self._came + len(rows))
        self._ends[rows.key], self._numbers[rows.key] = rows.start, numbers
        self._came += len(rows)
        self._alive += len(rows)
        self._pieces = with_piece(self._pieces, _Piece(numbers, rows), self._joined)
        if sum(map(len, self._pieces)) > 2 * self._alive:
            self._pieces = (self._living(reduce(_both, self._pieces)),)

    def keep(self, live: Bools) -> None:
        """Forget the keys that are not live, and number the others anew, in order."""
        self._reach(len(live))
        pieces, self._pieces = self._pieces, ()
        if self._alive:
            whole = self._living(reduce(_both, pieces))
            rest = whole.take(np.flatnonzero(live[whole.rows.key]))
            rows = Rows(rest.rows.start, (np.cumsum(live) - 1)[rest.rows.key], rest.rows.partials)
            self._pieces, self._alive = ((_Piece(rest.numbers, rows),) if len(rest) else ()), len(rest)
        at = np.flatnonzero(live)
        self._ends, self._numbers = self._ends[at], self._numbers[at]

    def _rows(self, numbers: Ints) -> Rows:
        """The rows with these numbers, which are alive."""
        which = np.searchsorted([piece.numbers[0] for piece in self._pieces], numbers, side="right") - 1
        parts, places = [], []
        for i in np.unique(which):
            piece, mine = self._pieces[i], np.flatnonzero(which == i)
            parts.append(piece.rows.take(np.searchsorted(piece.numbers, numbers[mine])))
            places.append(mine)
        return parts[0] if len(parts) == 1 else stack(parts).take(np.argsort(np.concatenate(places)))

    def _joined(self, a: _Piece, b: _Piece) -> _Piece:
        return self._living(_both(a, b))

    def _living(self, piece: _Piece) -> _Piece:
        return piece.take(np.flatnonzero(self._numbers[piece.rows.key] == piece.numbers))

    def _reach(self, count: int) -> None:
        """Have a place for at least so many keys."""
        known = len(self._ends)
        if count > known:
            more = 2 * count - known
            self._ends = np.append(self._ends, np.full(more, NONE))
            self._numbers = np.append(self._numbers, np.full(more, _NOWHERE))


def _both(a: _Piece, b: _Piece) -> _Piece:
    return _Piece(np.append(a.numbers, b.numbers), stack([a.rows, b.rows]))
