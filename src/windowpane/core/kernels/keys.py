"""The open-addressing table behind the key index.

A key is a pair of words: its two hashes, or, for a single column of words, the word itself and whether it is
null. Slots hold dense ids; `known` holds the pairs by id, interleaved so that one cache line has both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windowpane.core.arrays import Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.hashing import Words

Slots = npt.NDArray[np.int32]
COUNT, DONE, FOUND = 0, 1, 2
_E = np.uint64(0x9E3779B97F4A7C15)
_A = np.uint64(0xBF58476D1CE4E5B9)
_0, _1, _32 = np.uint64(0), np.uint64(1), np.uint64(32)


@kernel
def _home(a: np.uint64, mask: np.uint64) -> np.uint64:
    """Where a key is first looked for. Words such as 0, 1000, 2000 need the mixing, hashes do not mind."""
    x = (a ^ (a >> _32)) * _E
    x = (x ^ (x >> _32)) * _A
    return (x >> _32) & mask


@kernel
def encode_pairs(
    first: Words, second: Words, slots: Slots, known: Words, state: Ints, ids: Ints, new: Ints
) -> None:
    """Look up or insert rows, until all are done or the table is half full and another new key comes.

    An empty `second` stands for zeros. `state` holds the keys before this batch, the rows done and the new
    keys found; `new` gets the rows at which they came.
    """
    mask = np.uint64(len(slots) - 1)
    room = len(slots) // 2 - state[COUNT]
    found = state[FOUND]
    alone = len(second) == 0
    for i in range(state[DONE], len(first)):
        a = first[i]
        b = _0 if alone else second[i]
        at = _home(a, mask)
        key = slots[at]
        while key >= 0 and (known[2 * key] != a or known[2 * key + 1] != b):
            at = (at + _1) & mask
            key = slots[at]
        if key < 0:
            if found >= room:
                state[DONE], state[FOUND] = i, found
                return
            key = np.int32(state[COUNT] + found)
            slots[at] = key
            known[2 * key] = a
            known[2 * key + 1] = b
            new[found] = i
            found += 1
        ids[i] = key
    state[DONE], state[FOUND] = len(first), found


@kernel
def fill_slots(slots: Slots, known: Words, count: int) -> None:
    """Enter the first `count` known keys, all different, into a table of empty slots."""
    mask = np.uint64(len(slots) - 1)
    for key in range(count):
        at = _home(known[2 * key], mask)
        while slots[at] >= 0:
            at = (at + _1) & mask
        slots[at] = key
