"""Columns that must not be null: which rows lack one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Ints

WELL_FORMED = "_well_formed"
"""A column that readers of texts add: null where a record could not be read as the schema says."""
MALFORMED = "malformed"


def null_in(column: str) -> str:
    """The reason for which a row without this column is rejected."""
    return MALFORMED if column == WELL_FORMED else f"null {column}"


def first_null(batch: pa.RecordBatch, columns: Sequence[str]) -> Ints | None:
    """For each row the number, from 1, of the first of these columns that is null, or 0; None if none is."""
    lacking = [i for i, name in enumerate(columns) if batch.column(name).null_count]
    if not lacking:
        return None
    found = np.zeros(batch.num_rows, np.int64)
    for i in reversed(lacking):
        found[batch.column(columns[i]).is_null().to_numpy(zero_copy_only=False)] = i + 1
    return found
