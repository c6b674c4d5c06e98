"""Aggregates over the newest window of each key, for a consumer that cannot keep up.

Rows are put as they come; `get` processes some of them and gives the windows that this completed. Windows
that a newer one overtakes are lost as a whole: what comes out is the aggregate of exactly its window.
"""

from __future__ import annotations

import time as system
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Column
from windowpane.core.columns import read_column, usable_time
from windowpane.core.keys import KeyIndex
from windowpane.core.results import window_type
from windowpane.core.upstream.memory import PagePool
from windowpane.core.upstream.window_operator import FreshWindows
from windowpane.core.upstream.windows import Commit, UpdateWindow
from windowpane.local.update_queue import Freshness
from windowpane.values.aggregates import Aggregate
from windowpane.values.durations import Duration, microseconds
from windowpane.values.errors import BadQuery, unknown_column
from windowpane.values.freshness import Policy
from windowpane.values.user_aggregates import UserAggregate

Aggregates = Aggregate | UserAggregate
_PAGE = 4096
_ALL = 1 << 20
"""Rows that one `get` processes unless it is told otherwise."""


class UpdateWindows:
    """An update queue of windows and the aggregates behind it; `wp.Updates(...).window(...).agg(...)`.

    Args:
        keys: the columns whose values have windows of their own.
        time: the column of event time.
        span: size and slide: numbers of rows of a key, or lengths of time.
        aggregates: what is wanted of each window; columns must be numbers or times.
        commit: `lazy` (to the newest window that arrived in full) or `eager` (to the newest that started).
        policy: which key is served next: `in_place`, `fifo`, `linecutting` or `freshest`.
        memory: the most bytes that rows may take; one more is an error, nothing is dropped in silence.
        cost: the seconds that a row takes, as a guess.
        clock: where the time comes from, in seconds that never go back; by default the system's.
    """

    def __init__(  # noqa: PLR0913 - keyword options, each with a default
        self,
        keys: Sequence[str],
        time: str,
        span: tuple[Duration, Duration],
        aggregates: Sequence[Aggregates],
        *,
        commit: Commit | str = "lazy",
        policy: Policy | str = "in_place",
        memory: int = 1 << 26,
        cost: float = 0.001,
        clock: Callable[[], float] | None = None,
    ) -> None:
        if not aggregates:
            raise BadQuery("agg() needs an aggregate, such as wp.mean('price').")
        if commit not in tuple(Commit):
            raise BadQuery(f"commit={commit!r}: there is no such way. Use 'lazy' or 'eager'.")
        self._keys, self._time, self._aggregates = tuple(keys), time, tuple(aggregates)
        timed = [not isinstance(length, int) for length in span]
        if timed[0] != timed[1]:
            raise BadQuery(f"window{span}: size and slide must both be rows or both be times.")
        size, slide = (length if isinstance(length, int) else microseconds(length) for length in span)
        self._window = UpdateWindow(size, slide, Commit(commit), timed[0])
        self._policy, self._cost = policy, cost
        self._pool = PagePool(max(memory // _PAGE, 1), _PAGE)
        self._clock = clock or system.monotonic
        self._began = self._clock()
        self._index: KeyIndex | None = None
        self._operator: FreshWindows | None = None
        self._point: pa.DataType = pa.int64()
        self._puts = self._got = 0

    def __getstate__(self) -> dict[str, Any]:
        """For pickle, which stores the operator as it stands; the time goes on where it was."""
        return {**self.__dict__, "_began": self._now()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Go on from what pickle kept."""
        self.__dict__.update(state)
        self._began = self._clock() - state["_began"]

    def put(self, rows: pa.Table) -> int:
        """Take rows in arrival order; how many came too late for every window that is still to be."""
        operator, index = self._ready(rows)
        ids = index.encode([rows[name] for name in self._keys], len(rows))
        places = None
        if self._window.timed:
            places = usable_time(rows[self._time], self._time)
        names = {name for aggregate in self._aggregates for name in aggregate.columns}
        columns: dict[str, Column] = {name: read_column(rows[name], name) for name in names}
        late = operator.push(ids, columns, np.full(len(rows), self._now()), places)
        self._puts += len(rows)
        return int(np.count_nonzero(late))

    def punctuate(self, bound: int) -> None:
        """No row with an event time below this (in microseconds, or as the column counts) is to come."""
        if self._operator is None:
            raise BadQuery("nothing was put yet, so there is no window to close.")
        self._operator.queue.punctuate(bound, self._now())

    def get(self, rows: int = _ALL) -> pa.Table:
        """Process up to so many rows (`lazy`: up to a window more); the results that this completed."""
        operator, index = self._operator, self._index
        if operator is None or index is None:
            raise BadQuery("nothing was put yet, so the columns of results are not known. Put rows first.")
        found = operator.serve(self._now(), rows)
        self._got += len(found)
        ids = found["key"].to_numpy()
        columns = dict(zip(self._keys, index.values(ids), strict=True))
        ends = [found["window"].combine_chunks().field(i).cast(self._point) for i in range(2)]
        columns["window"] = pa.StructArray.from_arrays(ends, fields=list(window_type(self._point)))
        rest = [name for name in found.column_names if name not in ("key", "window", "committed", "done")]
        return pa.table(columns | {name: found[name] for name in rest})

    def staleness(self) -> Freshness:
        """How stale results have been, in seconds; the application's counts windows that arrived in full."""
        if self._operator is None or self._index is None:
            none = np.empty(0)
            return Freshness((), none, none, 0, 0, 0, 0)
        queue = self._operator.queue
        found = queue.staleness(self._now())
        values = [column.to_pylist() for column in self._index.values(np.arange(len(found.queue)))]
        keys = tuple(values[0]) if len(values) == 1 else tuple(zip(*values, strict=True))
        return Freshness(
            keys, found.queue, found.application, self._puts, self._got, queue.late, len(queue.waiting())
        )

    def _now(self) -> float:
        """Seconds since the operator was made, as the queue counts."""
        return self._clock() - self._began

    def _ready(self, rows: pa.Table) -> tuple[FreshWindows, KeyIndex]:
        """The operator, made when the first rows tell the types of the columns."""
        names = [name for aggregate in self._aggregates for name in aggregate.columns]
        for name in (*self._keys, *names, *((self._time,) if self._window.timed else ())):
            if name not in rows.column_names:
                raise unknown_column(name, "the table", rows.column_names)
        if self._operator is None or self._index is None:
            self._index = KeyIndex(self._keys, [rows.schema.field(name).type for name in self._keys])
            types = {name: _wide(rows.schema.field(name).type) for name in names}
            self._operator = FreshWindows(
                self._window, self._aggregates, types, self._pool, policy=self._policy, cost=self._cost
            )
            kind = rows.schema.field(self._time).type if self._window.timed else pa.int64()
            self._point = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.int64()
        return self._operator, self._index


def _wide(kind: pa.DataType) -> pa.DataType:
    """The type in which a column is held."""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(kind) else kind
