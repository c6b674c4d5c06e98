"""Aggregates of the whole set of values: quantiles, distinct and frequent values, lists, sketches."""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Bools, Floats
from windowpane.core.binding.parts import Binder, Parts, Types
from windowpane.core.column_types import need_number, need_storable
from windowpane.core.columns import is_text
from windowpane.core.frequencies import count_distinct, frequent, quantiles
from windowpane.core.lowering import Take, cells, held, lists
from windowpane.core.partials.base import Ranged
from windowpane.core.partials.lists import Lists
from windowpane.core.partials.runs import ValueCounts, ragged
from windowpane.core.partials.sketches import Kll, Theta, estimate_distinct, estimate_quantiles
from windowpane.values.aggregates import Aggregate


def _shares(aggregate: Aggregate) -> tuple[tuple[float, ...], bool]:
    """The shares asked for, and whether as a list."""
    q = aggregate.parameter("q")
    return (q, True) if isinstance(q, tuple) else ((float(q),), False)


def _shaped(found: Floats, absent: Bools, many: bool) -> pa.Array:  # noqa: FBT001 - a type, not a switch
    if not many:
        return pa.array(found[:, 0], pa.float64(), mask=absent)
    kept = pa.array(found[~absent].ravel(), pa.float64())
    return lists(np.where(absent, 0, found.shape[1]), kept, absent)


def _quantile(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    type_ = types[column]
    need_number(aggregate.function, column, type_)
    shares, many = _shares(aggregate)

    def lower(r: tuple[Ranged, ...], _: Take) -> pa.Array:
        return _shaped(*quantiles(r[0], shares, type_), many)

    return (ValueCounts(column),), _quantile_type(many), lower


def _quantile_type(many: bool) -> pa.DataType:  # noqa: FBT001 - as above
    return pa.list_(pa.float64()) if many else pa.float64()


def _distinct(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    need_storable(aggregate.function, column, types[column])
    return (ValueCounts(column, is_text(types[column])),), pa.int64(), lambda r, _: count_distinct(r[0])


def _frequent(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    type_ = types[column]
    need_storable(aggregate.function, column, type_)
    parameters = dict(aggregate.parameters)
    most, share = cast("int | None", parameters.get("k")), cast("float", parameters.get("share", 0.0))
    result = pa.list_(pa.struct([("value", type_), ("count", pa.int64())]))
    partial = ValueCounts(column, is_text(type_))
    return (partial,), result, lambda r, take: frequent(r[0], column, type_, most, share, take)


def _collect(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    type_ = types[column]
    need_storable(aggregate.function, column, type_)

    def lower(r: tuple[Ranged, ...], take: Take) -> pa.Array:
        found = ragged(r[0].value)
        return lists(np.diff(found.offsets), held(column, type_, found.values, take))

    return (Lists(column, pa.types.is_floating(type_), is_text(type_)),), pa.list_(type_), lower


def _approx_distinct(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    need_storable(aggregate.function, column, types[column])
    partial = Theta(column, cast("int", aggregate.parameter("lg_k")))
    return (partial,), pa.int64(), lambda r, _: pa.array(estimate_distinct(cells(r[0])), pa.int64())


def _approx_quantile(aggregate: Aggregate, types: Types) -> Parts:
    (column,) = aggregate.columns
    need_number(aggregate.function, column, types[column])
    shares, many = _shares(aggregate)

    def lower(r: tuple[Ranged, ...], _: Take) -> pa.Array:
        found = estimate_quantiles(cells(r[0]), shares)
        return _shaped(found, np.isnan(found[:, 0]), many)

    return (Kll(column, cast("int", aggregate.parameter("k"))),), _quantile_type(many), lower


BINDERS: dict[str, Binder] = {
    "median": _quantile,
    "quantile": _quantile,
    "distinct": _distinct,
    "heavy_hitters": _frequent,
    "top_k": _frequent,
    "collect": _collect,
    "approx_distinct": _approx_distinct,
    "approx_quantile": _approx_quantile,
}
