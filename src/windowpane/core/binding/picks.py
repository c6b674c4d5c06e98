"""Aggregates that give one of the values: least, largest, first, last, and the value that goes with them."""

from __future__ import annotations

from typing import cast

import pyarrow as pa

from windowpane.core.binding.parts import Binder, Parts, Types
from windowpane.core.column_types import need_ordered, need_storable
from windowpane.core.columns import is_text
from windowpane.core.lowering import Take, cells, from_codes, held_or_null, none_of
from windowpane.core.partials.base import Ranged
from windowpane.core.partials.counts import ValidCount
from windowpane.core.partials.extremes import Max, Min
from windowpane.core.partials.picks import ExtremeCount, Pick, Which
from windowpane.values.aggregates import Aggregate


def _extreme(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    type_ = types[column]
    need_ordered(aggregate.function, column, type_)
    partials = (ValidCount((column,)), Min(column) if aggregate.function == "min" else Max(column))
    return partials, type_, lambda r, _: from_codes(cells(r[1]), type_, none_of(r[0]))


def _extreme_count(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    need_ordered(aggregate.function, column, types[column])
    partial = ExtremeCount(column, largest=aggregate.function == "max_count")
    return (partial,), pa.int64(), lambda r, _: pa.array(cells(r[0], 1), pa.int64(), mask=cells(r[0], 1) == 0)


def _pick_of(which: str, column: str, by: str | None, type_: pa.DataType) -> Pick:
    return Pick(cast("Which", which), column, by, pa.types.is_floating(type_), is_text(type_))


def _picked(ranged: Ranged, column: str, type_: pa.DataType, take: Take) -> pa.Array:
    return held_or_null(column, type_, cells(ranged, -1), none_of(ranged), take)


def _pick(aggregate: Aggregate, types: Types) -> Parts:
    column, by = aggregate.columns[0], (*aggregate.columns, None)[1]
    type_ = types[column]
    need_storable(aggregate.function, column, type_)
    if by is not None:
        need_ordered(aggregate.function, by, types[by])
    partial = _pick_of(aggregate.function, column, by, type_)
    return (partial,), type_, lambda r, take: _picked(r[0], column, type_, take)


def _m4(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    type_ = types[column]
    need_ordered(aggregate.function, column, type_)
    ends = (_pick_of("first", column, None, type_), _pick_of("last", column, None, type_))
    names = ["min", "max", "first", "last"]

    def lower(r: tuple[Ranged, ...], take: Take) -> pa.Array:
        none = none_of(r[0])
        parts = [from_codes(cells(r[i]), type_, none) for i in (1, 2)]
        parts += [_picked(r[i], column, type_, take) for i in (3, 4)]
        return pa.StructArray.from_arrays(parts, names=names, mask=pa.array(none))

    partials = (ValidCount((column,)), Min(column), Max(column), *ends)
    return partials, pa.struct([(name, type_) for name in names]), lower


BINDERS: dict[str, Binder] = {
    "min": _extreme,
    "max": _extreme,
    "min_count": _extreme_count,
    "max_count": _extreme_count,
    "first": _pick,
    "last": _pick,
    "arg_min": _pick,
    "arg_max": _pick,
    "m4": _m4,
}
