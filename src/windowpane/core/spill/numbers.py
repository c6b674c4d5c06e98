"""Small containers of numbers: they hold one entry for each block of a window, so they must be compact."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

_SMALLEST = 64
Slots = npt.NDArray[np.int32]
_MANY_FREE = 64


class SlotRing:
    """The place on disk of each block of a chain, by its number: four bytes a block, -1 for none."""

    __slots__ = ("_head", "_slots", "_tail", "first")

    def __init__(self, first: int = 0, slots: Iterable[int] = ()) -> None:
        given = np.fromiter(slots, np.int32)
        self.first = first
        self._head, self._tail = 0, len(given)
        self._slots: Slots = np.full(max(_SMALLEST, len(given)), -1, np.int32)
        self._slots[: len(given)] = given

    def __len__(self) -> int:
        return self._tail - self._head

    @property
    def end(self) -> int:
        """The number after the last block."""
        return self.first + len(self)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._slots.nbytes

    def __getitem__(self, number: int) -> int:
        return int(self._slots[self._head + number - self.first])

    def __setitem__(self, number: int, slot: int) -> None:
        self._slots[self._head + number - self.first] = slot

    def append(self, slot: int) -> None:
        """One more block at the end of the chain."""
        if self._tail == len(self._slots):
            self._make_room()
        self._slots[self._tail] = slot
        self._tail += 1

    def pop_first(self) -> int:
        """Forget the oldest block; its place."""
        slot = int(self._slots[self._head])
        self._head += 1
        self.first += 1
        return slot

    def pop_last(self) -> int:
        """Forget the newest block; its place."""
        self._tail -= 1
        return int(self._slots[self._tail])

    def to_array(self) -> Slots:
        """All places, oldest block first."""
        return self._slots[self._head : self._tail].copy()

    def _make_room(self) -> None:
        live = len(self)
        # a chain that slides moves down within its array; only one that grows gets a larger array
        size = len(self._slots) if 4 * live <= 3 * len(self._slots) else len(self._slots) * 3 // 2
        held = np.full(size, -1, np.int32)
        held[:live] = self._slots[self._head : self._tail]
        self._slots, self._head, self._tail = held, 0, live


class FreeList:
    """Places on disk that may be written to, the least recently released first.

    Where many are free, those at the end of the file are given up when the last place of all becomes free:
    places are used in turn, so that the others in use stand together before it then.

    Places that the last checkpoint names are kept until the next one: `release(..., held=True)`.
    """

    __slots__ = ("_free", "_held", "end")

    def __init__(self, end: int = 0, free: Iterable[int] = ()) -> None:
        self.end = end
        self._free: deque[int] = deque(free)
        self._held: list[int] = []

    def __len__(self) -> int:
        return len(self._free)

    def take(self) -> int:
        """A place to write to: a free one, or the end of the file."""
        if self._free:
            return self._free.popleft()
        self.end += 1
        return self.end - 1

    def release(self, slot: int, *, held: bool = False) -> None:
        """Give a place back; a held one becomes free with the next checkpoint."""
        (self._held if held else self._free).append(slot)
        if slot == self.end - 1 and len(self._free) > max(_MANY_FREE, self.end // 4):
            self._give_up_the_end()

    def _give_up_the_end(self) -> None:
        free = set(self._free)
        end = self.end
        while end - 1 in free:
            end -= 1
        self._free = deque(slot for slot in self._free if slot < end)
        self.end = end

    def unhold(self) -> None:
        """The checkpoint that named the held places is gone."""
        self._free.extend(self._held)
        self._held.clear()

    @property
    def held(self) -> int:
        """Places that only the last checkpoint still names."""
        return len(self._held)
