"""The checksum of blocks: what it must find, with and without Numba."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.kernels import checksum as sums

WORD = 2**64


def words_of(seed, n):
    return np.random.default_rng(seed).integers(0, WORD, n, dtype=np.uint64)


@given(st.integers(8, 300), st.integers(0, 2**32), st.booleans())
def test_it_is_the_same_with_and_without_numba(n, seed, extreme):
    words = np.full(n, WORD - 1, np.uint64) if extreme else words_of(seed, n)
    assert int(sums.compiled(words)) == sums.plain(words)


@given(st.integers(8, 60), st.integers(0, 2**32), st.data())
def test_any_change_within_a_word_is_found(n, seed, data):
    words = words_of(seed, n)
    before = sums.checksum(words)
    at = data.draw(st.integers(0, n - 1).filter(lambda at: at != 7))
    words[at] ^= np.uint64(data.draw(st.integers(1, WORD - 1)))
    assert sums.checksum(words) != before


def test_the_place_of_the_checksum_does_not_count():
    words = words_of(1, 64)
    before = sums.checksum(words)
    words[7] = 12345
    assert sums.checksum(words) == before


@pytest.mark.parametrize("n", [63, 64, 65, 71])
def test_words_cannot_change_places_or_go(n):
    words = words_of(2, n)
    before = sums.checksum(words)
    for a, b in ((9, 17), (9, 10), (0, 8), (n - 1, n - 2)):
        other = words.copy()
        other[[a, b]] = other[[b, a]]
        assert sums.checksum(other) != before
    assert sums.checksum(words[:-1]) != before
    assert sums.checksum(np.append(words, np.uint64(0))) != before


def test_every_pair_of_flipped_bits_in_a_lane_is_found():
    """By algebra: the terms of both flips cancel only if a power of the factor is their quotient."""
    differences = set()
    for bit in range(64):
        first, second = 1 << bit, (1 << bit) >> 29
        differences |= {s * first + t * second for s in (1, -1) for t in ((1, -1) if second else (0,))}
    exact = {d % WORD for d in differences}
    power = 1
    for _ in range(1, 1024):
        power = power * sums._FACTOR % WORD
        assert not any(-d * power % WORD in exact for d in differences)
