"""What a join keeps of a side: tuples in few pieces, so that a push costs what is new and what it matches."""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import reduce
from typing import TypeVar

import numpy as np

from windowpane.core.arrays import Bools, Ints, Tuples, concat_tuples, no_tuples

Alive = Callable[[Tuples], Bools]
Piece = TypeVar("Piece", bound=Sized)
_LIKE = 4
"""Neighbouring pieces are joined unless the older one is so many times as large."""


def with_piece(
    pieces: tuple[Piece, ...], new: Piece, joined: Callable[[Piece, Piece], Piece]
) -> tuple[Piece, ...]:
    """The pieces and a new one behind them, those of like size joined: they stay few, and joins are rare."""
    made = [*pieces, new]
    while len(made) > 1 and len(made[-2]) < _LIKE * len(made[-1]):
        made[-2:] = [joined(made[-2], made[-1])]
    return tuple(piece for piece in made if len(piece))


class Kept:
    """Tuples by key; those of a key come in order of arrival. Dead ones stay until they are the most."""

    __slots__ = ("_dead", "_pieces")

    def __init__(self) -> None:
        self._pieces: tuple[Tuples, ...] = ()
        self._dead = 0

    def __len__(self) -> int:
        """How many are alive."""
        return self.stored - self._dead

    @property
    def stored(self) -> int:
        """How many there are with dead ones."""
        return sum(map(len, self._pieces))

    def of(self, keys: Ints) -> Tuples:
        """The tuples of these keys, which come in rising order; dead ones too."""
        return reduce(concat_tuples, (_of_keys(piece, keys) for piece in self._pieces), no_tuples())

    def all(self) -> Tuples:
        """All tuples, dead ones too."""
        return reduce(concat_tuples, self._pieces, no_tuples())

    def add(self, new: Tuples, died: int, alive: Alive) -> None:
        """Keep new tuples, which are alive; so many of the others no longer are."""
        self._dead += died
        if len(new):
            order = np.argsort(new.key, kind="stable")
            self._pieces = with_piece(self._pieces, new.take(order), lambda a, b: self._joined(a, b, alive))
        if self._dead > len(self):
            self._replace(self._joined(self.all(), no_tuples(), alive))

    def keep(self, live: Bools, alive: Alive) -> None:
        """Forget the keys that are not live, by id, with their tuples; number the others anew, in order."""
        whole = self._joined(self.all(), no_tuples(), alive)
        rest = whole.take(live[whole.key])
        self._replace(Tuples(rest.time, (np.cumsum(live) - 1)[rest.key], rest.columns))

    def _replace(self, tuples: Tuples) -> None:
        self._pieces = (tuples,) if len(tuples) else ()

    def _joined(self, a: Tuples, b: Tuples, alive: Alive) -> Tuples:
        """The tuples of both that are alive, by key."""
        both = concat_tuples(a, b)
        rest = both.take(alive(both))
        self._dead -= len(both) - len(rest)
        return rest.take(np.argsort(rest.key, kind="stable"))


def _of_keys(piece: Tuples, keys: Ints) -> Tuples:
    low = np.searchsorted(piece.key, keys)
    count = np.searchsorted(piece.key, keys, side="right") - low
    return piece.take(np.repeat(low - np.cumsum(count) + count, count) + np.arange(int(count.sum())))
