"""The keys of a stream of updates: their ids, the same for all tables, and when to forget them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Bools, Column, Ints, Tuples
from windowpane.core.keys import KeyIndex
from windowpane.core.upstream.recency import Recency
from windowpane.local.update_tables import event_times, key_columns
from windowpane.values.clocks import clock_of
from windowpane.values.freshness import Seconds

Clock = Callable[[], float]
ROW = "row"
"""The column that has the numbers of rows."""


def index_for(index: KeyIndex | None, names: Sequence[str], rows: pa.Table) -> KeyIndex:
    """The index with the types that the keys have in the first table; nulls alone fix no type.

    The index that is given stays as it is; a new one has the same ids.
    """
    if index is not None and not any(map(pa.types.is_null, index.types)):
        return index
    found = KeyIndex(names, [rows.schema.field(name).type for name in names])
    if index is None:
        return found
    types = [new if pa.types.is_null(old) else old for old, new in zip(index.types, found.types, strict=True)]
    made = KeyIndex(names, types)
    made.encode(index.values(np.arange(len(index))))
    return made


@dataclass(frozen=True, slots=True)
class Read:
    """Tables of which nothing can be refused any more: an index that fits, keys, times, what time it is."""

    index: KeyIndex
    keys: list[list[pa.Array]]
    times: list[Ints]
    now: float


class KnownKeys:
    """The keys of all inputs and pushes of an operator; they are forgotten when idle."""

    def __init__(self, names: Sequence[str], time: str, forget: Seconds, clock: Clock | None) -> None:
        self._names, self._time = names, time
        self._index: KeyIndex | None = None
        self._recency, self._clock = Recency(forget), clock_of(clock)

    def read(self, tables: Sequence[pa.Table]) -> Read:
        """Refuse keys and times that cannot be; nothing is kept of the tables yet."""
        times = [event_times(rows[self._time], self._time) for rows in tables]
        index = self._index
        for rows in tables:
            index = index_for(index, self._names, rows)
        assert index is not None
        keys = [key_columns(index, rows) for rows in tables]
        return Read(index, keys, times, self._clock())  # a clock that tells no time is refused here too

    def tuples(self, read: Read, firsts: Sequence[int]) -> list[Tuples]:
        """Times, ids of keys, and the rows' numbers from the first of each table on."""
        made = []
        for time, keys, first in zip(read.times, read.keys, firsts, strict=True):
            numbers = Column(np.arange(first, first + len(time)))
            made.append(Tuples(time, read.index.encode(keys, len(time)), {ROW: numbers}))
        return made

    def saw(self, read: Read, some: Sequence[Tuples]) -> Bools | None:
        """Tuples were taken; which keys stay if some that had none for long are forgotten now."""
        self._index = index = read.index
        self._recency.saw(np.concatenate([tuples.key for tuples in some]), len(index), read.now)
        if not self._recency.due(len(index)):
            return None
        gone = self._recency.gone(np.ones(len(index), np.bool_))
        if gone is None:
            return None
        index.compact(~gone)
        self._recency.keep(~gone)
        return ~gone


def numbers_of(tuples: Tuples) -> Ints:
    """The numbers of the rows that these were."""
    return np.asarray(tuples.columns[ROW].values if len(tuples) else (), np.int64)
