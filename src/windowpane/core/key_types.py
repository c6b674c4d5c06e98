"""The types in which keys are kept, and how columns of another type become keys without two becoming one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.core.columns import flat, is_text, scale_of
from windowpane.core.hashing import hash_columns, hashable
from windowpane.values.errors import wrong_type

_REMEDY = "Cast the column before its rows are given"


def stored(name: str, kind: pa.DataType) -> pa.DataType:
    """The type in which the values of a key column are kept and given back."""
    if not hashable(kind):
        remedy = "Use one field of it as the key, or turn it into text first."
        raise wrong_type(name, kind, "a key of plain values", remedy)
    return coarse(flat(pa.array([], kind.value_type if pa.types.is_dictionary(kind) else kind)).type)


def coarse(kind: pa.DataType) -> pa.DataType:
    """The type in which keys are kept: microseconds where the column has nanoseconds."""
    if scale_of(kind) != -1_000:
        return kind
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us")


def fitted(name: str, array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The array, of the wanted type or a dictionary of it; refused if a value would become another."""
    if pa.types.is_dictionary(array.type) and not is_text(wanted):
        array = array.dictionary_decode()  # only text gains from it, and words must stay words
    found = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if wanted in (found, coarse(found)):
        return array
    if not pa.types.is_dictionary(array.type):
        return _cast(name, array, wanted)
    return pa.DictionaryArray.from_arrays(array.indices, _cast(name, array.dictionary, wanted))


def _cast(name: str, array: pa.Array, wanted: pa.DataType) -> pa.Array:
    found = array.type
    if pa.types.is_null(found):
        return array.cast(wanted)
    # By type, not by value: the key 1 must not be "1", even while no "01" has come.
    if _family(found) != _family(wanted):
        raise wrong_type(name, found, str(wanted), f"{_REMEDY}.")
    try:
        made = array.cast(wanted)
        # Between integers, and between texts, Arrow itself refuses what does not fit.
        sure = is_text(wanted) or (pa.types.is_integer(found) and pa.types.is_integer(wanted))
        same = sure or _same(array, made.cast(found))
    except pa.ArrowException as error:
        raise wrong_type(name, found, str(wanted), f"{_REMEDY} ({error}).") from error
    if not same:
        raise wrong_type(name, found, str(wanted), f"{_REMEDY} (values would not stay what they are).")
    return made


def _family(kind: pa.DataType) -> str:
    if is_text(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return "boolean"
    return "number" if scale_of(kind) is None else "time"


def _same(array: pa.Array, other: pa.Array) -> bool:
    """Whether the values are the same as keys, for which NaNs are equal and nulls are too."""
    return all(
        np.array_equal(a, b) for a, b in zip(hash_columns([array]), hash_columns([other]), strict=True)
    )
