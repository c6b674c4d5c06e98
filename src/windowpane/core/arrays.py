"""The few array types that every part of the core speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Values = npt.NDArray[Any]

NEVER = np.iinfo(np.int64).min
"""Below every time: no punctuation yet; also the start of a landmark window without one."""
ALWAYS = np.iinfo(np.int64).max
"""Above every time: the end of the stream."""


@dataclass(frozen=True, slots=True)
class Ragged:
    """A column of lists: row i is `values[offsets[i]:offsets[i+1]]`, with a weight for each value.

    `weights` is the run length of each value (all ones for plain lists).
    """

    offsets: Ints
    values: Values
    weights: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1


Cells = Values | Ragged
Columns = tuple[Cells, ...]
"""The state of one partial for all rows of a table: parallel columns of one length."""


@dataclass(frozen=True, slots=True)
class Column:
    """One input column of a batch: int64 or float64 values, and which are valid (None: all).

    Integers, booleans, times and dates are int64; floats are float64; strings and binaries are
    int64 ids into the operator's interner, with `order` (a content hash) to break ties by content.
    Values where `valid` is False are unspecified but safe to read.
    """

    values: Values
    valid: Bools | None = None
    order: Ints | None = None

    def take(self, at: Values) -> Column:
        """The rows at these positions (or under this mask)."""
        return Column(
            self.values[at],
            None if self.valid is None else self.valid[at],
            None if self.order is None else self.order[at],
        )


@dataclass(frozen=True, slots=True)
class Tuples:
    """A batch of tuples that have a place: no null times, keys encoded to dense ids.

    `rising` promises that times never fall, which spares looking for each tuple's slice.
    """

    time: Ints
    key: Ints
    columns: dict[str, Column]
    rising: bool = False

    def __len__(self) -> int:
        return len(self.time)

    def take(self, at: Values) -> Tuples:
        """The tuples at these positions (or under this mask)."""
        return Tuples(self.time[at], self.key[at], {n: c.take(at) for n, c in self.columns.items()})


def concat_tuples(a: Tuples, b: Tuples) -> Tuples:
    """Both batches, one after the other; an empty one may lack columns."""
    if len(a) == 0 or len(b) == 0:
        return b if len(a) == 0 else a
    columns = {name: _joined(a.columns[name], b.columns[name]) for name in a.columns}
    return Tuples(np.concatenate([a.time, b.time]), np.concatenate([a.key, b.key]), columns)


def no_tuples() -> Tuples:
    """The empty batch."""
    none = np.empty(0, np.int64)
    return Tuples(none, none, {})


def _joined(a: Column, b: Column) -> Column:
    valid = None
    if a.valid is not None or b.valid is not None:
        valid = np.concatenate([_mask(a), _mask(b)])
    order = None if a.order is None or b.order is None else np.concatenate([a.order, b.order])
    return Column(np.concatenate([a.values, b.values]), valid, order)


def _mask(column: Column) -> Bools:
    return np.ones(len(column.values), np.bool_) if column.valid is None else column.valid
