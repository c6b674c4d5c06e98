"""Which column types an aggregate can use; each refusal names the column, its type and the remedy."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

from windowpane.values.aggregates import Aggregate
from windowpane.values.errors import wrong_type


def is_interned(type_: pa.DataType) -> bool:
    """True for strings and binaries, which the core holds as interned ids."""
    return bool(
        t.is_string(type_) or t.is_large_string(type_) or t.is_binary(type_) or t.is_large_binary(type_)
        or t.is_string_view(type_) or t.is_binary_view(type_)
    )  # fmt: skip


def _is_number(type_: pa.DataType) -> bool:
    return bool((t.is_integer(type_) and not t.is_uint64(type_)) or t.is_floating(type_))


def _is_ordered(type_: pa.DataType) -> bool:
    return _is_number(type_) or bool(t.is_boolean(type_) or t.is_temporal(type_)) and not t.is_interval(type_)


def _remedy(type_: pa.DataType, otherwise: str) -> str:
    if t.is_decimal(type_):
        return "Cast the column to double or int64."
    if t.is_uint64(type_):
        return "Cast the column to int64."
    if t.is_nested(type_):
        return "Select the field you need into a column of its own."
    return otherwise


def need_number(aggregate: Aggregate, column: str, types: dict[str, pa.DataType]) -> pa.DataType:
    """The column's type, if arithmetic makes sense for it."""
    type_ = types[column]
    if not _is_number(type_):
        remedy = _remedy(type_, "Cast the column to double or int64, or use count() or distinct().")
        raise wrong_type(column, type_, f"a number for {aggregate.function}()", remedy)
    return type_


def need_ordered(aggregate: Aggregate, column: str, types: dict[str, pa.DataType]) -> pa.DataType:
    """The column's type, if its values can be compared: numbers, booleans, times and dates."""
    type_ = types[column]
    if not _is_ordered(type_):
        remedy = _remedy(type_, "Use first(), last(), top_k() or collect() for such a column.")
        raise wrong_type(column, type_, f"a number, time, date or boolean for {aggregate.function}()", remedy)
    return type_


def need_storable(aggregate: Aggregate, column: str, types: dict[str, pa.DataType]) -> pa.DataType:
    """The column's type, if the core can hold its values at all."""
    type_ = types[column]
    if not (_is_ordered(type_) or is_interned(type_)):
        remedy = _remedy(type_, "Cast the column to one of these.")
        raise wrong_type(
            column, type_, f"a number, time, date, boolean, string or binary for {aggregate.function}()", remedy
        )
    return type_
