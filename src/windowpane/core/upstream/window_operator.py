"""The aggregate operator behind an update queue of windows: any aggregates, over whole windows only.

The queue delimits windows (section 6.1.3 of Moga et al. 2009). The operator does what table 1 says: it opens
a window where a mark is its end, updates the open window of a key with each of its tuples, and gives the
result when the queue says that the end has come. Its state is one row of partials for each window that is
begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.aggregates import bind
from windowpane.core.arrays import Bools, Column, Floats, Ints, Tuples
from windowpane.core.column_types import plain_type
from windowpane.core.columns import is_integral, scale_of
from windowpane.core.fold import fold_slices
from windowpane.core.kernels.update_windows import NOT_OPENED
from windowpane.core.partials.base import Ranged
from windowpane.core.results import window_type
from windowpane.core.rows import Layout, Rows, merge, no_rows
from windowpane.core.upstream.begun import Begun
from windowpane.core.upstream.memory import PagePool, floats_of
from windowpane.core.upstream.served import Served
from windowpane.core.upstream.windows import UpdateWindow, WindowQueue
from windowpane.values.aggregates import Aggregate
from windowpane.values.errors import BadAggregate, BadState, wrong_type
from windowpane.values.freshness import Policy
from windowpane.values.user_aggregates import UserAggregate

_PLACE, _VALID, _COLUMNS = 0, 1, 2
_MOST_COLUMNS = 63
_PAGE, _BLOCK, _WORD = 4096, 8, 8
_SHORTEST = 1e-9


def page_bytes(columns: int) -> int:
    """How large pages must be for windows over so many columns: a block of tuples lies in one page."""
    return max(_PAGE, _BLOCK * (_COLUMNS + columns) * _WORD)


@dataclass(frozen=True, slots=True)
class _Held:
    """Results that are on their way: of which keys, of how many tuples, and what was processed since when."""

    keys: Ints
    tuples: Ints
    processed: int
    since: float


_NOTHING = _Held(np.empty(0, np.int64), np.empty(0, np.int64), 0, 0.0)


class FreshWindows:
    """Aggregates of the newest window of each key, for an operator that cannot keep up.

    Columns are numbers, booleans or times, as `types` says; they come as the core holds them: int64 (times in
    microseconds) or float64. Keys are dense ids.
    """

    __slots__ = (
        "_aggregates", "_begun", "_bound", "_failed", "_held", "_layout", "_names", "_types", "queue",
    )  # fmt: skip

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
        self._names = tuple(sorted({column for aggregate in aggregates for column in aggregate.columns}))
        if len(self._names) > _MOST_COLUMNS:
            raise BadAggregate(f"{len(self._names)} columns are aggregated; at most {_MOST_COLUMNS} can be.")
        self._aggregates, self._begun = tuple(aggregates), Begun()
        self._layout: Layout = ()
        self.retype(types)
        self._held = _NOTHING
        self._failed = ""
        width = _COLUMNS + len(self._names)
        self.queue = WindowQueue(window, pool, width, policy=policy, cost=cost, block=_BLOCK)

    def retype(self, types: Mapping[str, pa.DataType]) -> None:
        """Columns have these types; of one that had another nothing but nulls may have come."""
        before = self._layout
        self._bind({name: _held_type(name, types[name]) for name in self._names})
        rows = self._begun.take_all()
        known = dict(zip(before, rows.partials, strict=False))
        # No partial knows anything of nulls, so one of another type is that of no tuples.
        partials = tuple(known[p] if p in known else p.identity(len(rows)) for p in self._layout)
        self._begun = Begun()
        self._begun.put(Rows(rows.start, rows.key, partials))

    def _bind(self, types: dict[str, pa.DataType]) -> None:
        self._bound = tuple(bind(aggregate, types) for aggregate in self._aggregates)
        self._layout = tuple(dict.fromkeys(p for bound in self._bound for p in bound.partials))
        self._types = types

    def __getstate__(self) -> tuple[Any, ...]:
        """For pickle: all but what follows from the aggregates, which holds functions."""
        kept = (self._begun, self._held, self._failed)
        return self._aggregates, self._names, self._types, kept, self.queue

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Go on from what pickle kept."""
        self._aggregates, self._names, types, kept, self.queue = state
        self._begun, self._held, self._failed = kept
        self._bind(types)

    @property
    def begun(self) -> int:
        """How many windows are begun and not delivered."""
        return len(self._begun)

    def push(
        self, keys: Ints, columns: Mapping[str, Column], times: Floats, places: Ints | None = None
    ) -> Bools:
        """Take tuples in arrival order, with event times if windows are of these; which came too late."""
        rows = np.zeros((len(keys), _COLUMNS + len(self._names)), np.int64)
        if places is not None:
            rows[:, _PLACE] = places
        for i, name in enumerate(self._names):
            column = columns[name]
            held = np.float64 if pa.types.is_floating(self._types[name]) else np.int64
            rows[:, _COLUMNS + i] = np.asarray(column.values, held).view(np.int64)
            valid = np.int64(1) if column.valid is None else column.valid.astype(np.int64)
            rows[:, _VALID] |= valid << i
        return self.queue.enqueue(keys, rows, times)

    def serve(self, now: float, tuples: int, cost: float = 0.0) -> pa.Table:
        """Process so many tuples, each taking `cost`; the results that this completed, in order.

        Columns by position: `key`, `window`, the aggregates, and when the window was `committed` and `done`.
        The results of the call before count as delivered now, unless `deliver` said so earlier.
        """
        if self._failed:
            raise BadState(
                f"an aggregate failed when its tuples were taken already: {self._failed} Results would lack "
                "them. Go on with an operator that was stored before."
            )
        self.deliver(now)
        served = self.queue.serve(now, tuples, cost)
        self._held = _Held(served.done_keys, served.done_tuples, served.tuples, now)
        try:
            return self._results(served)
        except Exception as error:
            self._failed = f"{type(error).__name__}: {error}"
            raise

    def _results(self, served: Served) -> pa.Table:
        """Fold what was handed over, and lower what is complete."""
        fresh = self._folded(served) if served.tuples else no_rows(self._layout)
        begun = self._begun.take(np.concatenate([served.keys, served.done_keys]))
        rows = merge(self._layout, begun, fresh)
        ends = served.done_windows * self.queue.window.slide + self.queue.window.size
        at = _find(rows, ends, served.done_keys)
        rest = np.ones(len(rows), np.bool_)
        rest[at] = False
        self._begun.put(rows.take(rest))
        return self._table(served, ends, rows.take(at))

    def _folded(self, served: Served) -> Rows:
        windows, slices = np.unique(self._follow(served.keys, served.marks), return_inverse=True)
        n_keys = int(served.keys.max()) + 1
        return fold_slices(self._layout, self._tuples(served), windows, slices.reshape(-1), n_keys)

    def deliver(self, now: float) -> None:
        """The results of the last call reached the application, and what they took is learned.

        The time since that call is that of the tuples it processed; a window takes that of its tuples.
        """
        held, self._held = self._held, _NOTHING
        if len(held.keys):
            self.queue.deliver(held.keys, now)
            each = max(now - held.since, _SHORTEST) / max(held.processed, len(held.keys))
            self.queue.learn(held.keys, each * np.maximum(held.tuples, 1))

    def idle(self) -> Bools:
        """By key id: whether nothing of the key waits, is ready to be processed, or on its way."""
        idle = self.queue.idle()
        idle[self._held.keys] = False
        return idle

    def keep(self, live: Bools, now: float) -> None:
        """Forget the keys that are not live, which must be idle, and number the others anew, in order."""
        self.queue.keep(live, now)
        place = np.cumsum(live) - 1
        self._begun.keep(live)
        held = self._held
        self._held = _Held(place[held.keys], held.tuples, held.processed, held.since)

    def _follow(self, keys: Ints, marks: Ints) -> Ints:
        """The end of the window that each tuple updates: of the one that its key opened last (table 1)."""
        order = np.argsort(keys, kind="stable")
        key, mark = keys[order], marks[order]
        heads = np.append(True, key[1:] != key[:-1])
        opens = mark > NOT_OPENED
        end = np.where(opens, mark, self._begun.ends(key))
        found = end[np.maximum.accumulate(np.where(opens | heads, np.arange(len(key)), 0))]
        ends: Ints = np.empty_like(found)
        ends[order] = found
        return ends

    def _tuples(self, served: Served) -> Tuples:
        columns = {}
        for i, name in enumerate(self._names):
            valid = (served.rows[:, _VALID] >> i) & 1 == 1
            word = _COLUMNS + i
            is_float = pa.types.is_floating(self._types[name])
            values = floats_of(served.rows, word) if is_float else served.rows[:, word].copy()
            columns[name] = Column(values, None if bool(valid.all()) else valid)
        return Tuples(served.rows[:, _PLACE].copy(), served.keys, columns)

    def _table(self, served: Served, ends: Ints, complete: Rows) -> pa.Table:
        at = np.arange(len(complete))
        ranged = {
            partial: Ranged(partial, columns, at, at + 1)
            for partial, columns in zip(self._layout, complete.partials, strict=True)
        }
        sides = [pa.array(ends - self.queue.window.size), pa.array(ends)]
        window = pa.StructArray.from_arrays(sides, fields=list(window_type(pa.int64())))
        columns = [pa.array(served.done_keys), window]
        columns += [b.lower(tuple(ranged[p] for p in b.partials), _no_texts) for b in self._bound]
        columns += [pa.array(served.committed), pa.array(served.done)]
        names = ["key", "window", *(bound.name for bound in self._bound), "committed", "done"]
        return pa.Table.from_arrays(columns, names)


def _held_type(name: str, type_: pa.DataType) -> pa.DataType:
    """The type of a column's values; it must be one that fits into a word."""
    kind = plain_type(type_)
    if not (is_integral(kind) or pa.types.is_floating(kind) or scale_of(kind) is not None):
        remedy = "Cast the column, or give the ids of its values."
        raise wrong_type(name, type_, "a number, boolean or time", remedy)
    return kind


def _find(table: Rows, ends: Ints, keys: Ints) -> Ints:
    """Where these windows stand in a table sorted by (end, key), which holds them all."""
    if len(ends) == 0:
        return np.empty(0, np.int64)
    n_keys = int(table.key.max()) + 1
    known, rank = np.unique(table.start, return_inverse=True)  # ends themselves times keys could overflow
    names = rank.reshape(-1) * n_keys + table.key
    at: Ints = np.searchsorted(names, np.searchsorted(known, ends) * n_keys + keys)
    return at


def _no_texts(column: str, _: Ints) -> pa.Array:
    raise BadAggregate(f"column {column!r} holds ids of texts, which this operator does not know.")
