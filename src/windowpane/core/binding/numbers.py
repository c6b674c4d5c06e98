"""Counts, sums, means and variances."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Bools, Floats
from windowpane.core.binding.parts import Binder, Parts, Types
from windowpane.core.column_types import need_number
from windowpane.core.lowering import cells, divide, exact_sum, none_of, sum_as_float
from windowpane.core.partials.base import Partial, Ranged
from windowpane.core.partials.counts import RowCount, ValidCount
from windowpane.core.partials.moments import Moments
from windowpane.core.partials.sums import FloatSum, IntSum, LogSum, WeightedSum
from windowpane.values.aggregates import Aggregate


def _count(aggregate: Aggregate, _types: Types) -> Parts:
    partial: Partial = ValidCount(aggregate.columns) if aggregate.columns else RowCount()
    return (partial,), pa.int64(), lambda r, _: pa.array(cells(r[0]), pa.int64())


def _number(aggregate: Aggregate, types: Types) -> tuple[str, bool]:
    """The only column, and whether it holds floats."""
    (column,) = aggregate.columns
    need_number(aggregate.function, column, types[column])
    return column, pa.types.is_floating(types[column])


def _sum(aggregate: Aggregate, types: Types) -> Parts:
    column, floating = _number(aggregate, types)
    seen = ValidCount((column,))
    if floating:
        return (seen, FloatSum(column)), pa.float64(), lambda r, _: _floats(cells(r[1]), none_of(r[0]))
    return (seen, IntSum(column)), pa.int64(), lambda r, _: exact_sum(r[1].value, none_of(r[0]), column)


def _mean(aggregate: Aggregate, types: Types) -> Parts:
    column, floating = _number(aggregate, types)
    total: Partial = FloatSum(column) if floating else IntSum(column)

    def lower(r: tuple[Ranged, ...], _: object) -> pa.Array:
        sums = cells(r[1]) if floating else sum_as_float(r[1].value)
        return divide(sums, cells(r[0]), none_of(r[0]))

    return (ValidCount((column,)), total), pa.float64(), lower


def _weighted_mean(aggregate: Aggregate, types: Types) -> Parts:
    value, weight = aggregate.columns
    need_number(aggregate.function, value, types[value])
    need_number(aggregate.function, weight, types[weight])

    def lower(r: tuple[Ranged, ...], _: object) -> pa.Array:
        return divide(cells(r[0], 1), cells(r[0], 2), none_of(r[0]) | (cells(r[0], 2) == 0))

    return (WeightedSum(value, weight),), pa.float64(), lower


def _geometric_mean(aggregate: Aggregate, types: Types) -> Parts:
    column, _ = _number(aggregate, types)

    def lower(r: tuple[Ranged, ...], _: object) -> pa.Array:
        with np.errstate(all="ignore"):
            return _floats(np.exp(cells(r[1]) / cells(r[0])), none_of(r[0]))

    return (ValidCount((column,)), LogSum(column)), pa.float64(), lower


def _variance(aggregate: Aggregate, types: Types) -> Parts:
    column, _ = _number(aggregate, types)
    ddof, root = aggregate.parameter("ddof"), aggregate.function == "stddev"

    def lower(r: tuple[Ranged, ...], _: object) -> pa.Array:
        n, spread = cells(r[0], 0), cells(r[0], 2)
        with np.errstate(all="ignore"):
            # Rounding may leave a tiny negative spread where all values are equal.
            result = np.maximum(spread, 0.0) / (n - ddof)
            return _floats(np.sqrt(result) if root else result, n <= ddof)

    return (Moments(column),), pa.float64(), lower


def _floats(values: Floats, absent: Bools) -> pa.Array:
    return pa.array(values, pa.float64(), mask=absent)


BINDERS: dict[str, Binder] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "weighted_mean": _weighted_mean,
    "geometric_mean": _geometric_mean,
    "variance": _variance,
    "stddev": _variance,
}
