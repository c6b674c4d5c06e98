"""Content hashes depend on values alone."""

from __future__ import annotations

import math
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.hashing import hash_columns
from windowpane.values.errors import WrongType

TEXTS = st.lists(st.none() | st.text(max_size=40), max_size=30)
FLOATS = st.lists(st.none() | st.floats(), max_size=30)
PINNED_TEXT = [
    (16852473371444490038, 8277304028361783037),
    (9412174745454211892, 13084961345816590982),
    (6182916969637142910, 7098255434924067602),
]
PINNED_INTS = [
    (16852473371444490038, 8277304028361783037),
    (9368744190824693952, 14145460866001810850),
    (3002701955108872896, 6623254402619636901),
]


def pairs(*arrays):
    h1, h2 = hash_columns(arrays)
    return list(zip(h1.tolist(), h2.tolist(), strict=True))


def same_partition(hashes, values):
    """Equal values have equal hashes, and different values different ones."""
    assert len(hashes) == len(values)
    assert len(set(hashes)) == len(set(values)) == len(set(zip(hashes, values, strict=True)))


@given(TEXTS, st.integers(0, 30), st.integers(0, 30))
def test_layout_of_text_makes_no_difference(values, a, b):
    plain = pa.array(values, pa.string())
    expected = pairs(plain)
    raw = [None if v is None else v.encode() for v in values]
    padded = pa.array(["lead", *values, "tail"], pa.string()).slice(1, len(values))
    for other in (
        pa.array(values, pa.large_string()),
        pa.array(values, pa.string_view()),
        pa.array(raw, pa.binary()),
        pa.array(raw, pa.large_binary()),
        pa.array(raw, pa.binary_view()),
        plain.dictionary_encode(),
        plain.dictionary_encode("encode"),
        padded,
        padded.dictionary_encode(),
        pa.chunked_array([plain[: min(a, b)], plain[min(a, b) :]], pa.string()),
        pa.chunked_array([plain[:a].dictionary_encode(), plain[a:].dictionary_encode()]),
    ):
        assert pairs(other) == expected
    assert pairs(plain[a:]) == expected[a:]
    same_partition(expected, values)


@given(st.lists(st.none() | st.integers(-128, 127), max_size=30))
def test_widths_of_integers_make_no_difference(values):
    expected = pairs(pa.array(values, pa.int64()))
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.duration("us"), pa.timestamp("us", "Asia/Kolkata")):
        assert pairs(pa.array(values, pa.int64()).cast(kind)) == expected
    same_partition(expected, values)


@given(FLOATS)
def test_nans_are_one_value_and_zero_has_no_sign(values):
    wanted = ["nan" if v is not None and math.isnan(v) else v for v in values]
    same_partition(pairs(pa.array(values, pa.float64())), wanted)


def test_nans_of_every_bit_pattern_and_width_hash_alike():
    patterns = [0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001]
    many = np.array([struct.unpack("<d", struct.pack("<Q", p))[0] for p in patterns])
    found = {*pairs(pa.array(many, from_pandas=False)), *pairs(pa.array([math.nan], pa.float32()))}
    assert len(found) == 1


@given(st.lists(st.integers(-(10**12), 10**12), max_size=20))
def test_times_hash_by_their_microsecond_in_every_unit(seconds):
    base = pairs(pa.array([s * 10**6 for s in seconds], pa.timestamp("us")))
    assert pairs(pa.array(seconds, pa.timestamp("s"))) == base
    assert pairs(pa.array([s * 1000 for s in seconds], pa.timestamp("ms", "UTC"))) == base
    near = [s % 10**9 - 5 * 10**8 for s in seconds]
    nanos = pa.array([s * 10**9 + 999 for s in near], pa.timestamp("ns"))
    assert pairs(nanos) == pairs(pa.array(near, pa.timestamp("s")))


def test_times_beyond_microseconds_still_differ():
    assert len(set(pairs(pa.array([2**58, 2**59, 2**60, 0, -(2**60)], pa.timestamp("s"))))) == 5


@given(st.lists(st.tuples(st.none() | st.text(max_size=3), st.none() | st.integers(0, 3)), max_size=40))
def test_several_columns_are_told_apart_by_column(rows):
    text = pa.array([r[0] for r in rows], pa.string())
    number = pa.array([r[1] for r in rows], pa.int32())
    same_partition(pairs(text, number), rows)
    assert pairs(text.dictionary_encode(), number.dictionary_encode()) == pairs(text, number)
    assert pairs(number, text.dictionary_encode()) == pairs(number, text)


def test_moving_a_byte_between_columns_gives_another_key():
    assert len(set(pairs(pa.array(["ab", "a", "", "a\0"]), pa.array(["c", "bc", "abc", "c"])))) == 4


def test_decimals_fixed_binaries_booleans_and_nulls_hash():
    assert len(set(pairs(pa.array([1, 2, 1, None], pa.decimal128(20, 3))))) == 3
    assert len(set(pairs(pa.array([b"abc", b"abd", b"abc"], pa.binary(3))[1:]))) == 2
    assert len(set(pairs(pa.array([True, False, None, True])))) == 3
    assert len(set(pairs(pa.nulls(4)))) == 1


def test_bits_are_spread_evenly_for_small_and_round_numbers():
    for numbers in (np.arange(1 << 14), np.arange(1 << 14) * 1_000_000, np.arange(1 << 14) << 40):
        for hashes in hash_columns([pa.array(numbers)]):
            share = (hashes[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).mean(axis=0)
            assert float(np.abs(share - 0.5).max()) < 0.03


def test_a_million_texts_do_not_collide_in_either_hash():
    texts = pa.array(np.arange(1_000_000)).cast(pa.string())
    for hashes in hash_columns([texts]):
        assert len(np.unique(hashes)) == len(texts)


def test_hashes_are_those_of_every_other_run_and_machine():
    assert pairs(pa.array(["", "a", "windowpane", "12345678", None]))[:3] == PINNED_TEXT
    assert pairs(pa.array([0, 1, -1, None]))[:3] == PINNED_INTS


def test_nested_types_are_refused_with_a_remedy():
    with pytest.raises(WrongType, match=r"'k' has type list.*Use one field"):
        hash_columns([pa.array([[1]])], ["k"])


def test_hashes_are_the_same_without_numba():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import pyarrow as pa, warnings; warnings.simplefilter('error')\n"
        "warnings.filterwarnings('ignore', 'Numba is not installed')\n"
        "from windowpane.core.hashing import hash_columns\n"
        "from windowpane.core.keys import KeyIndex\n"
        "a = pa.array(['', 'a', 'windowpane is long', None]); b = pa.array([1, -5, None, 2])\n"
        "print([h.tolist() for h in hash_columns([a, b])], KeyIndex(['b'], [b.type]).encode([b]).tolist())"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    a, b = pa.array(["", "a", "windowpane is long", None]), pa.array([1, -5, None, 2])
    assert result.stdout.strip() == f"{[h.tolist() for h in hash_columns([a, b])]} [0, 1, 2, 3]"
