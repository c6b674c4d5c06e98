"""Rows of fixed width from Arrow columns and back, bit for bit: what lies in the cells of a page.

A row has the bytes of its columns one after the other, then one bit for each column that tells whether it has
a value, and is as many whole words long as that needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Ints, Values
from windowpane.core.columns import flat, valid_mask
from windowpane.values.errors import WrongType

_WORD = 8
_PLAIN = (1, 2, 4, 8)
"""Widths in bytes for which NumPy has integers."""


class FixedRows:
    """How the columns of a schema, all of fixed width, lie in a row of 8-byte words."""

    __slots__ = ("_dtype", "_kinds", "words")

    def __init__(self, schema: pa.Schema) -> None:
        self._kinds = [field.type for field in schema]
        widths = [_width(field.name, field.type) for field in schema]
        offsets = np.cumsum([0, *widths]).tolist()
        bits = -(-len(widths) // 8)
        self.words = max(-(-(offsets[-1] + bits) // _WORD), 1)
        self._dtype = np.dtype(
            {
                "names": [*(f"c{i}" for i in range(len(widths))), "valid"],
                "formats": [*(f"u{w}" if w in _PLAIN else f"V{w}" for w in widths), ("u1", (bits,))],
                "offsets": offsets,
                "itemsize": self.words * _WORD,
            }
        )

    def rows(self, columns: Sequence[Any], count: int) -> Ints:
        """The columns, of the types of the schema, as `count` rows of words."""
        made = np.zeros(count, self._dtype)
        valid = np.ones((count, len(self._kinds)), np.bool_)
        for i, column in enumerate(columns):
            array = flat(column)
            made[f"c{i}"] = _values(array, made.dtype[i])
            mask = valid_mask(array)
            if mask is not None:
                valid[:, i] = mask
        made["valid"] = np.packbits(valid, axis=1)
        return np.asarray(made.view(np.int64).reshape(count, self.words))

    def columns(self, rows: Ints) -> list[pa.Array]:
        """The columns of these rows."""
        made = np.ascontiguousarray(rows).reshape(-1).view(self._dtype)
        valid = np.unpackbits(made["valid"], axis=1, count=len(self._kinds)).astype(np.bool_)
        return [_array(kind, made[f"c{i}"], valid[:, i]) for i, kind in enumerate(self._kinds)]


def _width(name: str, kind: pa.DataType) -> int:
    """The bytes of a value."""
    types = pa.types
    fixed = types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind)
    if not fixed or kind.bit_width == 0:
        raise WrongType(
            f"column {name!r} has type {kind}, whose values have no fixed width, so that they cannot lie in "
            "pages. Leave `schema` out (tuples are then kept as Python objects), or leave the column out."
        )
    return -(-int(kind.bit_width) // 8)


def _values(array: pa.Array, kind: np.dtype[Any]) -> Values:
    """The bytes of a column, one item for each row; any where it is null."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), kind)
    return np.frombuffer(buffer, kind, len(array), array.offset * kind.itemsize)


def _array(kind: pa.DataType, values: Values, valid: Values) -> pa.Array:
    if pa.types.is_boolean(kind):
        return pa.array(values.astype(np.bool_), kind, mask=~valid)
    data = pa.py_buffer(np.ascontiguousarray(values).view(np.uint8))
    nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [nulls, data])
