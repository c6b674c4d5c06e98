"""Which keys have had no tuple for long, so that what is known of them can be forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.values.freshness import Seconds, forget_in_seconds

_MANY = 1024
_PART = 0.25
"""Keys are renumbered only when at least this part of them is forgotten, so that it hardly costs."""


class Looks:
    """When to look for keys to forget, and whether it pays: now and then, and whenever keys have doubled."""

    __slots__ = ("_at", "_forget", "_many")

    def __init__(self, forget: float, began: float) -> None:
        self._forget, self._at, self._many = forget, began + forget, _MANY

    def due(self, count: int, now: float) -> bool:
        """Whether it is time to look, where so many keys are known."""
        return now >= self._at or count >= self._many

    def pays(self, gone: Bools, now: float) -> bool:
        """Whether so many of all keys are gone that the others are worth a new number; a look is noted."""
        count = int(np.count_nonzero(gone))
        enough = count >= max(_PART * len(gone), 1.0)
        left = len(gone) - count if enough else len(gone)
        self._at, self._many = now + 0.25 * self._forget, max(2 * left, _MANY)
        return enough


class Recency:
    """When each key had its last tuple, in seconds; keys are dense ids.

    A pause of the whole stream says nothing about its keys: it counts for half of `forget` at most, so that
    no key is forgotten for it alone.
    """

    __slots__ = ("_forget", "_looks", "_now", "_seen", "_told")

    def __init__(self, forget: Seconds) -> None:
        self._forget, self._now = forget_in_seconds(forget), 0.0
        self._looks = Looks(self._forget, self._now)
        self._told: float | None = None
        self._seen: Floats = np.empty(0)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """For pickle: the clock of another process counts from somewhere else, so time goes on from here."""
        return None, {name: getattr(self, name) for name in self.__slots__} | {"_told": None}

    def tick(self, now: float) -> None:
        """Tuples come now, of whatever keys."""
        pause = 0.0 if self._told is None else max(now - self._told, 0.0)
        self._now += min(pause, 0.5 * self._forget)
        self._told = now

    def saw(self, ids: Ints, count: int, now: float) -> None:
        """Tuples of these keys came; ids are below `count`."""
        self.tick(now)
        if count > len(self._seen):
            self._seen = np.concatenate([self._seen, np.full(2 * count - len(self._seen), self._now)])
        self._seen[ids] = self._now

    def gone(self, idle: Bools, *, few: bool = False) -> Bools | None:
        """Which of the keys that are idle had no tuple for `forget` seconds.

        None where none is, or too few for the others to be worth a new number unless `few` are wanted too.
        """
        found: Bools = idle & (self._seen[: len(idle)] < self._now - self._forget)
        pays = self._looks.pays(found, self._now)
        return found if pays or (few and found.any()) else None

    def due(self, count: int) -> bool:
        """Whether it is time to look for keys to forget."""
        return self._looks.due(count, self._now)

    def keep(self, live: Bools) -> None:
        """Forget the other keys and number these anew, in order."""
        self._seen = self._seen[: len(live)][live]
