"""Rows of a table by the values of some columns, without a loop over rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.arrays import Ints
from windowpane.values.errors import BadQuery, WrongType, unknown_column


def codes_of(table: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> tuple[list[Hashable], Ints]:
    """The distinct keys (tuples where there are several columns), and which of them each row has."""
    need_columns(table.schema.names, columns, "the table")
    codes = np.zeros(table.num_rows, np.int64)
    parts: list[tuple[list[Hashable], Ints]] = []
    for name in columns:
        column = table[name]
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        encoded = pc.dictionary_encode(plain, "encode")  # a null is a value like any other
        found, part = np.unique(encoded.indices.to_numpy(zero_copy_only=False), return_inverse=True)
        values = encoded.dictionary.take(pa.array(found)).to_pylist()
        parts.append((values, part.reshape(-1)))
        codes = codes * len(values) + part.reshape(-1)
    if len(parts) == 1:
        return parts[0][0], codes
    distinct, codes = np.unique(codes, return_inverse=True)
    keys: list[tuple[Hashable, ...]] = [()] * len(distinct)
    for values, _ in reversed(parts):
        distinct, place = np.divmod(distinct, max(len(values), 1))
        keys = [(values[i], *rest) for i, rest in zip(place.tolist(), keys, strict=True)]
    return list(keys), codes.reshape(-1)


def need_columns(found: Sequence[str], wanted: Iterable[str], where: str) -> None:
    """Refuse rows that lack a column, or that have two of one name, of which one would be lost."""
    for name in wanted:
        if name not in found:
            raise unknown_column(name, where, found)
        if found.count(name) > 1:
            raise BadQuery(
                f"{where} has {found.count(name)} columns {name!r}. Rename all but one of them, or drop them."
            )


def table_of(items: Any) -> pa.Table | None:
    """The table that a batch or a pandas frame makes; None if it is neither, nor a table."""
    if isinstance(items, pa.Table):
        return items
    if isinstance(items, pa.RecordBatch):
        return pa.Table.from_batches([items])
    if not hasattr(items, "columns"):
        return None
    try:
        return pa.Table.from_pandas(items, preserve_index=False)
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        raise WrongType(
            f"the {type(items).__name__} does not form columns of one type each: {error}. Give every column "
            "one type and a name of its own, or put mappings."
        ) from error


def listed(items: Any) -> list[Any]:
    """Tuples that come in anything that can be gone through."""
    if not isinstance(items, Iterable):
        raise WrongType(
            f"the tuples are a {type(items).__name__}. Give an Arrow table, a pandas frame or an iterable of "
            "tuples; put() takes a single one."
        )
    return items if isinstance(items, list) else list(items)
