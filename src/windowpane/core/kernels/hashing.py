"""Two independent 64-bit mixes of words and bytes: content hashes that are the same on every machine.

Both start from the hashes given, so that columns are folded one after the other. All constants are odd or
seeds; every step is a bijection of the word for a given state, hence one 64-bit column never collides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windowpane.core.jit import kernel

Words = npt.NDArray[np.uint64]
Offsets = npt.NDArray[Any]

SEED1 = np.uint64(0x243F6A8885A308D3)
SEED2 = np.uint64(0x13198A2E03707344)
# A null is a pair that no word gives: the two mixes see different words.
NULL1 = np.uint64(0xA4093822299F31D0)
NULL2 = np.uint64(0x082EFA98EC4E6C89)
_A = np.uint64(0xBF58476D1CE4E5B9)
_B = np.uint64(0x94D049BB133111EB)
_C = np.uint64(0xFF51AFD7ED558CCD)
_D = np.uint64(0xC4CEB9FE1A85EC53)
_E = np.uint64(0x9E3779B97F4A7C15)
_F = np.uint64(0x87C37B91114253D5)
_G = np.uint64(0x4CF5AD432745937F)
_M = np.uint64(0x880355F21E6D1965)
_N = np.uint64(0x2127599BF4325C37)
_R27, _R30, _R31, _R33 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(33)
_R37, _R23, _R47 = np.uint64(37), np.uint64(23), np.uint64(47)
_3, _6, _7, _8, _63 = np.uint64(3), np.uint64(6), np.uint64(7), np.uint64(8), np.uint64(63)
_0, _1, _5 = np.uint64(0), np.uint64(1), np.uint64(0x52DCE729)


@kernel
def mix1(h: np.uint64, word: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64."""
    x = h ^ word
    x = (x ^ (x >> _R30)) * _A
    x = (x ^ (x >> _R27)) * _B
    return x ^ (x >> _R31)


@kernel
def mix2(h: np.uint64, word: np.uint64) -> np.uint64:
    """The finaliser of MurmurHash3 behind an odd multiple."""
    x = h + word * _E
    x = (x ^ (x >> _R33)) * _C
    x = (x ^ (x >> _R33)) * _D
    return x ^ (x >> _R33)


@kernel
def hash_words(words: Words, valid: npt.NDArray[np.bool_], h1: Words, h2: Words) -> None:
    """Fold one word per row into both hashes; an empty `valid` means that no row is null."""
    nulls = len(valid) > 0
    for i in range(len(words)):
        a, b = words[i], words[i]
        if nulls and not valid[i]:
            a, b = NULL1, NULL2
        h1[i] = mix1(h1[i], a)
        h2[i] = mix2(h2[i], b)


@kernel
def hash_bytes(data: Words, offsets: Offsets, valid: npt.NDArray[np.bool_], h1: Words, h2: Words) -> None:
    """Fold byte strings into both hashes, eight bytes at a time.

    String i is bytes `offsets[i] - offsets[0]` to `offsets[i+1] - offsets[0]` of `data`, whose words are
    little-endian and followed by at least one spare word.
    """
    base = offsets[0]
    nulls = len(valid) > 0
    for i in range(len(h1)):
        if nulls and not valid[i]:
            h1[i] = mix1(h1[i], NULL1)
            h2[i] = mix2(h2[i], NULL2)
            continue
        start, end = offsets[i] - base, offsets[i + 1] - base
        a, b = h1[i], h2[i]
        at = start
        shift = np.uint64(start & 7) << _3
        while at < end:
            word = data[at >> 3] >> shift
            if shift != _0:
                word |= data[(at >> 3) + 1] << (np.uint64(64) - shift)
            left = end - at
            if left < 8:
                word &= (_1 << (np.uint64(left) << _3)) - _1
            x = word * _F
            a ^= ((x << _R31) | (x >> _R33)) * _G
            a = ((a << _R27) | (a >> _R37)) * _B + _5
            y = word ^ (word >> _R23)
            y *= _N
            b = (b ^ (y ^ (y >> _R47))) * _M
            at += 8
        h1[i] = mix1(a, np.uint64(end - start))
        h2[i] = mix2(b, np.uint64(end - start))
