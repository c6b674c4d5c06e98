"""Window buffers: tuples of a key in arrival order, dropped at either end (Moga et al. 2009, section 7.2).

`WindowBuffers` keeps them in blocks, taken from the page pool when tuples come and returned when they go.
`FixedBuffers` is the naive manager of 7.3: the most that a buffer can need is set aside for every key.
"""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Ints
from windowpane.core.kernels.zones import (
    BLOCK,
    HELD,
    NEW,
    OLD,
    SIZE,
    WIDTH,
    Memory,
    chains,
    drop_many,
    push_many,
    slots_of,
)
from windowpane.core.upstream.memory import PagedCells, PagePool, Usage
from windowpane.values.errors import OutOfMemory


class WindowBuffers:
    """The tuples of each key in blocks of `block` neighbouring places."""

    __slots__ = ("_cells", "memory")

    def __init__(self, pool: PagePool, width: int, *, block: int = 8) -> None:
        self._cells = PagedCells(pool, width * block)
        blocks = pool.pages * self._cells.page_cells
        self.memory = Memory(
            pool.lists,
            self._cells.lists,
            np.zeros((blocks, BLOCK), np.int64),
            chains(0),
            pool.words,
            np.array([block, width], np.int64),
        )

    @property
    def keys(self) -> int:
        """For how many keys (0 to this) there are buffers, empty ones included."""
        return len(self.memory.chains)

    def grow(self, keys: int) -> None:
        """Make sure that keys 0 to `keys - 1` have buffers."""
        if keys <= self.keys:
            return
        more = max(keys, 2 * self.keys) - self.keys
        self.memory = self.memory._replace(chains=np.concatenate([self.memory.chains, chains(more)]))

    def keep(self, ids: Ints, room: int) -> None:
        """Forget all keys but these, which become 0, 1, 2, ...; there are buffers for `room` keys then."""
        gone = np.setdiff1d(np.arange(self.keys), ids, assume_unique=True)
        self.drop_oldest(gone, self.lengths(gone))
        rest = chains(room - len(ids))
        self.memory = self.memory._replace(chains=np.concatenate([self.memory.chains[ids], rest]))

    def append(self, keys: Ints, rows: Ints) -> None:
        """Store tuples behind the others of their keys, in the order given."""
        if len(keys) == 0:
            return
        self.grow(int(keys.max()) + 1)
        stored = push_many(self.memory, keys, rows)
        if stored < len(keys):
            raise self.full(stored, len(keys))

    def full(self, stored: int, of: int) -> OutOfMemory:
        """The error of a batch that did not fit."""
        pool = self._cells.pool
        return OutOfMemory(
            f"the memory of {pool.pages} pages is full after {stored} of {of} tuples, which are stored. "
            "Give more memory, or serve keys first."
        )

    def lengths(self, keys: Ints) -> Ints:
        """How many tuples each of these keys has."""
        return np.asarray(self.memory.chains[keys, HELD])

    def drop_oldest(self, keys: Ints, counts: Ints) -> None:
        """Forget the oldest tuples of each key, which has at least so many."""
        drop_many(self.memory, keys, counts, OLD)

    def drop_newest(self, keys: Ints, counts: Ints) -> None:
        """Forget the newest tuples of each key, which has at least so many."""
        drop_many(self.memory, keys, counts, NEW)

    def read(self, keys: Ints) -> tuple[Ints, Ints]:
        """The tuples of these keys, one key after the other, oldest first; and where each key's begin."""
        offsets = np.zeros(len(keys) + 1, np.int64)
        np.cumsum(self.lengths(keys), out=offsets[1:])
        slots = np.empty(int(offsets[-1]), np.int64)
        slots_of(self.memory, keys, slots)
        size, width = int(self.memory.shape[SIZE]), int(self.memory.shape[WIDTH])
        block = self._cells.read(slots // size).reshape(len(slots), size, width)
        return np.asarray(block[np.arange(len(slots)), slots % size]), offsets

    @property
    def usage(self) -> Usage:
        """How much room is taken, and how much of it for tuples."""
        size = int(self.memory.shape[SIZE])
        used = int(self.memory.chains[:, HELD].sum())
        return Usage(self._cells.pages, self._cells.page_cells * size, self._cells.used * size, used)


class FixedBuffers:
    """The naive manager: `most` places for each key, as a ring, from its first tuple on and for good.

    So many `keys` have buffers from the start, though nothing is set aside for them yet.
    """

    __slots__ = ("_begin", "_held", "_rows", "_seen")

    def __init__(self, most: int, width: int, *, keys: int = 0) -> None:
        self._rows = np.zeros((0, most, width), np.int64)
        self._begin, self._held = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._seen = np.zeros(0, np.bool_)
        self._grow(keys)

    def append(self, keys: Ints, rows: Ints) -> None:
        """Store tuples behind the others of their keys, in the order given."""
        if len(keys) == 0:
            return
        self._grow(int(keys.max()) + 1)
        order = np.argsort(keys, kind="stable")
        by_key = keys[order]
        heads = np.concatenate([[True], by_key[1:] != by_key[:-1]])
        starts = np.nonzero(heads)[0]
        counts = np.diff(starts, append=len(keys))
        rank = np.arange(len(keys)) - np.repeat(starts, counts)
        most = self._rows.shape[1]
        at = by_key[starts]
        if np.any(self._held[at] + counts > most):
            raise OutOfMemory(f"a buffer of {most} tuples is full. Set more aside, or drop tuples first.")
        self._rows[by_key, (self._begin[by_key] + self._held[by_key] + rank) % most] = rows[order]
        self._held[at] += counts
        self._seen[at] = True

    def lengths(self, keys: Ints) -> Ints:
        """How many tuples each of these keys has."""
        return np.asarray(self._held[keys])

    def drop_oldest(self, keys: Ints, counts: Ints) -> None:
        """Forget the oldest tuples of each key, named once."""
        self._begin[keys] = (self._begin[keys] + counts) % self._rows.shape[1]
        self._held[keys] -= counts

    def drop_newest(self, keys: Ints, counts: Ints) -> None:
        """Forget the newest tuples of each key, named once."""
        self._held[keys] -= counts

    def read(self, keys: Ints) -> tuple[Ints, Ints]:
        """As `WindowBuffers.read`."""
        counts = self.lengths(keys)
        offsets = np.zeros(len(keys) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        rank = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], counts)
        owner = np.repeat(keys, counts)
        at = (self._begin[owner] + rank) % self._rows.shape[1]
        return np.asarray(self._rows[owner, at]), offsets

    @property
    def usage(self) -> Usage:
        """How much room is set aside, and how much of it holds tuples."""
        seen, most = int(np.count_nonzero(self._seen)), self._rows.shape[1]
        return Usage(seen, most, seen * most, int(self._held.sum()))

    def _grow(self, keys: int) -> None:
        if keys <= len(self._held):
            return
        more = max(keys, 2 * len(self._held)) - len(self._held)
        self._rows = np.concatenate([self._rows, np.zeros((more, *self._rows.shape[1:]), np.int64)])
        self._begin = np.concatenate([self._begin, np.zeros(more, np.int64)])
        self._held = np.concatenate([self._held, np.zeros(more, np.int64)])
        self._seen = np.concatenate([self._seen, np.zeros(more, np.bool_)])
