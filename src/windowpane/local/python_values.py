"""Columns whose values Python can make objects of: all that a queue takes it must be able to give."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.columns import flat, is_text, scale_of
from windowpane.values.errors import BadQuery

_FAILURES = (pa.ArrowException, ValueError, OverflowError, LookupError, TypeError)
_FEW = 8
"""So few values are objects sooner than Arrow has looked at them."""


def need_objects(table: pa.Table) -> None:
    """Refuse times outside the years 1 to 9999, texts that are no UTF-8, and the like."""
    for name in table.column_names:
        for leaf in _leaves(table[name]):
            try:
                _try(leaf)
            except _FAILURES as error:
                raise BadQuery(
                    f"column {name!r} holds {_first_odd(leaf)} ({leaf.type}), of which Python can make no "
                    f"object: {error}. Leave such rows out, or cast the column: times to int64, texts to "
                    "binary."
                ) from error


def _leaves(column: Any) -> list[Any]:
    """The columns of plain values of which lists, structs and dictionaries are made."""
    kind = column.type
    if pa.types.is_dictionary(kind) and not pa.types.is_nested(kind.value_type):  # no casts of these
        return _leaves(column.cast(kind.value_type))
    if pa.types.is_struct(kind):
        return [leaf for part in column.flatten() for leaf in _leaves(part)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _leaves(pc.list_flatten(column))
    return [column]


def _try(leaf: Any) -> None:
    """Fail where a value cannot be an object; look at as few of them as tell."""
    kind = leaf.type
    if len(leaf) <= _FEW:
        leaf.to_pylist()
    elif scale_of(kind) is not None:
        numbers = flat(leaf).view(pa.int64() if kind.bit_width == 64 else pa.int32())
        ends = pc.min_max(numbers)  # there is a first and a last time that Python knows
        pa.array([ends["min"].as_py(), ends["max"].as_py()], numbers.type).view(kind).to_pylist()
    elif is_text(kind):
        leaf.validate(full=True)
    elif pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        leaf.to_pylist()


def _first_odd(leaf: Any) -> str:
    """The first value of which no object can be made, in a form that can be shown."""
    for scalar in leaf:
        try:
            scalar.as_py()
        except _FAILURES:
            if is_text(leaf.type):
                return repr(scalar.as_buffer().to_pybytes())
            return "a value" if scale_of(leaf.type) is None else repr(scalar.value)
    return "values"
