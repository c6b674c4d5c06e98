"""From the state of partials to Arrow results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.core.arrays import Bools, Columns, Floats, Ints, Values
from windowpane.core.columns import is_text, scale_of
from windowpane.core.kernels.ordering import decode
from windowpane.core.partials.base import Ranged
from windowpane.core.partials.counts import plain
from windowpane.values.errors import Overflow

Take = Callable[[str, npt.NDArray[np.int64]], pa.Array]
"""(column, interned ids) -> the values behind them."""
Lower = Callable[[tuple[Ranged, ...], Take], pa.Array]


def cells(ranged: Ranged, at: int = 0) -> Values:
    """One state column of the combined ranges."""
    return plain(ranged.value, at)


def none_of(ranged: Ranged) -> Bools:
    """Where a count is 0."""
    none: Bools = cells(ranged) == 0
    return none


def typed(values: Values, type_: pa.DataType, absent: Bools | None = None) -> pa.Array:
    """Held int64 or float64 values in the column's own type; null where absent."""
    if pa.types.is_floating(type_):
        return pa.array(values, pa.float64(), mask=absent).cast(type_)
    if absent is not None:
        values = np.where(absent, 0, values)
    stored = pa.array(_in_unit(values, type_), pa.int64(), mask=absent)
    if pa.types.is_date32(type_) or pa.types.is_time32(type_):
        stored = stored.cast(pa.int32())
    return stored.cast(type_)


def _in_unit(values: Values, type_: pa.DataType) -> Values:
    """The core holds temporal values in microseconds."""
    scale = scale_of(type_)
    if scale is None or scale == 1:
        return values
    return values * -scale if scale < 0 else values // scale


def held(column: str, type_: pa.DataType, values: Values, take: Take) -> pa.Array:
    """Held values, all present, in the column's own type: text by its ids."""
    return take(column, values).cast(type_) if is_text(type_) else typed(values, type_)


def held_or_null(column: str, type_: pa.DataType, values: Values, absent: Bools, take: Take) -> pa.Array:
    """As `held`, with null where absent."""
    return spread(held(column, type_, values[~absent], take), absent)


def spread(present: pa.Array, absent: Bools) -> pa.Array:
    """Values for the places that are not absent, null for the others."""
    if not absent.any():
        return present
    return present.take(pa.array(np.cumsum(~absent) - 1, pa.int64(), mask=absent))


def from_codes(codes: Ints, type_: pa.DataType, absent: Bools | None = None) -> pa.Array:
    """Order-preserving codes back in the column's own type."""
    return typed(numbers_of(codes, type_), type_, absent)


def numbers_of(codes: Ints, type_: pa.DataType) -> Values:
    """Order-preserving codes as int64 or float64."""
    return decode(codes) if pa.types.is_floating(type_) else codes


def exact_sum(state: Columns, absent: Bools, column: str) -> pa.Array:
    """The 96-bit sum as int64, or the error that it does not fit."""
    high, low = plain(state, 0), plain(state, 1)
    too_large = (high < -(2**31)) | (high >= 2**31)
    if too_large.any():
        at = int(np.argmax(too_large))
        raise Overflow(
            f"the sum of column {column!r} is {int(high[at]) * 2**32 + int(low[at])} in some window, "
            "which does not fit int64. Cast the column to double, or use mean(), which does not overflow."
        )
    return pa.array((high << 32) | low, pa.int64(), mask=absent)


def sum_as_float(state: Columns) -> Floats:
    """The 96-bit sum as float64: in one rounding where it fits int64."""
    high, low = plain(state, 0), plain(state, 1)
    fits = (high >= -(2**31)) & (high < 2**31)
    wide = high.astype(np.float64) * 2.0**32 + low
    return np.where(fits, ((high << 32) | low).astype(np.float64), wide)


def divide(numerator: Values, denominator: Values, absent: Bools) -> pa.Array:
    """A float64 quotient, null where absent."""
    with np.errstate(all="ignore"):
        return pa.array(numerator / denominator, pa.float64(), mask=absent)


def lists(sizes: Ints, values: pa.Array, absent: Bools | None = None) -> pa.Array:
    """Lists of the given sizes, cut one after the other from the values; null where absent."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise Overflow(
            "a result of lists holds more than 2**31 values. Close fewer windows at once, or use top_k()."
        )
    mask = None if absent is None or not absent.any() else pa.array(absent)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)
