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


class Zones(NamedTuple):
    """The blocks, and for each key the ends of its chain."""

    after: Ints
    before: Ints
    begin: Ints
    """Where the first tuple of a block stands: the dequeue offset."""
    end: Ints
    """Behind its last tuple: the enqueue offset."""
    size: Ints
    """Tuples that a block holds (one number)."""
    first: Ints
    last: Ints
    held: Ints
    """How many tuples each key has."""


class Memory(NamedTuple):
    """All that a loop needs to store and read tuples of some keys."""

    pool: Pool
    places: Places
    zones: Zones
    words: Ints
    """The pages: one row of words each."""
    width: Ints
    """Words of a tuple (one number)."""


def zones(blocks: int, size: int, keys: int) -> Zones:
    """No block is used yet."""
    return Zones(
        after=np.full(blocks, NOWHERE, np.int64),
        before=np.full(blocks, NOWHERE, np.int64),
        begin=np.zeros(blocks, np.int64),
        end=np.zeros(blocks, np.int64),
        size=np.array([size], np.int64),
        first=np.full(keys, NOWHERE, np.int64),
        last=np.full(keys, NOWHERE, np.int64),
        held=np.zeros(keys, np.int64),
    )


@kernel
def has_room(memory: Memory, key: int) -> bool:
    """Whether one more tuple of the key can be stored."""
    zones, at = memory.zones, memory.places
    last = zones.last[key]
    if last != NOWHERE and zones.end[last] < zones.size[0]:
        return True
    head = len(at.room)
    return bool(at.after[head] != head or memory.pool.counts[FREE_PAGES] > 0)


@kernel
def push(memory: Memory, key: int, row: Ints) -> int:
    """Store a tuple behind the others of its key, which the caller knows to fit; its slot."""
    zones = memory.zones
    block = zones.last[key]
    if block == NOWHERE or zones.end[block] == zones.size[0]:
        fresh = take_cell(memory.pool, memory.places)
        zones.before[fresh] = block
        zones.after[fresh] = NOWHERE
        zones.begin[fresh] = 0
        zones.end[fresh] = 0
        if block == NOWHERE:
            zones.first[key] = fresh
        else:
            zones.after[block] = fresh
        zones.last[key] = fresh
        block = fresh
    slot = int(block * zones.size[0] + zones.end[block])
    zones.end[block] += 1
    zones.held[key] += 1
    page, word = where(memory, slot)
    for i in range(memory.width[0]):
        memory.words[page, word + i] = row[i]
    return slot


@kernel
def where(memory: Memory, slot: int) -> tuple[int, int]:
    """Page and first word of a slot."""
    slots = memory.places.empty.shape[1] * memory.zones.size[0]
    return slot // slots, (slot % slots) * memory.width[0]


@kernel
def following(zones: Zones, slot: int) -> int:
    """The slot after this one in the buffer; one that exists only if a tuple follows."""
    size = zones.size[0]
    block = slot // size
    if slot % size + 1 < zones.end[block]:
        return slot + 1
    return int(zones.after[block] * size)


@kernel
def first_slot(zones: Zones, key: int) -> int:
    """The slot of the oldest tuple of a key that has some."""
    block = zones.first[key]
    return int(block * zones.size[0] + zones.begin[block])


@kernel
def drop_oldest(memory: Memory, key: int, n: int) -> None:
    """Forget the n oldest tuples of a key; blocks that are left empty are free at once."""
    zones = memory.zones
    zones.held[key] -= n
    while n > 0:
        block = zones.first[key]
        some = min(n, zones.end[block] - zones.begin[block])
        zones.begin[block] += some
        n -= some
        if zones.begin[block] == zones.end[block]:
            _free(memory, key, block)


@kernel
def drop_newest(memory: Memory, key: int, n: int) -> None:
    """Forget the n newest tuples of a key, as `drop_oldest`."""
    zones = memory.zones
    zones.held[key] -= n
    while n > 0:
        block = zones.last[key]
        some = min(n, zones.end[block] - zones.begin[block])
        zones.end[block] -= some
        n -= some
        if zones.begin[block] == zones.end[block]:
            _free(memory, key, block)


@kernel
def _free(memory: Memory, key: int, block: int) -> None:
    """Take the first or the last block out of its chain."""
    zones = memory.zones
    before, after = zones.before[block], zones.after[block]
    if before == NOWHERE:
        zones.first[key] = after
    else:
        zones.after[before] = after
    if after == NOWHERE:
        zones.last[key] = before
    else:
        zones.before[after] = before
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
def drop_many(memory: Memory, keys: Ints, counts: Ints, newest: bool) -> None:
    """Forget the newest or the oldest tuples of each key."""
    for i in range(len(keys)):
        if newest:
            drop_newest(memory, keys[i], counts[i])
        else:
            drop_oldest(memory, keys[i], counts[i])


@kernel
def slots_of(zones: Zones, keys: Ints, slots: Ints) -> None:
    """The slots of all tuples of these keys, oldest first, one key after the other."""
    n = 0
    for i in range(len(keys)):
        key = keys[i]
        if zones.held[key] > 0:
            slot = first_slot(zones, key)
            slots[n] = slot
            n += 1
            for _ in range(zones.held[key] - 1):
                slot = following(zones, slot)
                slots[n] = slot
                n += 1
