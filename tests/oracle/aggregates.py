"""Textbook aggregates over the plain list of a window's tuples.

Nulls are skipped by all but `count` without a column. A group without values gives None, except that
counts give 0 and `collect` gives []. NaN is one value, larger than any number, wherever values are
compared; sums and means follow IEEE.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle import numbers
from windowpane.values.semantics import Tuple

INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Item:
    """A tuple together with the row it came from."""

    tuple: Tuple
    row: Mapping[str, Any]


Items = Sequence[Item]
Order = Callable[[Any], Any]


def natural(value: Any) -> Any:
    """A sort key by value: null first, then numbers or texts, NaN last."""
    if value is None:
        return (0, 0)
    return (2, 0) if is_nan(value) else (1, value)


def is_nan(value: Any) -> bool:
    """True for a float that is not a number."""
    return isinstance(value, float) and math.isnan(value)


def aggregate(items: Items, function: str, *args: Any, order: Order = natural) -> Any:
    """The value of one aggregate over tuples in event-time order."""
    return AGGREGATES[function](items, order, *args)


def _values(items: Items, column: str) -> list[Any]:
    return [item.row[column] for item in items if item.row[column] is not None]


def _pairs(items: Items, first: str, second: str) -> list[tuple[Item, Any, Any]]:
    """The tuples where neither column is null."""
    both = [(item, item.row[first], item.row[second]) for item in items]
    return [(item, a, b) for item, a, b in both if a is not None and b is not None]


def _over_values(compute: Callable[..., Any]) -> Callable[..., Any]:
    """An aggregate of the non-null values alone, None if there are none."""

    def applied(items: Items, _order: Order, column: str, *args: Any) -> Any:
        values = _values(items, column)
        return compute(values, *args) if values else None

    return applied


def count(items: Items, _order: Order, column: str | None = None) -> int:
    return len(items) if column is None else len(_values(items, column))


def total(values: list[Any]) -> Any:
    result = numbers.total(values)
    if isinstance(result, int) and result not in INT64:
        raise OverflowError(f"the sum {result} leaves int64")
    return result


def smallest(values: list[Any]) -> Any:
    return min(values, key=natural)


def largest(values: list[Any]) -> Any:
    return max(values, key=natural)


def min_count(values: list[Any]) -> int:
    return sum(natural(v) == natural(smallest(values)) for v in values)


def max_count(values: list[Any]) -> int:
    return sum(natural(v) == natural(largest(values)) for v in values)


def weighted_mean(items: Items, _order: Order, value: str, weight: str) -> float | None:
    pairs = [(x, w) for _, x, w in _pairs(items, value, weight)]
    weights = numbers.total([w for _, w in pairs])
    return numbers.total([x * w for x, w in pairs]) / weights if pairs and weights != 0 else None


def arg_min(items: Items, order: Order, column: str, by: str) -> Any:
    pairs = _pairs(items, column, by)
    best = min(pairs, key=lambda p: (natural(p[2]), p[0].tuple.time, order(p[1])), default=None)
    return None if best is None else best[1]


def arg_max(items: Items, order: Order, column: str, by: str) -> Any:
    pairs = _pairs(items, column, by)
    top = max((natural(b) for _, _, b in pairs), default=None)
    return arg_min([item for item, _, b in pairs if natural(b) == top], order, column, by)


def first(items: Items, order: Order, column: str) -> Any:
    timed = [(i.tuple.time, order(i.row[column]), i.row[column]) for i in items if i.row[column] is not None]
    return min(timed, key=lambda v: v[:2])[2] if timed else None


def last(items: Items, order: Order, column: str) -> Any:
    timed = [(i.tuple.time, order(i.row[column]), i.row[column]) for i in items if i.row[column] is not None]
    return max(timed, key=lambda v: v[:2])[2] if timed else None


def m4(items: Items, order: Order, column: str) -> dict[str, Any] | None:
    values = _values(items, column)
    if not values:
        return None
    ends = {"first": first(items, order, column), "last": last(items, order, column)}
    return {"min": smallest(values), "max": largest(values), **ends}


def quantile(values: list[Any], q: float | Sequence[float], method: str = "linear") -> Any:
    if isinstance(q, Sequence):
        return [quantile(values, each, method) for each in q]
    return numbers.quantile(sorted(values, key=natural), q, method)


def distinct(items: Items, _order: Order, column: str) -> int:
    return len({natural(v) for v in _values(items, column)})


def _by_frequency(values: list[Any], order: Order) -> list[tuple[Any, int]]:
    """Each distinct value with its count, most frequent first, ties by value."""
    counts = Counter(natural(v) for v in values)
    shown = {natural(v): v for v in values}
    return sorted(((shown[k], n) for k, n in counts.items()), key=lambda vn: (-vn[1], order(vn[0])))


def heavy_hitters_counted(
    items: Items, order: Order, column: str, share: float
) -> list[dict[str, Any]] | None:
    values = _values(items, column)
    found = [{"value": v, "count": n} for v, n in _by_frequency(values, order) if n >= share * len(values)]
    return found if values else None


def top_k_counted(items: Items, order: Order, column: str, k: int) -> list[dict[str, Any]] | None:
    values = _values(items, column)
    return [{"value": v, "count": n} for v, n in _by_frequency(values, order)[:k]] if values else None


def _uncounted(counted: Callable[..., Any]) -> Callable[..., Any]:
    """The same values without their counts."""

    def applied(items: Items, order: Order, *args: Any) -> list[Any] | None:
        found = counted(items, order, *args)
        return None if found is None else [each["value"] for each in found]

    return applied


def collect(items: Items, _order: Order, column: str) -> list[Any]:
    return _values(sorted(items, key=lambda item: item.tuple.rank), column)


AGGREGATES: dict[str, Callable[..., Any]] = {
    "count": count,
    "sum": _over_values(total),
    "min": _over_values(smallest),
    "max": _over_values(largest),
    "mean": _over_values(numbers.mean),
    "weighted_mean": weighted_mean,
    "geometric_mean": _over_values(numbers.geometric_mean),
    "variance": _over_values(numbers.variance),
    "stddev": _over_values(numbers.stddev),
    "min_count": _over_values(min_count),
    "max_count": _over_values(max_count),
    "arg_min": arg_min,
    "arg_max": arg_max,
    "first": first,
    "last": last,
    "m4": m4,
    "median": _over_values(lambda values: quantile(values, 0.5)),
    "quantile": _over_values(quantile),
    "distinct": distinct,
    "heavy_hitters": _uncounted(heavy_hitters_counted),
    "heavy_hitters_counted": heavy_hitters_counted,
    "top_k": _uncounted(top_k_counted),
    "top_k_counted": top_k_counted,
    "collect": collect,
}
