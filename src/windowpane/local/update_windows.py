"""Aggregates over the newest window of each key, for a consumer that cannot keep up.

Rows are put as they come; `get` processes some of them and gives the windows that this completed. Windows
that a newer one overtakes are lost as a whole: what comes out is the aggregate of exactly its window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.columns import TIME_LIMIT, read_column
from windowpane.core.keys import KeyIndex
from windowpane.core.upstream.memory import pool_within, set_aside
from windowpane.core.upstream.recency import Recency
from windowpane.core.upstream.window_operator import FreshWindows, page_bytes
from windowpane.core.upstream.windows import Commit, UpdateWindow
from windowpane.local.freshness import Freshness
from windowpane.local.rows import Rows, need_columns, need_table
from windowpane.local.update_arguments import bound_of, lengths_of, rows_to_process
from windowpane.local.update_keys import index_for
from windowpane.local.update_tables import Given, Types, event_times, key_columns, need_no_texts, types_with
from windowpane.values.aggregates import Aggregate
from windowpane.values.clocks import clock_of
from windowpane.values.durations import Duration
from windowpane.values.errors import BadQuery, OutOfMemory
from windowpane.values.freshness import SWITCH, Policy, Seconds, cost_in_seconds, policy_of
from windowpane.values.user_aggregates import UserAggregate

Aggregates = Aggregate | UserAggregate
_ALL = 1 << 20
"""Rows that one `get` processes unless it is told otherwise."""
OPTIONS = ("commit", "policy", "memory", "cost", "clock", "forget")


@dataclass(frozen=True, slots=True)
class WindowFreshness(Freshness):
    """How stale the results of windows are, in seconds, averaged over the time since the operator was made.

    As `Freshness`, where `puts` are rows, `gets` are results and `waiting` are keys. Of windows that hold
    rows and arrived in full each is got, lost, or still to come.

    Attributes:
        lost: how many windows arrived in full and have no result, because newer ones took their place.
        late: how many rows were left out, as they came behind a younger row of their key or a punctuation.
    """

    late: int = 0


class UpdateWindows:
    """An update queue of windows and the aggregates behind it; `wp.Updates(...).window(...).agg(...)`.

    One thread at a time may use it. `cost` and `forget` are seconds, or texts such as "5 ms".

    Args:
        keys: the columns whose values have windows of their own.
        time: the column of event time.
        span: size and slide: numbers of rows of a key, or lengths of time.
        aggregates: what is wanted of each window; columns must be numbers, booleans or times.
        commit: `lazy` (to the newest window that arrived in full) or `eager` (to the newest that started).
        policy: which key is served next: `in_place`, `fifo`, `linecutting` or `freshest`.
        memory: the most bytes that rows may take, as a number or a text ("64 MB"); one more is an error,
            nothing is dropped in silence.
        cost: the seconds that a row takes, as a first guess; it is measured.
        clock: where the time comes from, in seconds that never go back; by default the system's.
        forget: after how many seconds without a row a key that does not wait is forgotten, with the rows of
            its unfinished windows, so that memory is bounded by the keys of that time. If it comes back it
            is a new key: its rows count from 0; windows of event time that may hold forgotten rows are never
            given, and rows that lie in no later one are late.
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
        memory: int | str = 1 << 26,
        cost: Seconds = 0.001,
        clock: Callable[[], float] | None = None,
        forget: Seconds = 3600.0,
    ) -> None:
        _check_names(keys, aggregates)
        if commit not in tuple(Commit):
            raise BadQuery(f"commit={commit!r}: there is no such way. Use 'lazy' or 'eager'.")
        self._keys, self._time, self._aggregates = tuple(keys), time, tuple(aggregates)
        size, slide, timed = lengths_of(span)
        self._window = UpdateWindow(size, slide, Commit(commit), timed)
        self._policy, self._cost = _update_policy(policy), cost_in_seconds(cost)
        self._memory, page = memory, page_bytes(len(self._names))
        self._pool = pool_within(memory, page)
        self._clock = clock_of(clock)
        self._began = self._clock()
        self._index: KeyIndex | None = None
        self._operator: FreshWindows | None = None
        self._types: Types = {}
        self._recency = Recency(forget)
        self._got, self._bound = 0, -TIME_LIMIT

    def __getstate__(self) -> dict[str, Any]:
        """For pickle, which stores the operator as it stands; the time goes on where it was."""
        return {**self.__dict__, "_began": self._now()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Go on from what pickle kept."""
        self.__dict__.update(state)
        self._began = self._clock() - state["_began"]

    def put(self, rows: Rows) -> int:
        """Take rows in arrival order; how many were late: behind a younger row of their key or a punctuation.

        Late rows are left out. Windows that count rows have none: they do not read the times.
        """
        operator, index, given = self._ready(rows)
        before, now = operator.queue.late, self._now()
        self._recency.tick(now)
        # Before the rows are stored: where there is no room for them, keys that are idle may be the reason.
        if self._recency.due(len(index)):
            self._forget_idle(operator, index, now)
        stored = self._store(operator, index, given, now)
        if stored < given.count and self._forget_idle(operator, index, now, few=True):
            stored += self._store(operator, index, given.since(stored), now)
        if stored < given.count:
            raise self._full(operator, stored, given.count)
        return operator.queue.late - before

    def punctuate(self, bound: int | datetime | date) -> None:
        """No row with an event time below this (a number: in microseconds, or as the column counts) comes."""
        if not self._window.timed:
            raise BadQuery("windows that count tuples have no punctuation. Use windows of event time.")
        self._bound = max(self._bound, bound_of(bound, self._time))
        if self._operator is not None:  # else it is told when it is made
            self._operator.queue.punctuate(self._bound, self._now())

    def get(self, rows: int = _ALL) -> pa.Table:
        """Process up to so many rows (`lazy`: up to a window more); the results that this completed.

        What was got before counts as delivered now, unless `done` said so earlier; what it took is learned.
        """
        operator, index = self._operator, self._index
        if operator is None or index is None:
            raise BadQuery("nothing was put yet, so the columns of results are not known. Put rows first.")
        found = operator.serve(self._now(), rows_to_process(rows))
        self._got += len(found)
        key, window, *rest = (column.combine_chunks() for column in found.columns)
        sides = [window.field(i).cast(self._point) for i in range(2)]
        columns = [*index.values(key.to_numpy()), pa.StructArray.from_arrays(sides, ["start", "end"])]
        names = [*self._keys, "window", *(aggregate.name for aggregate in self._aggregates)]
        columns += rest[: len(self._aggregates)]
        return pa.Table.from_arrays(columns, names)

    def done(self) -> None:
        """The results that were got last are delivered."""
        if self._operator is not None:
            self._operator.deliver(self._now())

    def staleness(self) -> WindowFreshness:
        """How stale results have been, in seconds; the application's counts windows that arrived in full."""
        if self._operator is None or self._index is None:
            none = np.empty(0)
            return WindowFreshness((), none, none, 0, 0, 0, 0)
        queue = self._operator.queue
        found = queue.staleness(self._now())
        values = [column.to_pylist() for column in self._index.values(np.arange(len(found.queue)))]
        keys = tuple(values[0]) if len(values) == 1 else tuple(zip(*values, strict=True))
        counts = (queue.taken, self._got, queue.lost, len(queue.waiting()))
        return WindowFreshness(keys, found.queue, found.application, *counts, found.forgotten, queue.late)

    def _now(self) -> float:
        """Seconds since the operator was made, as the queue counts."""
        return self._clock() - self._began

    @property
    def _names(self) -> list[str]:
        """The columns that are aggregated."""
        return list(dict.fromkeys(name for aggregate in self._aggregates for name in aggregate.columns))

    @property
    def _point(self) -> pa.DataType:
        """The type of a window's start and end, as queries have it."""
        kind = self._types[self._time] if self._window.timed else pa.int64()
        if pa.types.is_integer(kind):
            return pa.int64()
        return pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None)

    def _ready(self, given: Rows) -> tuple[FreshWindows, KeyIndex, Given]:
        """What takes the rows, and the rows as read: before anything changes, as they may be refused."""
        rows = need_table(given)
        used = [*self._names, *((self._time,) if self._window.timed else ())]
        need_columns(rows.column_names, (*self._keys, *used), "the table")
        types = types_with(self._types, rows, used)
        index = index_for(self._index, self._keys, rows)
        read = self._read(index, rows)
        self._operator = self._operator_for(types)
        self._index, self._types = index, types
        return self._operator, index, read

    def _read(self, index: KeyIndex, rows: pa.Table) -> Given:
        places = event_times(rows[self._time], self._time) if self._window.timed else None
        need_no_texts(rows, self._names)
        columns = {name: read_column(rows[name], name) for name in self._names}
        return Given(len(rows), key_columns(index, rows), columns, places)

    def _operator_for(self, types: Types) -> FreshWindows:
        if self._operator is not None:
            if types != self._types:
                self._operator.retype(types)
            return self._operator
        options: dict[str, Any] = {"policy": self._policy, "cost": self._cost}
        with set_aside(self._memory):
            made = FreshWindows(self._window, self._aggregates, types, self._pool, **options)
        if self._window.timed:
            made.queue.punctuate(self._bound, self._now())
        return made

    def _store(self, operator: FreshWindows, index: KeyIndex, given: Given, now: float) -> int:
        """Store rows in arrival order while there is room for them; how many were, late ones included."""
        ids = index.encode(given.keys, given.count)
        before = operator.queue.taken
        with suppress(OutOfMemory):
            operator.push(ids, given.columns, np.full(given.count, now), given.places)
        known = operator.queue.keys
        if known < len(index):  # keys of which there was no room for any row would count as fresh
            index.compact(np.arange(len(index)) < known)
        stored = operator.queue.taken - before
        self._recency.saw(ids[:stored], known, now)
        return stored

    def _full(self, operator: FreshWindows, stored: int, of: int) -> OutOfMemory:
        remedies = ["more `memory`", "a shorter `forget`"]
        if self._window.timed:
            remedies.append("a punctuation, so that windows end")
        if not operator.queue.idle().all():
            remedies.append("what waits to be got first")
        return OutOfMemory(
            f"the memory ({self._pool.pages} pages) is full after {stored} of {of} tuples, which are stored. "
            f"It needs {', '.join(remedies[:-1])} or {remedies[-1]}."
        )

    def _forget_idle(self, operator: FreshWindows, index: KeyIndex, now: float, *, few: bool = False) -> bool:
        """Forget keys that were idle for long, as `Recency.gone` says; whether there were any."""
        gone = self._recency.gone(operator.idle(), few=few)
        if gone is None:
            return False
        operator.keep(~gone, now)
        index.compact(~gone)
        self._recency.keep(~gone)
        return True


def _update_policy(name: Policy | str) -> Policy:
    """The policy of this name, which must leave old windows for newer ones."""
    if name == SWITCH or (policy := policy_of(name)).keeps_all:
        others = ", ".join(other.value for other in Policy if not other.keeps_all)
        raise BadQuery(f"policy {str(name)!r} keeps every row, so no window is left out. Use {others}.")
    return policy


def need_aggregates(wanted: Sequence[object]) -> None:
    """Refuse what is no aggregate."""
    for one in wanted:
        if not isinstance(one, Aggregates):
            raise BadQuery(f"agg({one!r}): that is no aggregate. Give one such as wp.mean('price').")


def _check_names(keys: Sequence[str], aggregates: Sequence[Aggregates]) -> None:
    """What is wanted must be aggregates, and each column of the result must have a name of its own."""
    if not aggregates:
        raise BadQuery("agg() needs an aggregate, such as wp.mean('price').")
    need_aggregates(aggregates)
    taken = {*keys, "window"}
    for aggregate in aggregates:
        if aggregate.name in taken:
            raise BadQuery(
                f"the result would have two columns {aggregate.name!r}. Give one of them another "
                "name: agg(other=...)."
            )
        taken.add(aggregate.name)
