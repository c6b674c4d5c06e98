"""Aggregate specifications: what to compute, and the algebra that licenses how.

An `Aggregate` names a function and its columns. How it is folded, combined and lowered is the core's
business (`core/aggregates.py`), except for a user's own aggregate, which brings its arithmetic along
(`values/user_aggregates.py`). Every aggregate skips nulls and is null where it saw no value, except the
counts, which are 0. NaN is a value: the largest, equal to itself. Order of time breaks ties, then value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, SupportsFloat, SupportsIndex

from windowpane.values.errors import BadAggregate

Size = Literal["distributive", "algebraic", "holistic"]
Parameter = float | int | bool | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Algebra:
    """The properties that decide which techniques may be used (Traub et al. 2019, section 4.2)."""

    size: Size
    commutative: bool = True
    invertible: bool = False
    associative: bool = True


DISTRIBUTIVE = Algebra("distributive")
ALGEBRAIC = Algebra("algebraic")
HOLISTIC = Algebra("holistic")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A built-in aggregate; made by the functions below, not by hand.

    `algebra.invertible` holds for integer columns: sums of floats are never subtracted.
    """

    function: str
    columns: tuple[str, ...]
    algebra: Algebra
    parameters: tuple[tuple[str, Parameter], ...] = ()
    output: str | None = None

    @property
    def name(self) -> str:
        """The result column: `sum_price`, `count`, or what `named` said."""
        return self.output or "_".join((self.function, *self.columns))

    def named(self, output: str) -> Aggregate:
        """The same aggregate with another name for its result column."""
        return replace(self, output=output)

    def parameter(self, name: str) -> Parameter:
        """A parameter by its name."""
        return dict(self.parameters)[name]


def count(column: str | None = None) -> Aggregate:
    """The number of tuples, or of tuples whose `column` is not null. int64, never null."""
    return Aggregate("count", () if column is None else (column,), Algebra("distributive", invertible=True))


def sum(column: str) -> Aggregate:  # noqa: A001 - read as `wp.sum`
    """The sum: int64 for integers (an error if it does not fit, never a wrapped value), else float64."""
    return Aggregate("sum", (column,), Algebra("distributive", invertible=True))


def min(column: str) -> Aggregate:  # noqa: A001 - as above
    """The least value, in the column's own type."""
    return Aggregate("min", (column,), DISTRIBUTIVE)


def max(column: str) -> Aggregate:  # noqa: A001 - as above
    """The largest value, in the column's own type."""
    return Aggregate("max", (column,), DISTRIBUTIVE)


def mean(column: str) -> Aggregate:
    """The arithmetic mean, float64. Of integers it never overflows."""
    return Aggregate("mean", (column,), Algebra("algebraic", invertible=True))


def weighted_mean(value: str, weight: str) -> Aggregate:
    """`sum(value * weight) / sum(weight)`, such as a volume-weighted price; null if the weights sum to 0."""
    return Aggregate("weighted_mean", (value, weight), ALGEBRAIC)


def geometric_mean(column: str) -> Aggregate:
    """The n-th root of the product, by logarithms: 0 if there is a zero, NaN if a value is below 0."""
    return Aggregate("geometric_mean", (column,), ALGEBRAIC)


def variance(column: str, ddof: int = 1) -> Aggregate:
    """The variance, divided by `n - ddof`: 1 for a sample, 0 for a population; null if n <= ddof."""
    return Aggregate("variance", (column,), ALGEBRAIC, (("ddof", _ddof(ddof)),))


def stddev(column: str, ddof: int = 1) -> Aggregate:
    """The standard deviation, the root of `variance`."""
    return Aggregate("stddev", (column,), ALGEBRAIC, (("ddof", _ddof(ddof)),))


def min_count(column: str) -> Aggregate:
    """How many tuples hold the least value. int64."""
    return Aggregate("min_count", (column,), ALGEBRAIC)


def max_count(column: str) -> Aggregate:
    """How many tuples hold the largest value. int64."""
    return Aggregate("max_count", (column,), ALGEBRAIC)


def arg_min(value: str, by: str) -> Aggregate:
    """The `value` of the tuple with the least `by`; of equals the earliest, then the least value."""
    return Aggregate("arg_min", (value, by), ALGEBRAIC)


def arg_max(value: str, by: str) -> Aggregate:
    """The `value` of the tuple with the largest `by`; of equals the earliest, then the least value."""
    return Aggregate("arg_max", (value, by), ALGEBRAIC)


