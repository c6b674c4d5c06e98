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
FRACTION = np.int64((1 << 52) - 1)
HIDDEN = np.int64(1 << 52)
_HALF_RANGE = 640
_POWERS = np.ldexp(1.0, np.arange(-_HALF_RANGE, _HALF_RANGE + 1))
_ONE, _TWO = np.uint64(1), np.uint64(2)


@kernel
def spread(chunks: Ints, at: np.uint64, fraction: np.int64, shift: int, sign: int) -> None:
    """Add (sign 1) or subtract (-1) a fraction to the three chunks from `at` on that its bits fall into.

    A place is unsigned: Numba spares looking for negative ones, a tenth of all the time of a sum.
    """
    low = (fraction & _LOW) << shift
    high = (fraction >> 32) << shift
    chunks[at] += sign * (low & _LOW)
    chunks[at + _ONE] += sign * ((low >> 32) + (high & _LOW))
    chunks[at + _TWO] += sign * (high >> 32)


@kernel
def add_exact(chunks: Ints, spans: Spans, specials: Spans, which: int, bits: int, sign: int) -> None:
    """Add (sign 1) or subtract (-1) the float with these bits to sum `which` of a flat table of sums.

    A sum has `CHUNKS` entries in `chunks`, two in `spans` (the range of chunks in use), three in `specials`.
    """
    exponent = (bits >> 52) & 2047
    fraction = bits & FRACTION
    if exponent == 2047:
        if fraction:
            specials[3 * which + NAN] += sign
        elif bits < 0:
            specials[3 * which + MINUS] += sign
        else:
            specials[3 * which + PLUS] += sign
        return
    if exponent:
        fraction |= HIDDEN
        exponent -= 1
    elif fraction == 0:
        return
    if bits < 0:
        sign = -sign
    first = exponent >> 5
    spread(chunks, np.uint64(CHUNKS * which + first), fraction, exponent & 31, sign)
    if first < spans[2 * which]:
        spans[2 * which] = first
    if first + 2 > spans[2 * which + 1]:
        spans[2 * which + 1] = first + 2


@kernel
def carry(chunks: Ints, spans: Spans, which: int) -> None:
    """Bring every chunk but the last back to 32 bits; the last keeps the sign."""
    first, last = CHUNKS * which + spans[2 * which], CHUNKS * which + spans[2 * which + 1]
    if spans[2 * which + 1] < 0:
        return
    over = np.int64(0)
    for at in range(first, last):
        held = chunks[at] + over
        over = held >> 32
        chunks[at] = held & _LOW
    chunks[last] += over
    # 31 bits, so that a negative last chunk can be turned into a positive one of 32
    if spans[2 * which + 1] < CHUNKS - 1 and chunks[last] >> 31 != 0 and chunks[last] >> 31 != -1:
        over = chunks[last] >> 32
        chunks[last] &= _LOW
        chunks[last + 1] += over
        spans[2 * which + 1] += 1


@kernel
def _negate(chunks: Ints, first: int, last: int) -> None:
    over = np.int64(0)
    for at in range(first, last):
        held = over - chunks[at]
        over = held >> 32
        chunks[at] = held & _LOW
    chunks[last] = over - chunks[last]


@kernel
def rounded(head: np.int64, second: np.int64, third: np.int64, left: np.int64, top: int) -> float:
    """The positive number whose first 96 bits are these, the first in chunk `top`; to nearest, ties to even.

    `left` is not 0 if anything stands below.
    """
    # 55 to 63 bits from the top one down; converting them rounds, once what is left below is in the last bit
    if head >> 31:
        shift = -1
        kept = (head << 31) | (second >> 1)
        left |= (second & 1) | third
    else:
        if head >> 22:
            shift = 0
        elif head >> 13:
            shift = 9
        elif head >> 4:
            shift = 18
        else:
            shift = 27
        kept = (head << (32 + shift)) | (second << shift) | (third >> (32 - shift))
        left |= third & ((np.int64(1) << (32 - shift)) - 1)
    if left:
        kept |= 1
    power = 32 * top - 32 - shift - 1074
    half = power >> 1
    value: float = kept * _POWERS[half + _HALF_RANGE] * _POWERS[power - half + _HALF_RANGE]
    return value


