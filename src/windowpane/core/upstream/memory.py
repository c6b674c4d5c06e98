"""The memory of an update queue: pages allocated once, and a cell of them for each key that waits.

Moga et al. 2009, section 7: a `PagePool` is shared by all queues; `KeyCells` knows where the tuple of a key
lies. Tuples are rows of 8-byte words: of int64 and float64 columns by `rows_of`, of any columns of fixed
width by `fixed_rows.FixedRows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints, Values
from windowpane.core.kernels.paging import (
    FREE_PAGES,
    MOST_PAGES,
    NOWHERE,
    PAGES,
    USED,
    Places,
    Pool,
    give_cells,
    places,
    take_cells,
)
from windowpane.values.errors import BadQuery, OutOfMemory, WindowpaneError
from windowpane.values.sizes import size_in_bytes

_WORD = 8


@dataclass(frozen=True, slots=True)
class Usage:
    """Tuples that a manager has room for, and how many of these places hold a tuple that is still wanted."""

    pages: int
    page_tuples: int
    allocated: int
    """Places that no one else can have. Naive: one (or a whole window buffer) for each key ever seen."""
    used: int

    @property
    def effective(self) -> float:
        """The share of the allocated places that is in use; 1 where nothing is allocated."""
        return self.used / self.allocated if self.allocated else 1.0

    @property
    def page_effective(self) -> float:
        """The share of whole pages that is in use: stricter, as it counts empty places of pages in use."""
        return self.used / (self.pages * self.page_tuples) if self.pages else 1.0


@contextmanager
def set_aside(memory: str | int) -> Iterator[None]:
    """Where memory of this size, as a user gave it, is set aside: name it if there is not so much."""
    try:
        yield
    except WindowpaneError:
        raise
    except (MemoryError, OverflowError, ValueError) as error:
        raise OutOfMemory(f"memory={memory!r} cannot be set aside here: {error}. Give less.") from error


def pool_within(memory: str | int, page_bytes: int) -> PagePool:
    """Pages that take at most this memory, as a user gave it."""
    pages = size_in_bytes(memory) // page_bytes
    if pages < 1:
        raise BadQuery(f"memory={memory!r} is less than a page. Give at least {page_bytes:,} bytes.")
    with set_aside(memory):
        return PagePool(pages, page_bytes)


class PagePool:
    """Pages of equal size, allocated once; queues with tuples of any width share them."""

    __slots__ = ("_words", "lists")

    def __init__(self, pages: int, page_bytes: int = 4096) -> None:
        if pages < 1 or page_bytes < _WORD or page_bytes % _WORD:
            raise ValueError(
                f"a pool of {pages} pages of {page_bytes} bytes cannot be. Give at least one page, and a "
                f"multiple of {_WORD} bytes."
            )
        self._words = np.zeros((pages, page_bytes // _WORD), np.int64)
        free = np.arange(pages - 1, -1, -1, dtype=np.int64)
        self.lists = Pool(free, np.array([pages], np.int64))

    @property
    def pages(self) -> int:
        """How many pages there are, used or not."""
        return len(self._words)

    @property
    def free_pages(self) -> int:
        """How many pages nobody uses."""
        return int(self.lists.counts[FREE_PAGES])

    @property
    def words(self) -> Ints:
        """The content of all pages, one row each."""
        return self._words


class PagedCells:
    """On-demand paging (7.1): takes pages from the pool as cells are needed, returns them when empty."""

    __slots__ = ("lists", "pool", "width")

    def __init__(self, pool: PagePool, width: int) -> None:
        cells = pool.words.shape[1] // width
        if cells == 0:
            raise ValueError(
                f"a page of {pool.words.shape[1]} words holds no cell of {width} words. Take larger pages."
            )
        self.pool, self.width = pool, width
        self.lists: Places = places(pool.pages, cells)

    @property
    def page_cells(self) -> int:
        """How many cells a page holds."""
        return int(self.lists.empty.shape[1])

    @property
    def used(self) -> int:
        """How many cells are taken."""
        return int(self.lists.counts[USED])

    @property
    def pages(self) -> int:
        """How many pages of the pool this manager holds."""
        return int(self.lists.counts[PAGES])

    @property
    def most_pages(self) -> int:
        """The most it ever held."""
        return int(self.lists.counts[MOST_PAGES])

    @property
    def room(self) -> int:
        """How many more cells could be taken now."""
        return (self.pages + self.pool.free_pages) * self.page_cells - self.used

    def need(self, cells: int) -> None:
        """Refuse before anything changes if the pool has not so many cells."""
        if cells > self.room:
            raise OutOfMemory(
                f"the memory has room for {self.room} more cells of {self.width * _WORD} bytes, and this "
                f"takes {cells}. Give more memory, or serve keys first."
            )

    def take(self, n: int) -> Ints:
        """N empty cells, all different from those that are taken."""
        self.need(n)
        cells = np.empty(n, np.int64)
        take_cells(self.pool.lists, self.lists, cells)
        return cells

    def give(self, cells: Ints) -> None:
        """Empty these cells; each was taken and is given once."""
        give_cells(self.pool.lists, self.lists, cells)

    def write(self, cells: Ints, rows: Ints) -> None:
        """Store a row in each cell; of a cell named twice the last row stays."""
        self._table()[cells // self.page_cells, cells % self.page_cells] = rows

    def read(self, cells: Ints) -> Ints:
        """The rows in these cells."""
        return np.asarray(self._table()[cells // self.page_cells, cells % self.page_cells])

    def _table(self) -> Ints:
        """The pages as (page, location, word)."""
        pages, cells = self.pool.pages, self.page_cells
        return self.pool.words[:, : cells * self.width].reshape(pages, cells, self.width)


class KeyCells:
    """Where the newest tuple of each key lies: the key cells of 7.

    With `keep` it is the naive manager of 7.3: a key that was served keeps its cell for good.
    """

    __slots__ = ("_cell", "_waits", "cells", "keep")

    def __init__(self, pool: PagePool, width: int, *, keep: bool = False) -> None:
        self.cells = PagedCells(pool, width)
        self.keep = keep
        self._cell: Ints = np.empty(0, np.int64)
        self._waits: Bools = np.empty(0, np.bool_)

    def put(self, keys: Ints, rows: Ints) -> None:
        """Overwrite the tuple of each key, of a key named twice with the last; needs no cell where one is."""
        if len(keys) == 0:
            return
        self._grow(int(keys.max()) + 1)
        without = np.unique(keys[self._cell[keys] == NOWHERE])
        self._cell[without] = self.cells.take(len(without))
        self.cells.write(self._cell[keys], rows)
        self._waits[keys] = True

    def take(self, keys: Ints) -> Ints:
        """The tuples of these keys, each named once and waiting; their cells are free afterwards."""
        cells = self._cells_of(keys)
        rows = self.cells.read(cells)
        self._waits[keys] = False
        if not self.keep:
            self.cells.give(cells)
            self._cell[keys] = NOWHERE
        return rows

    def read(self, keys: Ints) -> Ints:
        """The tuples of these waiting keys, which stay."""
        return self.cells.read(self._cells_of(keys))

    def adopt(self, keys: Ints, cells: Ints) -> None:
        """Cells that were taken and written already hold the tuples of these keys, which had none."""
        if len(keys):
            self._grow(int(keys.max()) + 1)
            self._cell[keys], self._waits[keys] = cells, True

    def number_anew(self, live: Bools) -> None:
        """Forget the keys that are not live, none of which waits, and number the others anew, in order."""
        self._grow(len(live))
        self._cell, self._waits = self._cell[: len(live)][live], self._waits[: len(live)][live]

    def waits(self, keys: Ints) -> Bools:
        """Which of these keys have a tuple."""
        inside = keys < len(self._waits)
        found = np.zeros(len(keys), np.bool_)
        found[inside] = self._waits[keys[inside]]
        return found

    @property
    def usage(self) -> Usage:
        """How much room is taken, and how much of it for tuples that wait."""
        used = int(np.count_nonzero(self._waits))
        return Usage(self.cells.pages, self.cells.page_cells, self.cells.used, used)

    def _cells_of(self, keys: Ints) -> Ints:
        absent = ~self.waits(keys)
        if absent.any():
            raise LookupError(f"key {int(keys[absent][0])} has no tuple. Take only keys that wait.")
        return self._cell[keys]

    def _grow(self, keys: int) -> None:
        if keys > len(self._cell):
            more = max(keys, 2 * len(self._cell)) - len(self._cell)
            self._cell = np.concatenate([self._cell, np.full(more, NOWHERE, np.int64)])
            self._waits = np.concatenate([self._waits, np.zeros(more, np.bool_)])


def rows_of(columns: Sequence[Values]) -> Ints:
    """Columns of int64 or float64 as rows of 8-byte words, bit for bit."""
    return np.stack([np.ascontiguousarray(column).view(np.int64) for column in columns], axis=1)


def floats_of(rows: Ints, word: int) -> Floats:
    """A column of float64 back from rows."""
    return np.ascontiguousarray(rows[:, word]).view(np.float64)
