"""What waits for the punctuation: sorted pieces, of which a step touches few.

Pieces are in the order in which they came and at least halve in size from each to the next, so that they are
few, and a row is merged a logarithm of times. What settles is cut off the front of a piece without copying;
a piece is copied when more than half of it is gone. Pieces are values: a step that fails leaves them.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

import numpy as np

from windowpane.core.arrays import NEVER, Column, Tuples, concat_tuples

R = TypeVar("R", bound=Sized)


@dataclass(frozen=True)
class Piece(Generic[R]):
    """Sorted rows, of which those before `first` are gone."""

    rows: R
    first: int = 0

    def __len__(self) -> int:
        return len(self.rows) - self.first


@dataclass(frozen=True)
class Kind(Generic[R]):
    """What pieces are of: how to take neighbouring rows, how to copy them, and how to merge two pieces."""

    part: Callable[[R, int, int], R]
    copied: Callable[[R], R]
    merged: Callable[[R, R], R]

    def add(self, pieces: tuple[Piece[R], ...], rows: R) -> tuple[Piece[R], ...]:
        """One more piece, merged with those before it that are not twice its size."""
        if len(rows) == 0:
            return pieces
        found = list(pieces)
        while found and len(found[-1]) < 2 * len(rows):
            rows = self.merged(self.live(found.pop()), rows)
        return (*found, Piece(rows))

    def cut(
        self, pieces: tuple[Piece[R], ...], upto: Callable[[R], int]
    ) -> tuple[list[R], tuple[Piece[R], ...]]:
        """The rows of each piece before `upto` of it, and what stays."""
        gone, stays = [], []
        for piece in pieces:
            end = max(piece.first, upto(piece.rows))
            if end > piece.first:
                gone.append(self.part(piece.rows, piece.first, end))
            if 2 * end > len(piece.rows) > end:
                stays.append(Piece(self.copied(self.part(piece.rows, end, len(piece.rows)))))
            elif end < len(piece.rows):
                stays.append(Piece(piece.rows, end))
        return gone, tuple(stays)

    def live(self, piece: Piece[R]) -> R:
        """The rows of a piece that are not gone."""
        return self.part(piece.rows, piece.first, len(piece.rows))


def span(tuples: Tuples, low: int, high: int) -> Tuples:
    """Neighbouring tuples, without copying."""
    columns = {
        name: Column(c.values[low:high], None if c.valid is None else c.valid[low:high])
        for name, c in tuples.columns.items()
    }
    return Tuples(tuples.time[low:high], tuples.key[low:high], columns)


def _in_order(older: Tuples, newer: Tuples) -> Tuples:
    """Both by time; at equal times the older first."""
    both = concat_tuples(older, newer)
    if len(older) == 0 or len(newer) == 0 or older.time[-1] <= newer.time[0]:
        return both
    return both.take(np.argsort(both.time, kind="stable"))


TUPLES = Kind(span, lambda tuples: tuples.take(np.arange(len(tuples))), _in_order)
"""Pieces of tuples by time."""


def settle(
    pieces: tuple[Piece[Tuples], ...], new: Tuples, bound: int
) -> tuple[Tuples, tuple[Piece[Tuples], ...]]:
    """Tuples below `bound` in time order, and those that wait."""
    if not new.rising and len(new) > 1 and not bool((new.time[1:] >= new.time[:-1]).all()):
        new = new.take(np.argsort(new.time, kind="stable"))
    if bound == NEVER:
        return span(new, 0, 0), TUPLES.add(pieces, new)
    gone, stays = TUPLES.cut(pieces, lambda tuples: int(np.searchsorted(tuples.time, bound)))
    cut = int(np.searchsorted(new.time, bound))
    settled = reduce(_in_order, [*gone, span(new, 0, cut)])
    # a copy, because a few rows would hold the whole batch
    return settled, TUPLES.add(stays, TUPLES.copied(span(new, cut, len(new))) if cut else new)
