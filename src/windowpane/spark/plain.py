"""Plain: an output whose rows Catalyst opens itself, so that no further Python task decodes them.

Where a pass has one output, a bucket gives its rows as they are and not as payloads. PySpark takes nested
values one by one in Python, so structs travel as columns of their own, which Catalyst puts together again.
Outputs with lists go as payloads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses
from pyspark.sql.types import BooleanType, DataType, StringType, StructField, StructType

from windowpane.spark.outputs import NOTES, TEXT

_TYPES = frozenset(
    [
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.string(), pa.binary(), pa.date32(), pa.duration("us")),
    ]
)


@dataclass(frozen=True)
class Plain:
    """The output of a pass that has only one, and its columns."""

    name: str
    schema: pa.Schema

    def frame(self, tables: Mapping[str, list[pa.Table]], notes: Mapping[str, int]) -> pd.DataFrame:
        """The rows of one bucket in one micro-batch, and its notes in a row of their own."""
        found = [_as_known(table, self.schema) for table in tables.get(self.name, [])]
        table = pa.concat_tables(found) if found else self.schema.empty_table()
        columns = [leaf for column in table.columns for leaf in _leaves(column.combine_chunks())]
        rows = {f"c{i}": _with(leaf, None) for i, leaf in enumerate(columns)}
        text = ",".join(str(notes[name]) for name in NOTES)
        rows[TEXT] = _with(pa.nulls(table.num_rows, pa.string()), text)
        return pd.DataFrame(rows, copy=False)

    def opened(self, frame: DataFrame, schema: StructType) -> DataFrame:
        """The rows of the output in a frame of rows and notes, with the output's own columns."""
        names = _names()
        columns = [_column(field.dataType, names).alias(field.name) for field in schema.fields]
        return frame.where(F.col(TEXT).isNull()).select(*columns)


def plain(name: str, schema: pa.Schema) -> Plain | None:
    """The output as plain rows; None if it has columns that cannot go so."""
    return Plain(name, schema) if all(_is_plain(field) for field in schema) else None


def plain_type(schema: StructType) -> StructType:
    """The columns of a frame of plain rows and notes."""
    names = _names()
    kinds = [kind for field in schema.fields for kind in _kinds(field.dataType)]
    return StructType([*(StructField(next(names), kind) for kind in kinds), StructField(TEXT, StringType())])


def _is_plain(field: pa.Field) -> bool:
    kind = field.type
    if pa.types.is_struct(kind):
        return field.nullable and kind.num_fields > 0 and all(_is_plain(part) for part in kind)
    stamp = pa.types.is_timestamp(kind) and kind.unit == "us"
    return field.nullable and (stamp or pa.types.is_decimal128(kind) or kind in _TYPES)


def _as_known(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return table if table.schema.equals(schema) else table.cast(schema)


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """A column as plain ones: of a struct whether it is there, and its fields."""
    if not pa.types.is_struct(array.type):
        yield array
        return
    yield array.is_valid()
    for part in array.flatten():
        yield from _leaves(part)


def _kinds(kind: DataType) -> Iterator[DataType]:
    """The types of what `_leaves` gives."""
    if not isinstance(kind, StructType):
        yield kind
        return
    yield BooleanType()
    for field in kind.fields:
        yield from _kinds(field.dataType)


def _column(kind: DataType, names: Iterator[str]) -> Column:
    """The column that `_leaves` took apart."""
    first = F.col(next(names))
    if not isinstance(kind, StructType):
        return first
    parts = [_column(field.dataType, names).alias(field.name) for field in kind.fields]
    return F.when(first, F.struct(*parts))


def _names() -> Iterator[str]:
    return (f"c{i}" for i in count())


def _with(array: pa.Array, last: str | None) -> pd.arrays.ArrowExtensionArray:
    """A column with one more row; as Arrow, which PySpark hands on without a look at each value."""
    whole = pa.concat_arrays([array, pa.array([last], array.type)])
    return pd.arrays.ArrowExtensionArray(pa.chunked_array([whole]))
