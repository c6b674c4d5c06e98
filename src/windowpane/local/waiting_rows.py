"""The tuples of an update queue in pages of memory: no Python object for each (Moga et al. 2009, section 7).

The keys, of any type, are in an index; the other columns, of fixed width, lie in cells of pages that are
taken from the pool on demand and go back to it when they are empty.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Bools, Ints
from windowpane.core.keys import KeyIndex
from windowpane.core.upstream.fixed_rows import FixedRows
from windowpane.core.upstream.memory import KeyCells, Usage, pool_within
from windowpane.local.python_values import need_objects
from windowpane.local.rows import listed, need_columns, plain_schema, table_of, wide_schema
from windowpane.local.waiting import Key, columns_of, need_mapping
from windowpane.local.waiting_columns import ListedColumn, cast_column, in_type
from windowpane.values.errors import BadQuery, UnknownColumn, WrongType, wrong_type

_PAGE = 4096
_WORD = 8


class WaitingRows:
    """Tuples of one schema, in at most so much memory: bytes, or a text such as '64 MB'."""

    __slots__ = ("_cells", "_index", "_layout", "_listed", "_most", "_plain", "_rest", "_schema")

    def __init__(self, key: Key, schema: pa.Schema, memory: str | int) -> None:
        if not isinstance(schema, pa.Schema):
            raise WrongType(
                f"schema={schema!r} is a {type(schema).__name__}. Give the columns and their types as a "
                "pyarrow.schema."
            )
        keys = columns_of(key)
        if not keys:
            raise BadQuery(
                "the key is a function, which takes Python objects, but with a schema none are made. Name "
                "the columns of the key, or leave `schema` out."
            )
        need_columns(schema.names, (*keys, *schema.names), "the schema")
        self._schema, self._plain = schema, wide_schema(plain_schema(schema))
        self._index = KeyIndex(keys, [schema.field(name).type for name in keys])
        for name, kind in zip(keys, self._index.types, strict=True):
            found = schema.field(name).type
            found = found.value_type if pa.types.is_dictionary(found) else found
            if pa.types.is_temporal(found) and found != kind:
                raise wrong_type(name, found, f"{kind} in a key", "Cast the column, or leave `schema` out.")
        kept = dict(zip(keys, self._index.types, strict=True))
        self._listed = [ListedColumn.of(field, kept.get(field.name)) for field in self._plain]
        self._most = min(_room_in(schema.field(name).type) for name in keys)
        self._rest = pa.schema([field for field in schema if field.name not in keys])
        self._layout = FixedRows(self._rest)
        page = max(_PAGE, self._layout.words * _WORD)
        self._cells = KeyCells(pool_within(memory, page), self._layout.words)

    def batch(self, items: Any) -> pa.Table:
        """The tuples as a table of the schema, in plain layouts."""
        names, table = self._schema.names, table_of(items, self._schema)
        if table is not None:
            _need_columns(names, table.column_names)
            self._index.fitted([table[name] for name in self._index.names])  # a cast may make two keys one
            columns = [cast_column(field, table[field.name]) for field in self._plain]
        else:
            rows = listed(items)
            for row in rows:
                need_mapping(row, names)
                if len(row) > len(names):
                    _need_columns(names, list(row))
            columns = [column.array([row[column.field.name] for row in rows]) for column in self._listed]
        made = pa.Table.from_arrays(columns, schema=self._plain)
        need_objects(made)
        return made

    def ids(self, batch: pa.Table) -> Ints:
        """As `Waiting.ids`."""
        return self._index.encode([batch[name] for name in self._index.names], len(batch))

    def append(self, batch: pa.Table) -> Ints:
        """As `Waiting.append`; a tuple goes by its cell."""
        cells = self._cells.cells.take(len(batch))
        self._cells.cells.write(cells, self._rows(batch))
        return cells

    def overwrite(self, batch: pa.Table, ids: Ints) -> None:
        """As `Waiting.overwrite`."""
        self._cells.put(ids, self._rows(batch))

    def drop(self, numbers: Ints) -> None:
        """As `Waiting.drop`."""
        self._cells.cells.give(numbers)

    def name_by_key(self, ids: Ints, numbers: Ints) -> None:
        """As `Waiting.name_by_key`: the tuples stay where they are."""
        self._cells.adopt(ids, numbers)

    def take(self, ids: Ints, numbers: Ints | None) -> pa.Table:
        """As `Waiting.take`."""
        if numbers is None:
            rows = self._cells.take(ids)
        else:
            rows = self._cells.cells.read(numbers)
            self._cells.cells.give(numbers)
        found = dict(zip(self._rest.names, self._layout.columns(rows), strict=True))
        found |= dict(zip(self._index.names, self._index.values(ids), strict=True))
        # Keys are kept in a plain form, which may not be that of the schema.
        columns = [in_type(found[field.name], field.type) for field in self._schema]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def keep_keys(self, live: Bools, *, by_key: bool) -> None:
        """As `Waiting.keep_keys`."""
        self._index.compact(live)
        if by_key:
            self._cells.number_anew(live)

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._index)

    def keys(self) -> tuple[Hashable, ...]:
        """As `Waiting.keys`."""
        values = [column.to_pylist() for column in self._index.values(np.arange(len(self._index)))]
        return tuple(values[0]) if len(values) == 1 else tuple(zip(*values, strict=True))

    @property
    def room(self) -> float:
        """As `Waiting.room`."""
        return self._cells.cells.pool.pages * self._cells.cells.page_cells

    @property
    def most(self) -> int:
        """As `Waiting.most`: so many that a dictionary of the schema has room if all of them differ."""
        return self._most

    @property
    def usage(self) -> Usage:
        """How many pages and cells are taken."""
        cells = self._cells.cells
        return Usage(cells.pages, cells.page_cells, cells.used, cells.used)

    def _rows(self, batch: pa.Table) -> Ints:
        return self._layout.rows([batch[name] for name in self._rest.names], len(batch))


def _need_columns(names: Sequence[str], found: Sequence[str]) -> None:
    """Refuse columns that are missing, and those that would be lost."""
    need_columns(found, names, "the table")
    for name in found:
        if name not in names:
            raise UnknownColumn(
                f"column {name!r} is not in the schema, so it would be lost. Add it to the schema, or leave "
                "it out of the rows."
            )


def _room_in(kind: pa.DataType) -> int:
    """How many different values a column of the type can hold, as far as a dictionary limits them."""
    return (
        np.iinfo(kind.index_type.to_pandas_dtype()).max + 1 if pa.types.is_dictionary(kind) else sys.maxsize
    )
