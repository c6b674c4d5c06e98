"""Which column types an aggregate can use; each refusal names the column, its type and the remedy."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

from windowpane.core.columns import is_text, scale_of
from windowpane.values.errors import wrong_type


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values: a dictionary's own, and int64 for a column of nothing but nulls."""
    if t.is_dictionary(type_):
        return plain_type(type_.value_type)
    return pa.int64() if t.is_null(type_) else type_


def _is_number(type_: pa.DataType) -> bool:
    return bool(t.is_integer(type_) or t.is_floating(type_))


def _is_ordered(type_: pa.DataType) -> bool:
    return _is_number(type_) or bool(t.is_boolean(type_)) or scale_of(type_) is not None


def _remedy(type_: pa.DataType, otherwise: str) -> str:
    if t.is_decimal(type_):
        return "Cast the column to double or int64."
    if t.is_nested(type_):
        return "Select the field or element you need as a column of its own."
    return otherwise


def need_number(function: str, column: str, type_: pa.DataType) -> None:
    """Arithmetic must make sense for the column."""
    if not _is_number(type_):
        remedy = _remedy(type_, "Cast the column to double or int64, or use count() or distinct().")
        raise wrong_type(column, type_, f"a number for {function}()", remedy)


def need_ordered(function: str, column: str, type_: pa.DataType) -> None:
    """Values must compare: numbers, booleans, times and dates."""
    if not _is_ordered(type_):
        remedy = _remedy(type_, "Use first(), last(), top_k() or collect() for such a column.")
        raise wrong_type(column, type_, f"a number, time, date or boolean for {function}()", remedy)


def need_storable(function: str, column: str, type_: pa.DataType) -> None:
    """The core must be able to hold the values."""
    if not (_is_ordered(type_) or is_text(type_)):
        remedy = _remedy(type_, "Cast the column to one of these.")
        wanted = f"a number, time, date, boolean, string or binary for {function}()"
        raise wrong_type(column, type_, wanted, remedy)
