"""Rows of a table by the values of some columns, without a loop over rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.arrays import Ints
from windowpane.core.columns import widely_indexed
from windowpane.values.errors import BadQuery, WrongType, unknown_column

Rows = Any
"""Rows with named columns: an Arrow table or batch, a frame, or another stream of Arrow: see `need_table`."""


def codes_of(table: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> tuple[list[Hashable], Ints]:
    """The distinct keys (tuples where there are several columns), and which of them each row has."""
    need_columns(table.schema.names, columns, "the table")
    plain = [_plain(table[name]) for name in columns]
    codes = _encoded(plain[0])
    for column in plain[1:]:
        part = _encoded(column)
        # Dense again after each column: no product is above the square of the rows, so that none overflows.
        codes = _encoded(pa.array(codes * (part.max(initial=0) + 1) + part))
    row = np.empty(codes.max(initial=-1) + 1, np.int64)
    row[codes] = np.arange(len(codes))  # any row of a key tells its values
    values = [column.take(pa.array(row)).to_pylist() for column in plain]
    return values[0] if len(values) == 1 else list(zip(*values, strict=True)), codes


def _plain(column: Any) -> pa.Array:
    # Not one chunk first: the index of a dictionary may be too narrow for the values of all chunks.
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return plain.combine_chunks() if isinstance(plain, pa.ChunkedArray) else plain


def _encoded(column: pa.Array) -> Ints:
    """Which value each row has: dense numbers in order of first appearance. A null is a value."""
    indices = pc.dictionary_encode(column, "encode").indices
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int64)


def need_columns(found: Sequence[str], wanted: Iterable[str], where: str) -> None:
    """Refuse rows that lack a column, or that have two of one name, of which one would be lost."""
    for name in wanted:
        if name not in found:
            raise unknown_column(name, where, found)
        if found.count(name) > 1:
            raise BadQuery(
                f"{where} has {found.count(name)} columns {name!r}. Rename all but one of them, or drop them."
            )


def table_of(items: Any, schema: pa.Schema | None = None) -> pa.Table | None:
    """The table, in plain layouts, that a batch or a frame makes; None if it is neither, nor a table.

    In pandas a missing number is a NaN too: where the `schema` wants no floats it becomes a null.
    """
    made = _table(items, schema)
    return None if made is None else widely_indexed_table(plain_table(made))


def need_table(rows: Any) -> pa.Table:
    """The rows as a table of the same types in plain layouts, if they have named columns; refused if not."""
    made = _table(rows, None)
    if made is None:
        raise WrongType(
            f"the rows are a {type(rows).__name__}. Give an Arrow table or batch, a pandas or Polars frame, "
            "or whatever else has an Arrow stream of named columns."
        )
    return plain_table(made)


def plain_table(table: pa.Table) -> pa.Table:
    """The table with no views and no runs, of which Arrow cannot take rows."""
    for i, field in enumerate(table.schema):
        if pa.types.is_run_end_encoded(field.type):
            values = field.with_type(field.type.value_type)
            table = table.set_column(i, values, pc.run_end_decode(table[i]))
    return _cast(table, plain_schema(table.schema))


def widely_indexed_table(table: pa.Table) -> pa.Table:
    """The table, whose rows can be put together with others."""
    return _cast(table, wide_schema(table.schema))


def wide_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with dictionaries that have room for the values of many tables."""
    return pa.schema([field.with_type(widely_indexed(field.type)) for field in schema])


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return table if schema == table.schema else table.cast(schema)


def _table(items: Any, schema: pa.Schema | None) -> pa.Table | None:
    if isinstance(items, pa.Table):
        return items
    if isinstance(items, pa.RecordBatch):
        return pa.Table.from_batches([items])
    try:
        if hasattr(items, "iloc") and hasattr(items, "columns"):
            return _with_nans(pa.Table.from_pandas(items, preserve_index=False), items, schema)
        # A single column may have a stream too, but only a table has names for columns.
        streams = hasattr(items, "__arrow_c_stream__")
        return (
            pa.table(items) if streams and (hasattr(items, "columns") or hasattr(items, "schema")) else None
        )
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        raise WrongType(
            f"the {type(items).__name__} does not form columns of one type each: {error}. Give every column "
            "one type and a name of its own, or put mappings."
        ) from error


def _with_nans(table: pa.Table, frame: Any, schema: pa.Schema | None) -> pa.Table:
    """The table of a frame of pandas with the NaNs of columns of floats, which Arrow took for nulls."""
    for i, (field, dtype) in enumerate(zip(table.schema, frame.dtypes, strict=True)):
        wanted = field if schema is None or field.name not in schema.names else schema.field(field.name)
        if isinstance(dtype, np.dtype) and dtype.kind == "f" and pa.types.is_floating(wanted.type):
            values = pa.array(frame.iloc[:, i].to_numpy(), from_pandas=False)
            table = table.set_column(i, field, values)
    return table


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with no views, of which Arrow cannot take rows."""
    return pa.schema([field.with_type(_unviewed(field.type)) for field in schema])


def _unviewed(kind: pa.DataType) -> pa.DataType:
    t = pa.types
    if t.is_string_view(kind):
        return pa.large_string()
    if t.is_binary_view(kind):
        return pa.large_binary()
    if t.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _unviewed(kind.value_type), kind.ordered)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return _unviewed_list(kind)
    if t.is_map(kind):
        return pa.map_(_unviewed(kind.key_type), _unviewed(kind.item_type), kind.keys_sorted)
    return (
        pa.struct([field.with_type(_unviewed(field.type)) for field in kind]) if t.is_struct(kind) else kind
    )


def _unviewed_list(kind: pa.DataType) -> pa.DataType:
    inner = kind.value_field.with_type(_unviewed(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(inner)
    return pa.list_(inner, kind.list_size if pa.types.is_fixed_size_list(kind) else -1)


def listed(items: Any) -> list[Any]:
    """Tuples that come in anything that can be gone through."""
    if isinstance(items, Mapping) or not isinstance(items, Iterable):
        lazy = " (of a lazy one what collect() gives)" if hasattr(items, "collect") else ""
        raise WrongType(
            f"the tuples are a {type(items).__name__}. Give an Arrow table, a pandas or Polars frame{lazy} "
            "or an iterable of tuples; put() takes a single one."
        )
    return items if isinstance(items, list) else list(items)
