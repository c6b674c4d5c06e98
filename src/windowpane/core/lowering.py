"""From the state of partials to Arrow results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.core.arrays import Bools, Columns, Ints, Values
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


def typed(values: Values, type_: pa.DataType, absent: Bools | None = None) -> pa.Array:
    """Stored int64 or float64 values in the column's own type; null where absent."""
    mask = None if absent is None or not absent.any() else absent
    if pa.types.is_floating(type_):
        return pa.array(values, pa.float64(), mask=mask).cast(type_)
    if mask is not None:
        values = np.where(mask, 0, values)
    stored = pa.array(values, pa.int64(), mask=mask)
    if pa.types.is_date32(type_) or pa.types.is_time32(type_):
        stored = stored.cast(pa.int32())
    return stored.cast(type_)


def from_codes(codes: Ints, type_: pa.DataType, absent: Bools) -> pa.Array:
    """Order-preserving codes back in the column's own type."""
    return typed(decode(codes) if pa.types.is_floating(type_) else codes, type_, absent)


def exact_sum(state: Columns, absent: Bools, column: str) -> pa.Array:
    """The 96-bit sum as int64, or the error that it does not fit."""
    high, low = plain(state, 0), plain(state, 1)
    too_large = (high < -(2**31)) | (high >= 2**31)
    if too_large.any():
        at = int(np.argmax(too_large))
        raise Overflow(
            f"the sum of column {column!r} is {int(high[at]) * 2**32 + int(low[at])} in some window, which does "
            "not fit int64. Cast the column to double, or use mean(), which does not overflow."
        )
    return pa.array((high << 32) | low, pa.int64(), mask=absent)


def sum_as_float(state: Columns) -> npt.NDArray[np.float64]:
    """The 96-bit sum as the nearest float64: in one rounding where it fits int64."""
    high, low = plain(state, 0), plain(state, 1)
    fits = (high >= -(2**31)) & (high < 2**31)
    wide = high.astype(np.float64) * 2.0**32 + low
    return np.where(fits, ((high << 32) | low).astype(np.float64), wide)


def divide(numerator: Values, denominator: Values, absent: Bools) -> pa.Array:
    """A float64 quotient, null where absent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return pa.array(numerator / denominator, pa.float64(), mask=absent)
