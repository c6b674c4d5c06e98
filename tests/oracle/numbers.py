"""Arithmetic on lists of numbers, exact where finite values allow it."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any


def finite(values: Sequence[Any]) -> bool:
    """True if there is no NaN and no infinity."""
    return all(not isinstance(v, float) or math.isfinite(v) for v in values)


def total(values: Sequence[Any]) -> Any:
    """Integers exactly; floats rounded once at the end; IEEE where a value or the sum is not finite."""
    if not any(isinstance(v, float) for v in values):
        return sum(values)
    try:
        return math.fsum(values) if finite(values) else sum(values)
    except OverflowError:  # fsum refuses a sum beyond the largest float, where IEEE says infinity
        return sum(float(v) for v in values)


def mean(values: Sequence[Any]) -> Any:
    """The sum divided by the count."""
    return total(values) / len(values)


def geometric_mean(values: Sequence[Any]) -> float:
    """NaN if a value is negative, 0 if one is 0."""
    if any(v < 0 for v in values):
        return math.nan
    return math.exp(mean([-math.inf if v == 0 else math.log(v) for v in values]))


def variance(values: Sequence[Any], ddof: int = 1) -> float | None:
    """Exact to the last rounding; ddof 1 for a sample, 0 for a population; a sample of one gives None."""
    freedom = len(values) - ddof
    if freedom <= 0:
        return None
    if not finite(values):
        return math.nan
    exact = [Fraction(v) for v in values]
    centre = sum(exact) / len(exact)
    return float(sum((v - centre) ** 2 for v in exact) / freedom)


def stddev(values: Sequence[Any], ddof: int = 1) -> float | None:
    """The root of the variance."""
    squared = variance(values, ddof)
    return None if squared is None else math.sqrt(squared)


def quantile(ordered: Sequence[Any], q: float, method: str = "linear") -> Any:
    """At position q * (n - 1): between the neighbours, the lower of them, or the nearest (half to even)."""
    at = q * (len(ordered) - 1)
    if method == "nearest":
        return ordered[round(at)]
    low = math.floor(at)
    if method == "lower":
        return ordered[low]
    a, b, part = ordered[low], ordered[math.ceil(at)], at - low
    return float(a) if part == 0 or a == b else a + (b - a) * part