@kernel
def _read_slowly(chunks: Ints, spans: Spans, which: int) -> float:
    """A sum that is negative, or whose first chunks are 0."""
    carry(chunks, spans, which)
    base = CHUNKS * which
    first, last = base + spans[2 * which], base + spans[2 * which + 1]
    negative = chunks[last] < 0
    if negative:
        _negate(chunks, first, last)
    top = last
    while top > first and chunks[top] == 0:
        top -= 1
    result = 0.0
    if chunks[top] >> 32:
        # only at the end of the range, beyond float64
        result = np.inf
    elif chunks[top]:
        second = chunks[top - 1] if top - 1 >= first else np.int64(0)
        third = chunks[top - 2] if top - 2 >= first else np.int64(0)
        left = np.int64(0)
        for at in range(first, top - 2):
            left |= chunks[at]
        result = rounded(chunks[top], second, third, left, top - base)
    if negative:
        _negate(chunks, first, last)
        result = -result
    return result


@kernel
def read_exact(chunks: Ints, spans: Spans, specials: Spans, which: int) -> float:
    """Sum `which`, rounded once."""
    at = 3 * which
    if specials[at] or specials[at + 1] or specials[at + 2]:
        if specials[at + NAN] > 0 or (specials[at + PLUS] > 0 and specials[at + MINUS] > 0):
            return np.nan
        return np.inf if specials[at + PLUS] > 0 else -np.inf
    base = CHUNKS * which
    first, last = spans[2 * which], spans[2 * which + 1]
    if last < first:
        return 0.0
    # carried on the way and not stored: most sums are positive and have few chunks
    over = left = lowest = third = second = head = np.int64(0)
    for at in range(base + first, base + last + 1):
        left |= lowest
        lowest, third, second = third, second, head
        head = chunks[at] + over
        over = head >> 32
        head &= _LOW
    if over == 0:
        if head:
            return rounded(head, second, third, left | lowest, last)
        if second:
            return rounded(second, third, lowest, left, last - 1)
    return _read_slowly(chunks, spans, which)


@kernel
def clear_exact(chunks: Ints, spans: Spans, specials: Spans, which: int) -> None:
    """Empty sum `which`."""
    for at in range(CHUNKS * which + max(0, spans[2 * which]), CHUNKS * which + spans[2 * which + 1] + 1):
        chunks[at] = 0
    spans[2 * which] = CHUNKS
    spans[2 * which + 1] = -1
    for i in range(3):
        specials[3 * which + i] = 0


@kernel
def carry_all(chunks: Ints, spans: Spans) -> None:
    """Carry in every sum of a table."""
    for which in range(len(spans) // 2):
        carry(chunks, spans, which)


@kernel
def read_pair(
    chunks: Ints, spans: Spans, specials: Spans, which: int, one: Floats, one_bits: Ints
) -> tuple[float, float]:
    """The sum as the nearest float and the float nearest to what is left; `one` is scratch for its bits."""
    first = read_exact(chunks, spans, specials, which)
    if not np.isfinite(first):
        return first, 0.0
    one[0] = first
    add_exact(chunks, spans, specials, which, one_bits[0], -1)
    second = read_exact(chunks, spans, specials, which)
    add_exact(chunks, spans, specials, which, one_bits[0], 1)
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
                        add_exact(chunks, span, special, 0, bits[j, i], 1)
            first[s, run], second[s, run] = read_pair(chunks, span, special, 0, one, one_bits)
            clear_exact(chunks, span, special, 0)
    return first, second
