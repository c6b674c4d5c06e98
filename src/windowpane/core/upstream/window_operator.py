"""The aggregate operator behind an update queue of windows: any aggregates, over whole windows only.

The queue says which tuples belong to which window (section 6.1.3 of Moga et al. 2009), so the operator only
folds what it is handed and lowers what is complete. Its state is one row of partials for each window that is
begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.aggregates import bind
from windowpane.core.arrays import Bools, Column, Floats, Ints, Tuples
from windowpane.core.fold import fold_slices
from windowpane.core.partials.base import Ranged
from windowpane.core.results import window_type
from windowpane.core.rows import Layout, Rows, merge, no_rows
from windowpane.core.upstream.memory import PagePool, floats_of
from windowpane.core.upstream.windows import Served, UpdateWindow, WindowQueue
from windowpane.values.aggregates import Aggregate
from windowpane.values.errors import BadAggregate, wrong_type
from windowpane.values.freshness import Policy
from windowpane.values.user_aggregates import UserAggregate

_PLACE, _VALID, _COLUMNS = 0, 1, 2
_MOST_COLUMNS = 63


class FreshWindows:
    """Aggregates of the newest window of each key, for an operator that cannot keep up.

    Columns are int64 or float64, as `types` says. Keys are dense ids.
    """

    __slots__ = ("_aggregates", "_bound", "_layout", "_names", "_open", "_types", "queue")

    def __init__(
        self,
        window: UpdateWindow,
        aggregates: Sequence[Aggregate | UserAggregate],
        types: Mapping[str, pa.DataType],
        pool: PagePool,
        *,
        policy: Policy | str = Policy.IN_PLACE,
        cost: float = 1.0,
    ) -> None:
        self._bind(aggregates, types)
        names = sorted({column for aggregate in aggregates for column in aggregate.columns})
        for name in names:
            if types[name] not in {pa.int64(), pa.float64()}:
                remedy = "Cast the column, or give the ids of its values."
                raise wrong_type(name, types[name], "int64 or float64", remedy)
        if len(names) > _MOST_COLUMNS:
            raise BadAggregate(f"{len(names)} columns are aggregated; at most {_MOST_COLUMNS} can be.")
        self._names = tuple(names)
        self._types = {name: types[name] for name in names}
        self._open: Rows = no_rows(self._layout)
        width = _COLUMNS + len(names)
        self.queue = WindowQueue(window, pool, width, policy=policy, cost=cost)

    def _bind(
        self, aggregates: Sequence[Aggregate | UserAggregate], types: Mapping[str, pa.DataType]
    ) -> None:
        self._aggregates = tuple(aggregates)
        self._bound = tuple(bind(aggregate, dict(types)) for aggregate in aggregates)
        self._layout: Layout = tuple(dict.fromkeys(p for bound in self._bound for p in bound.partials))

    def __getstate__(self) -> tuple[Any, ...]:
        """For pickle: all but what follows from the aggregates, which holds functions."""
        return self._aggregates, self._names, self._types, self._open, self.queue

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Go on from what pickle kept."""
        aggregates, self._names, self._types, self._open, self.queue = state
        self._bind(aggregates, self._types)

    @property
    def begun(self) -> int:
        """How many windows are begun and not delivered."""
        return len(self._open)

    def push(
        self, keys: Ints, columns: Mapping[str, Column], times: Floats, places: Ints | None = None
    ) -> Bools:
        """Take tuples in arrival order, with event times if windows are of these; which came too late."""
        rows = np.zeros((len(keys), _COLUMNS + len(self._names)), np.int64)
        if places is not None:
            rows[:, _PLACE] = places
        for i, name in enumerate(self._names):
            column = columns[name]
            held = np.asarray(column.values, self._types[name].to_pandas_dtype())
            rows[:, _COLUMNS + i] = held.view(np.int64)
            valid = np.int64(1) if column.valid is None else column.valid.astype(np.int64)
            rows[:, _VALID] |= valid << i
        return self.queue.enqueue(keys, rows, times)

    def serve(self, now: float, tuples: int, cost: float = 0.0) -> pa.Table:
        """Process so many tuples, each taking `cost`; the results that this completed, in order of delivery.

        Columns: `key`, `window`, the aggregates, and when the window was `committed` and `done`.
        """
        served = self.queue.serve(now, tuples, cost)
        if served.tuples:
            windows, slices = np.unique(served.windows, return_inverse=True)
            n_keys = int(served.keys.max()) + 1
            fresh = fold_slices(self._layout, self._tuples(served), windows, slices.reshape(-1), n_keys)
            self._open = merge(self._layout, self._open, fresh)
        at = _find(self._open, served.done_windows, served.done_keys)
        table = self._table(served, self._open.take(at))
        rest = np.ones(len(self._open), np.bool_)
        rest[at] = False
        self._open = self._open.take(rest)
        return table

    def _tuples(self, served: Served) -> Tuples:
        columns = {}
        for i, name in enumerate(self._names):
            valid = (served.rows[:, _VALID] >> i) & 1 == 1
            word = _COLUMNS + i
            is_float = pa.types.is_floating(self._types[name])
            values = floats_of(served.rows, word) if is_float else served.rows[:, word].copy()
            columns[name] = Column(values, None if bool(valid.all()) else valid)
        return Tuples(served.rows[:, _PLACE].copy(), served.keys, columns)

    def _table(self, served: Served, complete: Rows) -> pa.Table:
        at = np.arange(len(complete))
        ranged = {
            partial: Ranged(partial, columns, at, at + 1)
            for partial, columns in zip(self._layout, complete.partials, strict=True)
        }
        start = served.done_windows * self.queue.window.slide
        ends = pa.StructArray.from_arrays(
            [pa.array(start), pa.array(start + self.queue.window.size)], fields=list(window_type(pa.int64()))
        )
        columns = {"key": pa.array(served.done_keys), "window": ends}
        for bound in self._bound:
            columns[bound.name] = bound.lower(tuple(ranged[p] for p in bound.partials), _no_texts)
        columns |= {"committed": pa.array(served.committed), "done": pa.array(served.done)}
        return pa.table(columns)


def _find(table: Rows, windows: Ints, keys: Ints) -> Ints:
    """Where these windows stand in a table sorted by (window, key), which holds them all."""
    if len(windows) == 0:
        return np.empty(0, np.int64)
    n_keys = int(table.key.max()) + 1
    names = (table.start - table.start[0]) * n_keys + table.key
    at: Ints = np.searchsorted(names, (windows - table.start[0]) * n_keys + keys)
    return at


def _no_texts(column: str, _: Ints) -> pa.Array:
    raise BadAggregate(f"column {column!r} holds ids of texts, which this operator does not know.")
