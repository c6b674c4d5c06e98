"""Columns of a schema from tables and from Python's values, in which no value becomes another.

Arrow takes 1.7 for an int64 and a time for a date, without what does not fit: as keys two would be one, as
values they would be wrong. Tables are cast, which refuses most of that; values of tuples must pass the same.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.columns import flat, is_text
from windowpane.core.key_types import fitted
from windowpane.values.errors import WindowpaneError, WrongType, wrong_type

_INTEGERS = frozenset({int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64})
_FLOATS = frozenset({float, np.float16, np.float32, np.float64})
_REFUSALS = (pa.ArrowException, WindowpaneError, TypeError, ValueError, OverflowError)


def cast_column(field: pa.Field, column: Any) -> Any:
    """A column of a table in the type of the schema; refused where a value would become another.

    Floats become narrower ones: they are rounded in any case.
    """
    if column.type == field.type:
        return column
    try:
        made = column.cast(field.type)
        same = not _loses(column.type, field.type) or made.cast(column.type).equals(column)
    except pa.ArrowException as error:
        remedy = f"Cast the column first, or give another schema ({error})."
        raise wrong_type(field.name, column.type, str(field.type), remedy) from error
    if not same:
        remedy = "Cast the column first, or give another schema (values would not stay what they are)."
        raise wrong_type(field.name, column.type, str(field.type), remedy)
    return made


def in_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Plain values in a type of the same values; to a dictionary of them Arrow casts only texts."""
    if pa.types.is_dictionary(kind):
        column = column.dictionary_encode()
    return column if column.type == kind else column.cast(kind)


@dataclass(frozen=True, slots=True)
class ListedColumn:
    """A column of a schema that is made of Python's values."""

    field: pa.Field
    """The column with plain values, even where it is a dictionary of them."""
    kind: pa.DataType
    key: pa.DataType | None
    """The type in which keys are kept, where the column is of the key."""
    exact: frozenset[type]
    """Types of Python whose values Arrow takes for what they are, or refuses."""

    @classmethod
    def of(cls, field: pa.Field, key: pa.DataType | None) -> ListedColumn:
        """The column of this field."""
        plain = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        exact = _exact(plain, is_key=key is not None) | {NoneType}
        return cls(field.with_type(plain), field.type, key, exact)

    def array(self, values: Sequence[Any]) -> pa.Array:
        """The values; refused where one would become another."""
        try:
            return self._converted(values)
        except _REFUSALS as error:
            own = isinstance(error, WindowpaneError)  # which speaks of tables
            why = "it would not stay what it is" if own else str(error).rstrip(".")
            raise WrongType(
                f"column {self.field.name!r} is {self.kind} by the schema, but a tuple has something else "
                f"there, {self._odd(values)}: {why}. Put such values, or give another schema."
            ) from error

    def _converted(self, values: Sequence[Any]) -> pa.Array:
        made = pa.array(values, self.field.type)
        if not self.exact.issuperset(map(type, values)):
            _need_no_nanoseconds(self.field.type, values)
            found = pa.array(values)
            if self.key is not None:
                fitted(self.field.name, flat(found), self.key)
            cast_column(self.field, found)
        return in_type(made, self.kind)

    def _odd(self, values: Sequence[Any]) -> str:
        """The first value that does not fit; their types where each does, but not one beside the other."""
        for value in values:
            try:
                self._converted([value])
            except _REFUSALS:
                return repr(value)
        return " and ".join(sorted({type(value).__name__ for value in values}))


def _exact(kind: pa.DataType, *, is_key: bool) -> frozenset[type]:
    types = pa.types
    found: frozenset[type] = frozenset()
    if types.is_integer(kind):
        found = _INTEGERS
    elif types.is_floating(kind) and (types.is_float64(kind) or not is_key):
        found = _INTEGERS | _FLOATS
    elif types.is_boolean(kind):
        found = frozenset({bool, np.bool_})
    elif types.is_decimal(kind):
        found = frozenset({Decimal, int})
    elif is_text(kind):
        found = frozenset({str, bytes})
    elif types.is_date(kind):
        found = frozenset({dt.date})
    elif types.is_interval(kind):
        found = frozenset({pa.MonthDayNano})
    elif getattr(kind, "unit", "") in {"us", "ns"}:
        found = frozenset({_class_of(kind)})
    return found


def _need_no_nanoseconds(kind: pa.DataType, values: Sequence[Any]) -> None:
    """Refuse nanoseconds of a time or a length of pandas, which Arrow drops without a word."""
    if getattr(kind, "unit", "") != "ns" and any(
        getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0) for value in values
    ):
        raise ValueError("it has nanoseconds")


def _class_of(kind: pa.DataType) -> type:
    """The class of the times of this type, of which Python has microseconds."""
    if pa.types.is_timestamp(kind):
        return dt.datetime
    return dt.timedelta if pa.types.is_duration(kind) else dt.time


def _loses(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow drops what does not fit without a word: the time of a day, its day, all numbers but 0."""
    if pa.types.is_boolean(wanted):
        return not pa.types.is_null(found)
    return bool(pa.types.is_timestamp(found) and (pa.types.is_date(wanted) or pa.types.is_time(wanted)))
