"""Sums of floats without any error: a fixed-point number as wide as the range of float64.

After Neal, "Fast exact summation using small and large superaccumulators" (2015): 68 chunks of 32 bits in
int64, chunk 0 starting at 2**-1074. Adding and subtracting touch three chunks and are exact, so what was
subtracted leaves no trace; only reading rounds, once, to the nearest float. NaN and the infinities are
counted apart, so that they too can leave a window. A chunk has 31 bits to spare: `MOST` additions are safe
between two carries.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel

CHUNKS = 68
MOST = 1 << 28
NAN, PLUS, MINUS = 0, 1, 2
Spans = npt.NDArray[np.int32]

_LOW = np.int64(0xFFFFFFFF)
_FRACTION = np.int64((1 << 52) - 1)
_HIDDEN = np.int64(1 << 52)
_HALF_RANGE = 600
_POWERS = np.ldexp(1.0, np.arange(-_HALF_RANGE, _HALF_RANGE + 1))


@kernel
def add_exact(chunks: Ints, span: Spans, special: Spans, bits: int, sign: int) -> None:
    """Add (sign 1) or subtract (-1) the float with these bits; `span` is the range of chunks in use."""
    exponent = (bits >> 52) & 2047
    fraction = bits & _FRACTION
    if exponent == 2047:
        if fraction:
            special[NAN] += sign
        elif bits < 0:
            special[MINUS] += sign
        else:
            special[PLUS] += sign
        return
    if exponent:
        fraction |= _HIDDEN
        exponent -= 1
    elif fraction == 0:
        return
    if bits < 0:
        sign = -sign
    at = exponent >> 5
    shift = exponent & 31
    low = (fraction & _LOW) << shift
    high = (fraction >> 32) << shift
    chunks[at] += sign * (low & _LOW)
    chunks[at + 1] += sign * ((low >> 32) + (high & _LOW))
    chunks[at + 2] += sign * (high >> 32)
    if at < span[0]:
        span[0] = at
    if at + 2 > span[1]:
        span[1] = at + 2


@kernel
def carry(chunks: Ints, span: Spans) -> None:
    """Bring every chunk but the last back to 32 bits; the last keeps the sign."""
    first, last = span[0], span[1]
    if last < 0:
        return
    for at in range(first, last):
        over = chunks[at] >> 32
        chunks[at] &= _LOW
        chunks[at + 1] += over
    # 31 bits, so that a negative last chunk can be turned into a positive one of 32
    if last < CHUNKS - 1 and chunks[last] >> 31 != 0 and chunks[last] >> 31 != -1:
        over = chunks[last] >> 32
        chunks[last] &= _LOW
        chunks[last + 1] += over
        span[1] = last + 1


@kernel
def _negate(chunks: Ints, first: int, last: int) -> None:
    for at in range(first, last + 1):
        chunks[at] = -chunks[at]
    for at in range(first, last):
        over = chunks[at] >> 32
        chunks[at] &= _LOW
        chunks[at + 1] += over


@kernel
def _magnitude(chunks: Ints, first: int, top: int) -> float:
    """The number in carried chunks `first .. top`, the top one positive, rounded to nearest, ties to even."""
    head = chunks[top]
    width = 0
    while head >> width:
        width += 1
    # 64 bits from the top one down, as two halves because int64 has a sign
    second = chunks[top - 1] if top - 1 >= first else np.int64(0)
    third = chunks[top - 2] if top - 2 >= first else np.int64(0)
    place = 32 * top + width - 1
    upper = (head << (32 - width)) | (second >> width)
    lower = ((second << (32 - width)) | (third >> width)) & _LOW
    sticky = (third & ((np.int64(1) << width) - 1)) != 0
    if not sticky:
        for at in range(first, top - 2):
            if chunks[at]:
                sticky = True
                break
    # 53 bits are kept: 32 and the first 21 of the lower half
    kept = (upper << 21) | (lower >> 11)
    rest = lower & 0x7FF
    if rest > 0x400 or (rest == 0x400 and (sticky or kept & 1)):
        kept += 1
    power = place - 52 - 1074
    half = power // 2
    value: float = kept * _POWERS[half + _HALF_RANGE] * _POWERS[power - half + _HALF_RANGE]
    return value


@kernel
def read_exact(chunks: Ints, span: Spans, special: Spans) -> float:
    """The sum, rounded once."""
    if special[NAN] > 0 or (special[PLUS] > 0 and special[MINUS] > 0):
        return np.nan
    if special[PLUS] > 0:
        return np.inf
    if special[MINUS] > 0:
        return -np.inf
    carry(chunks, span)
    first, last = span[0], span[1]
    if last < 0:
        return 0.0
    negative = chunks[last] < 0
    if negative:
        _negate(chunks, first, last)
    top = last
    while top > first and chunks[top] == 0:
        top -= 1
    result = 0.0
    if chunks[top]:
        # the last chunk holds more than 32 bits only at the end of the range, beyond float64
        result = np.inf if chunks[top] >> 32 else _magnitude(chunks, first, top)
    if negative:
        _negate(chunks, first, last)
        result = -result
    return result


@kernel
def clear_exact(chunks: Ints, span: Spans, special: Spans) -> None:
    """An empty sum."""
    for at in range(max(0, span[0]), span[1] + 1):
        chunks[at] = 0
    span[0] = CHUNKS
    span[1] = -1
    for i in range(3):
        special[i] = 0


@kernel
def carry_all(chunks: Ints, span: Spans) -> None:
    """Carry in every sum of a table of keys and sums."""
    for key in range(chunks.shape[0]):
        for j in range(chunks.shape[1]):
            carry(chunks[key, j], span[key, j])


@kernel
def read_pair(chunks: Ints, span: Spans, special: Spans, one: Floats, one_bits: Ints) -> tuple[float, float]:
    """The sum as the nearest float and the float nearest to what is left; `one` is scratch for its bits."""
    first = read_exact(chunks, span, special)
    if not np.isfinite(first):
        return first, 0.0
    one[0] = first
    add_exact(chunks, span, special, one_bits[0], -1)
    second = read_exact(chunks, span, special)
    add_exact(chunks, span, special, one_bits[0], 1)
    return first, second


@kernel
def sum_runs(bits: Ints, heads: Ints, target: Ints, n_sums: int) -> tuple[Floats, Floats]:
    """The exact sums of runs of rows, column j added to sum `target[j]`: nearest floats and what is left."""
    n = bits.shape[1]
    first = np.zeros((n_sums, len(heads)), np.float64)
    second = np.zeros((n_sums, len(heads)), np.float64)
    chunks = np.zeros(CHUNKS, np.int64)
    span = np.array([CHUNKS, -1], np.int32)
    special = np.zeros(3, np.int32)
    one = np.zeros(1, np.float64)
    one_bits = one.view(np.int64)
    for run in range(len(heads)):
        end = heads[run + 1] if run + 1 < len(heads) else n
        for s in range(n_sums):
            for j in range(len(target)):
                if target[j] == s:
                    for i in range(heads[run], end):
                        add_exact(chunks, span, special, bits[j, i], 1)
            first[s, run], second[s, run] = read_pair(chunks, span, special, one, one_bits)
            clear_exact(chunks, span, special)
    return first, second
