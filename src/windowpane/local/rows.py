"""Rows of a table by the values of some columns, without a loop over rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.arrays import Ints
from windowpane.values.errors import unknown_column


def codes_of(table: pa.Table | pa.RecordBatch, columns: Sequence[str]) -> tuple[list[Hashable], Ints]:
    """The distinct keys (tuples where there are several columns), and which of them each row has."""
    for name in columns:
        if name not in table.schema.names:
            raise unknown_column(name, "the table", table.schema.names)
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
