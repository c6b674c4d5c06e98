"""On-demand paging: cells are taken from pages that have room, and an empty page goes back at once.

A cell is `page * cells per page + location`. Pages in use that have empty locations are linked in a ring,
whose first page is the next that serves, so pages are used up before the pool is asked for another (Moga
et al. 2009, section 7.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windowpane.core.arrays import Ints
from windowpane.core.jit import kernel

NOWHERE = -1
# The numbers of the free list of a pool, and of a manager, each in one array.
FREE_PAGES = 0
USED, PAGES, MOST_PAGES = 0, 1, 2


class Pool(NamedTuple):
    """The pages that nobody uses, as a stack shared by all managers."""

    free: Ints
    counts: Ints


class Places(NamedTuple):
    """The empty-locations pool of one manager."""

    after: Ints
    """The next page with room, for each page; the entry behind the last page is the head of the ring."""
    before: Ints
    empty: Ints
    """The empty locations of each page, as a stack."""
    room: Ints
    """How many locations of each page are empty."""
    counts: Ints


def places(pages: int, cells: int) -> Places:
    """A manager that holds no page yet."""
    ring = np.full(pages + 1, pages, np.int64)
    return Places(
        ring,
        ring.copy(),
        np.zeros((pages, cells), np.int64),
        np.zeros(pages, np.int64),
        np.zeros(3, np.int64),
    )


@kernel
def take_cell(pool: Pool, at: Places) -> int:
    """An empty cell of the first page with room, else of a new page; the caller knows that there is one."""
    head = len(at.room)
    page = at.after[head]
    if page == head:
        pool.counts[FREE_PAGES] -= 1
        page = pool.free[pool.counts[FREE_PAGES]]
        cells = at.empty.shape[1]
        for i in range(cells):
            at.empty[page, i] = cells - 1 - i
        at.room[page] = cells
        _link(at, page)
        at.counts[PAGES] += 1
        if at.counts[PAGES] > at.counts[MOST_PAGES]:
            at.counts[MOST_PAGES] = at.counts[PAGES]
    at.room[page] -= 1
    at.counts[USED] += 1
    if at.room[page] == 0:
        _unlink(at, page)
    return int(page * at.empty.shape[1] + at.empty[page, at.room[page]])


@kernel
def give_cell(pool: Pool, at: Places, cell: int) -> None:
    """A cell is empty again; a page of nothing but empty cells returns to the pool."""
    cells = at.empty.shape[1]
    page = cell // cells
    at.empty[page, at.room[page]] = cell % cells
    at.room[page] += 1
    at.counts[USED] -= 1
    if at.room[page] == 1:
        _link(at, page)
    if at.room[page] == cells:
        _unlink(at, page)
        pool.free[pool.counts[FREE_PAGES]] = page
        pool.counts[FREE_PAGES] += 1
        at.counts[PAGES] -= 1


@kernel
def _link(at: Places, page: int) -> None:
    """Last in the ring."""
    head = len(at.room)
    last = at.before[head]
    at.after[last] = page
    at.before[page] = last
    at.after[page] = head
    at.before[head] = page


@kernel
def _unlink(at: Places, page: int) -> None:
    at.after[at.before[page]] = at.after[page]
    at.before[at.after[page]] = at.before[page]


@kernel
def take_cells(pool: Pool, at: Places, cells: Ints) -> None:
    """Fill the array with empty cells."""
    for i in range(len(cells)):
        cells[i] = take_cell(pool, at)


@kernel
def give_cells(pool: Pool, at: Places, cells: Ints) -> None:
    """All these cells are empty again."""
    for i in range(len(cells)):
        give_cell(pool, at, cells[i])
