"""Content hashes of Arrow columns: 128 bits that depend on the values alone.

Chunks, slices, dictionaries, integer widths and string layouts make no difference; nor do the run and the
machine. Nulls are equal, NaNs are equal, and -0.0 equals 0.0. Times hash by their microsecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Bools, Values
from windowpane.core.columns import (
    flat,
    floats,
    integers,
    is_integral,
    is_text,
    microseconds,
    scale_of,
    valid_mask,
)
from windowpane.core.kernels.hashing import SEED1, SEED2, Words, hash_bytes, hash_words
from windowpane.values.errors import wrong_type

_NONE: Bools = np.zeros(0, np.bool_)
_FAR = np.int64(2**62)


def hash_columns(arrays: Sequence[Any], names: Sequence[str] = ()) -> tuple[Words, Words]:
    """Two independent hashes (uint64) of each row over all columns; `names` serve the error messages."""
    rows = len(arrays[0]) if arrays else 0
    h1, h2 = np.full(rows, SEED1), np.full(rows, SEED2)
    for i, given in enumerate(arrays):
        name = names[i] if i < len(names) else str(i)
        array = flat(given)
        if i == 0 and pa.types.is_dictionary(array.type) and len(array.dictionary) < rows:
            h1, h2 = _gather(array, name)
        else:
            _fold(array, name, h1, h2)
    return h1, h2


def hashable(kind: pa.DataType) -> bool:
    """Whether columns of this type can be hashed, and so be keys."""
    if pa.types.is_dictionary(kind):
        return hashable(kind.value_type)
    return bool(
        is_text(kind) or is_integral(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        or scale_of(kind) is not None
    )  # fmt: skip


def words_of(array: pa.Array) -> Words | None:
    """One 64-bit word per row that stands for its value, or None if the type needs more than a word."""
    if is_integral(array.type):
        return integers(array).view(np.uint64)
    if pa.types.is_floating(array.type):
        # Adding zero turns -0.0 into 0.0; one bit pattern stands for every NaN.
        with np.errstate(invalid="ignore"):
            wide = floats(array) + 0.0
        wide[np.isnan(wide)] = np.nan
        return wide.view(np.uint64)
    if scale_of(array.type) is not None:
        values, beyond = microseconds(array)
        # A time that has no microseconds keeps its raw number, moved away from those of real times.
        return (values if beyond is None else np.where(beyond, values ^ _FAR, values)).view(np.uint64)
    return None


def _fold(array: pa.Array, name: str, h1: Words, h2: Words) -> None:
    if pa.types.is_dictionary(array.type):
        array = flat(array.dictionary_decode())
    if not hashable(array.type):
        remedy = "Use one field of it as the key, or turn it into text first."
        raise wrong_type(name, array.type, "a key of plain values", remedy)
    valid = valid_mask(array)
    words = words_of(array)
    # Scalars of NumPy warn when they wrap; without Numba the kernels run on them.
    with np.errstate(over="ignore"):
        if words is not None:
            hash_words(words, _NONE if valid is None else valid, h1, h2)
        elif len(array):
            data, offsets = _bytes_of(array)
            hash_bytes(data, offsets, _NONE if valid is None else valid, h1, h2)


def _bytes_of(array: pa.Array) -> tuple[Words, Values]:
    """The bytes of all rows as aligned words with a spare one at the end, and the rows' offsets."""
    buffers = array.buffers()
    if len(buffers) == 2:  # fixed width: fixed-size binary and decimals
        width = array.type.bit_width // 8
        offsets: Values = np.arange(array.offset, array.offset + len(array) + 1, dtype=np.int64) * width
        data = buffers[1]
    else:
        large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
        dtype = np.int64 if large else np.int32
        offsets = np.frombuffer(buffers[1], dtype, count=array.offset + len(array) + 1)[array.offset :]
        data = buffers[2]
    start, end = int(offsets[0]), int(offsets[-1])
    words = np.zeros((end - start + 7) // 8 + 2, np.uint64)
    if end > start:
        words.view(np.uint8)[: end - start] = np.frombuffer(data, np.uint8, count=end)[start:]
    return words, offsets


def _gather(array: pa.DictionaryArray, name: str) -> tuple[Words, Words]:
    # Only a first column can hash its dictionary once: later ones fold into states that differ by row.
    values = flat(array.dictionary)
    entries = pa.concat_arrays([values, pa.nulls(1, values.type)])
    h1, h2 = hash_columns([entries], [name])
    at = array.indices.cast(pa.int64()).fill_null(len(values)).to_numpy(zero_copy_only=False)
    return h1[at], h2[at]