def first(column: str) -> Aggregate:
    """The earliest value; of equal times the least."""
    return Aggregate("first", (column,), ALGEBRAIC)


def last(column: str) -> Aggregate:
    """The latest value; of equal times the largest."""
    return Aggregate("last", (column,), ALGEBRAIC)


def m4(column: str) -> Aggregate:
    """`struct<min, max, first, last>`: what a line chart needs to draw a window without error."""
    return Aggregate("m4", (column,), ALGEBRAIC)


def median(column: str) -> Aggregate:
    """The exact median: `quantile(column, 0.5)`."""
    return Aggregate("median", (column,), HOLISTIC, (("q", 0.5),))


def quantile(column: str, q: float | Sequence[float]) -> Aggregate:
    """The exact quantile, linearly interpolated as NumPy does; a list of q gives a list of results."""
    return Aggregate("quantile", (column,), HOLISTIC, (("q", _shares(q)),))


def distinct(column: str) -> Aggregate:
    """The exact number of distinct values. int64, never null."""
    return Aggregate("distinct", (column,), HOLISTIC)


def heavy_hitters(column: str, share: float) -> Aggregate:
    """The values that make up at least `share` of the non-null ones: `list<struct<value, count>>`.

    Most frequent first, then by value.
    """
    if not _is_number(share) or not 0 < share <= 1:
        raise BadAggregate(f"heavy_hitters: share is {share!r}, but it must be above 0 and at most 1.")
    return Aggregate("heavy_hitters", (column,), HOLISTIC, (("share", float(share)),))


def top_k(column: str, k: int) -> Aggregate:
    """The k most frequent values: `list<struct<value, count>>`, most frequent first, then by value."""
    if not _is_whole(k) or k < 1:
        raise BadAggregate(f"top_k: k is {k!r}, but it must be a whole number of at least 1.")
    return Aggregate("top_k", (column,), HOLISTIC, (("k", int(k)),))


def collect(column: str) -> Aggregate:
    """All values as a list in the order of time; equal times in an order that only their content decides."""
    return Aggregate("collect", (column,), Algebra("holistic", commutative=False))


def approx_distinct(column: str, lg_k: int = 12) -> Aggregate:
    """About how many distinct values, from a theta sketch of 2**lg_k hashes: exact up to there.

    The standard error is 1 / sqrt(2**lg_k). The estimate depends on the set of values only, not on
    the order or the batches they came in. int64, never null.
    """
    if not _is_whole(lg_k) or not 5 <= lg_k <= 26:
        raise BadAggregate(f"approx_distinct: lg_k is {lg_k!r}, but it must be a whole number from 5 to 26.")
    return Aggregate("approx_distinct", (column,), ALGEBRAIC, (("lg_k", int(lg_k)),))


def approx_quantile(column: str, q: float | Sequence[float], k: int = 200) -> Aggregate:
    """About the quantile, from a KLL sketch: with k = 200 the rank is off by at most about 1.3 %.

    The sketch flips coins, so that two runs may differ within that error. NaN is left out. float64.
    """
    if not _is_whole(k) or not 8 <= k <= 65535:
        raise BadAggregate(f"approx_quantile: k is {k!r}, but it must be a whole number from 8 to 65535.")
    return Aggregate("approx_quantile", (column,), ALGEBRAIC, (("q", _shares(q)), ("k", int(k))))


def _ddof(ddof: int) -> int:
    if not _is_whole(ddof) or ddof < 0:
        raise BadAggregate(f"ddof is {ddof!r}, but it must be 0 (population) or more (1: sample).")
    return int(ddof)


def _shares(q: float | Sequence[float]) -> float | tuple[float, ...]:
    several = isinstance(q, Sequence) and not isinstance(q, str)
    many: tuple[object, ...] = tuple(q) if isinstance(q, Sequence) and several else (q,)
    if not many:
        raise BadAggregate("quantile: q is an empty list. Give at least one number from 0 to 1.")
    shares = tuple(_share(x) for x in many)
    return shares if several else shares[0]


def _share(q: object) -> float:
    if not isinstance(q, SupportsFloat) or not 0 <= float(q) <= 1:
        raise BadAggregate(f"quantile: q is {q!r}, but it must be from 0 to 1. The median is 0.5.")
    return float(q)


def _is_whole(value: object) -> bool:
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, SupportsFloat)
