"""Bind an aggregate to the types of its columns: which partials it keeps, what type it gives, how it is lowered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from windowpane.core.column_types import need_number, need_ordered
from windowpane.core.lowering import Lower, Take, cells, divide, exact_sum, from_codes, sum_as_float
from windowpane.core.partials.base import Partial, Ranged
from windowpane.core.partials.counts import RowCount, ValidCount
from windowpane.core.partials.extremes import Max, Min
from windowpane.core.partials.sums import FloatSum, IntSum
from windowpane.values.aggregates import Aggregate
from windowpane.values.errors import BadAggregate

Types = dict[str, pa.DataType]


@dataclass(frozen=True)
class BoundAggregate:
    """An aggregate that knows its types."""

    name: str
    partials: tuple[Partial, ...]
    type: pa.DataType
    _lower: Lower

    def lower(self, ranged: tuple[Ranged, ...], interner_take: Take) -> pa.Array:
        """The results, one per range; `ranged` is parallel to `partials`."""
        return self._lower(ranged, interner_take)


Parts = tuple[tuple[Partial, ...], pa.DataType, Lower]


def bind(aggregate: Aggregate, types: Types) -> BoundAggregate:
    """Choose partials and lowering by the types; columns must be known, wrong types are an error here."""
    if aggregate.function not in _BINDERS:
        raise BadAggregate(f"there is no aggregate {aggregate.function!r}; there are {', '.join(sorted(_BINDERS))}.")
    return BoundAggregate(aggregate.name, *_BINDERS[aggregate.function](aggregate, types))


def _count(aggregate: Aggregate, types: Types) -> Parts:
    partial = ValidCount(aggregate.columns) if aggregate.columns else RowCount()
    return (partial,), pa.int64(), lambda ranged, take: pa.array(cells(ranged[0]), pa.int64())


def _sum(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    if pa.types.is_floating(need_number(aggregate, column, types)):
        floating = (ValidCount((column,)), FloatSum(column))
        return floating, pa.float64(), lambda r, take: pa.array(cells(r[1]), pa.float64(), mask=cells(r[0]) == 0)
    exact = (ValidCount((column,)), IntSum(column))
    return exact, pa.int64(), lambda r, take: exact_sum(r[1].value, cells(r[0]) == 0, column)


def _mean(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    if pa.types.is_floating(need_number(aggregate, column, types)):
        floating = (ValidCount((column,)), FloatSum(column))
        return floating, pa.float64(), lambda r, take: divide(cells(r[1]), cells(r[0]), cells(r[0]) == 0)
    exact = (ValidCount((column,)), IntSum(column))
    return exact, pa.float64(), lambda r, take: divide(sum_as_float(r[1].value), cells(r[0]), cells(r[0]) == 0)


def _extreme(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    type_ = need_ordered(aggregate, column, types)
    partials = (ValidCount((column,)), Min(column) if aggregate.function == "min" else Max(column))
    return partials, type_, lambda r, take: from_codes(cells(r[1]), type_, cells(r[0]) == 0)


_BINDERS: dict[str, Callable[[Aggregate, Types], Parts]] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "min": _extreme,
    "max": _extreme,
}
