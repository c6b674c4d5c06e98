"""Floats as integers of the same order, so that one integer kernel serves both.

The order is Spark's: NaN is the largest value and equals itself; -0.0 equals 0.0.
"""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Floats, Ints, Values
from windowpane.core.jit import kernel

NAN_CODE = np.iinfo(np.int64).max
"""The code of every NaN: above that of infinity."""
_SIGN_OFF = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@kernel
def _encode(values: Floats, bits: Ints) -> Ints:
    out = np.empty(len(bits), np.int64)
    for i in range(len(bits)):
        if values[i] == 0.0:
            out[i] = 0
        elif values[i] != values[i]:
            out[i] = NAN_CODE
        else:
            out[i] = bits[i] ^ ((bits[i] >> 63) & _SIGN_OFF)
    return out


def encode(values: Values) -> Ints:
    """Integers in the order of the values; integers stay as they are."""
    if values.dtype == np.int64:
        return values
    values = np.ascontiguousarray(values, np.float64)
    return _encode(values, values.view(np.int64))


def decode(codes: Ints) -> Floats:
    """The floats that `encode` came from, with one NaN and no negative zero."""
    bits = codes ^ ((codes >> 63) & _SIGN_OFF)
    return np.where(codes == NAN_CODE, np.nan, bits.view(np.float64))
