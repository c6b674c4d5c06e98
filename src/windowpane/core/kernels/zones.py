"""Window buffers: the tuples of each key in arrival order, in blocks of neighbouring places.

A block is a fixed-length contiguous zone (Moga et al. 2009, section 7.2): it lies in one page, has a begin
and an end offset, and is linked with the blocks before and after it of the same key. Only the first block of
a key has room at its begin, only the last at its end. A slot is `block * tuples per block + offset`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windowpane.core.arrays import Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.paging import FREE_PAGES, NOWHERE, Places, Pool, give_cell, take_cell

# Of a block: its neighbours, where its first tuple stands (dequeue offset) and the place behind its last
# (enqueue offset). Of a key: its first and last block, and how many tuples it has. Of all: two numbers.
AFTER, BEFORE, BEGIN, END, BLOCK = 0, 1, 2, 3, 4
FIRST, LAST, HELD, CHAIN = 0, 1, 2, 3
SIZE, WIDTH = 0, 1
OLD, NEW = 0, 1


class Memory(NamedTuple):
    """All that a loop needs to store and read tuples of some keys.

    Few arrays with several columns, because Numba takes long to compile functions of many arrays.
    """

    pool: Pool
    places: Places
    blocks: Ints
    """For each block AFTER, BEFORE, BEGIN and END."""
    chains: Ints
    """For each key FIRST, LAST and HELD."""
    words: Ints
    """The pages: one row of words each."""
    shape: Ints
    """Tuples of a block (SIZE) and words of a tuple (WIDTH)."""


def chains(keys: int) -> Ints:
    """Keys without tuples."""
    ends = np.full((keys, CHAIN), NOWHERE, np.int64)
    ends[:, HELD] = 0
    return ends


@kernel
def has_room(memory: Memory, key: int) -> bool:
    """Whether one more tuple of the key can be stored."""
    last = memory.chains[key, LAST]
    if last != NOWHERE and memory.blocks[last, END] < memory.shape[SIZE]:
        return True
    at = memory.places
    head = len(at.room)
    return bool(at.after[head] != head or memory.pool.counts[FREE_PAGES] > 0)


@kernel
def push(memory: Memory, key: int, row: Ints) -> int:
    """Store a tuple behind the others of its key, which the caller knows to fit; its slot."""
    blocks, ends = memory.blocks, memory.chains
    block = ends[key, LAST]
    if block == NOWHERE or blocks[block, END] == memory.shape[SIZE]:
        fresh = take_cell(memory.pool, memory.places)
        blocks[fresh, BEFORE] = block
        blocks[fresh, AFTER] = NOWHERE
        blocks[fresh, BEGIN] = 0
        blocks[fresh, END] = 0
        if block == NOWHERE:
            ends[key, FIRST] = fresh
        else:
            blocks[block, AFTER] = fresh
        ends[key, LAST] = fresh
        block = fresh
    slot = int(block * memory.shape[SIZE] + blocks[block, END])
    blocks[block, END] += 1
    ends[key, HELD] += 1
    page, word = where(memory, slot)
    for i in range(memory.shape[WIDTH]):
        memory.words[page, word + i] = row[i]
    return slot


@kernel
def where(memory: Memory, slot: int) -> tuple[int, int]:
    """Page and first word of a slot."""
    slots = memory.places.empty.shape[1] * memory.shape[SIZE]
    return slot // slots, (slot % slots) * memory.shape[WIDTH]


@kernel
def following(memory: Memory, slot: int) -> int:
    """The slot after this one in the buffer; one that exists only if a tuple follows."""
    size = memory.shape[SIZE]
    block = slot // size
    if slot % size + 1 < memory.blocks[block, END]:
        return slot + 1
    return int(memory.blocks[block, AFTER] * size)


@kernel
def first_slot(memory: Memory, key: int) -> int:
    """The slot of the oldest tuple of a key that has some."""
    block = memory.chains[key, FIRST]
    return int(block * memory.shape[SIZE] + memory.blocks[block, BEGIN])


@kernel
def drop(memory: Memory, key: int, n: int, side: int) -> None:
    """Forget the n OLD or NEW tuples of a key; blocks that are left empty are free at once."""
    blocks, ends = memory.blocks, memory.chains
    ends[key, HELD] -= n
    while n > 0:
        block = ends[key, LAST] if side == NEW else ends[key, FIRST]
        some = min(n, blocks[block, END] - blocks[block, BEGIN])
        n -= some
        if side == NEW:
            blocks[block, END] -= some
        else:
            blocks[block, BEGIN] += some
        if blocks[block, BEGIN] < blocks[block, END]:
            continue
        before, after = blocks[block, BEFORE], blocks[block, AFTER]
        if before == NOWHERE:
            ends[key, FIRST] = after
        else:
            blocks[before, AFTER] = after
        if after == NOWHERE:
            ends[key, LAST] = before
        else:
            blocks[after, BEFORE] = before
        give_cell(memory.pool, memory.places, block)


@kernel
def push_many(memory: Memory, keys: Ints, rows: Ints) -> int:
    """Store tuples in arrival order; how many fitted."""
    for i in range(len(keys)):
        if not has_room(memory, keys[i]):
            return i
        push(memory, keys[i], rows[i])
    return len(keys)


@kernel
def drop_many(memory: Memory, keys: Ints, counts: Ints, side: int) -> None:
    """Forget the newest or the oldest tuples of each key."""
    for i in range(len(keys)):
        drop(memory, keys[i], counts[i], side)


@kernel
def slots_of(memory: Memory, keys: Ints, slots: Ints) -> None:
    """The slots of all tuples of these keys, oldest first, one key after the other."""
    n = 0
    for i in range(len(keys)):
        key = keys[i]
        if memory.chains[key, HELD] > 0:
            slot = first_slot(memory, key)
            slots[n] = slot
            n += 1
            for _ in range(memory.chains[key, HELD] - 1):
                slot = following(memory, slot)
                slots[n] = slot
                n += 1
