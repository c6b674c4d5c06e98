"""Streams of updates in one process: what filter, map, union, join and aggregate do where the newest counts.

Tables come in and go out. The operators of section 3.2 of Moga et al. 2009: results keep the update key, so
that they update the results before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Tuples
from windowpane.core.upstream.operators import Join, Union, check_grouping
from windowpane.local.rows import Rows, need_columns, need_table
from windowpane.local.update_arguments import names_of, need_callable, need_options
from windowpane.local.update_keys import Clock, KnownKeys, numbers_of
from windowpane.local.update_rows import KeptRows, with_side
from windowpane.local.update_tables import (
    joined_names,
    mask,
    need_like_times,
    need_own_names,
    need_same_key,
    stacked,
)
from windowpane.local.update_windows import OPTIONS, Aggregates, UpdateWindows, need_aggregates
from windowpane.values.durations import Duration, microseconds
from windowpane.values.errors import BadQuery, WrongType
from windowpane.values.freshness import Seconds

Mask = Callable[[pa.Table], Any]
On = Callable[[pa.Table, pa.Table], Any]


@dataclass(frozen=True)
class Updates:
    """A stream in which a newer row replaces the older ones of its key.

    Attributes:
        key: the columns that say what a row updates.
        time: the column of a row's event time: a timestamp, or any integer. It never falls within a key.
    """

    key: str | Sequence[str]
    time: str

    def __post_init__(self) -> None:
        names_of(self.key, "key")
        if not isinstance(self.time, str):
            raise BadQuery(f"time={self.time!r} names no column. Give the name of that of event time.")

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        return (self.key,) if isinstance(self.key, str) else tuple(self.key)

    def filter(self, rows: Rows, keep: Mask) -> pa.Table:
        """The rows for which `keep`, given all of them, is true. What is dropped updates nothing."""
        need_callable(keep, "keep", "the rows that says which of them stay")
        rows = self._checked(rows)
        return rows.filter(mask(keep(rows), len(rows)))

    def map(self, rows: Rows, function: Callable[[pa.Table], pa.Table]) -> pa.Table:
        """A row for each row; the function may change every column but the key."""
        need_callable(function, "function", "the rows")
        rows = self._checked(rows)
        made = function(rows)
        if not isinstance(made, pa.Table):
            raise WrongType(f"map made a {type(made).__name__} of the rows. Return an Arrow table.")
        if len(made) != len(rows):
            raise BadQuery(f"map made {len(made)} rows of {len(rows)}. Return one for each, in their order.")
        for name in (*self.keys, self.time):
            if name not in made.column_names:
                part = "the event time" if name == self.time else "part of the update key"
                raise BadQuery(f"map drops {name!r}, which is {part}. Keep the column.")
        need_columns(made.column_names, (*self.keys, self.time), "what map made")
        for name in self.keys:
            need_same_key(name, rows[name], made[name])
        return made

    def union(self, *, forget: Seconds = 3600.0, clock: Clock | None = None) -> UpdateUnion:
        """Merge streams with this key: the youngest row of a key goes out, older ones are dropped.

        A key without a row for `forget` (seconds of the `clock`, or a text) is forgotten: the next row of it
        goes out whatever its time. Within that time no row goes out that is older than the last of its key.
        """
        return UpdateUnion(self, forget, clock)

    def join(
        self,
        within: Duration,
        on: On | None = None,
        *,
        forget: Seconds = 3600.0,
        clock: Clock | None = None,
    ) -> UpdateJoin:
        """Join two streams with this key: the newest match of rows less than `within` apart.

        `on` says which pairs match, given the left and the right rows of all of them. A key without a row for
        `forget` (seconds of the `clock`, or a text) is forgotten with its rows: the next ones match rows that
        come after that. Within that time no match goes out that is older than the last of its key.
        """
        if on is not None:
            need_callable(on, "on", "the left and the right rows")
        return UpdateJoin(self, microseconds(within), on, forget, clock)

    def window(
        self,
        size: Duration,
        slide: Duration | None = None,
        *,
        by: str | Sequence[str] | None = None,
        **options: Any,
    ) -> WindowedUpdates:
        """Windows of so many rows of a key (`window(3, 1)`), or of event time (`window("1 min", "10 s")`).

        `by` groups by more columns than the key. The options are those of `UpdateWindows`.
        """
        keys = self.keys if by is None else names_of(by, "by")
        check_grouping(self.keys, keys)
        need_options(options, OPTIONS)
        return WindowedUpdates(self, keys, size, size if slide is None else slide, options)

    def _checked(self, rows: Rows) -> pa.Table:
        made = need_table(rows)
        need_columns(made.column_names, (*self.keys, self.time), "the table")
        return made


@dataclass(frozen=True)
class WindowedUpdates:
    """Windows on a stream of updates; `agg` says what of them is wanted."""

    updates: Updates
    keys: tuple[str, ...]
    size: Duration
    slide: Duration
    options: dict[str, Any]

    def agg(self, *aggregates: Aggregates, **named: Aggregates) -> UpdateWindows:
        """The operator: rows are put, aggregates of the newest window of each key are got.

        Keyword names become column names.
        """
        need_aggregates((*aggregates, *named.values()))
        all_ = (*aggregates, *(aggregate.named(output) for output, aggregate in named.items()))
        return UpdateWindows(self.keys, self.updates.time, (self.size, self.slide), all_, **self.options)


class UpdateUnion:
    """Merges streams with one update key. Of rows with one time that of the first input is taken."""

    def __init__(self, updates: Updates, forget: Seconds = 3600.0, clock: Clock | None = None) -> None:
        self._updates, self._union = updates, Union()
        self._known = KnownKeys(updates.keys, updates.time, forget, clock)
        self._first: pa.Table | None = None

    def push(self, *inputs: Rows) -> pa.Table:
        """Take what the inputs hold now; the youngest row of each key that is younger than its last one."""
        if not inputs:
            raise BadQuery("push() needs a table of each stream that is merged.")
        inputs = tuple(self._updates._checked(rows) for rows in inputs)
        read = self._known.read(inputs)
        firsts = np.cumsum([0, *(len(rows) for rows in inputs)]).tolist()
        # Before anything counts as sent: streams that do not fit could not be delivered.
        names = [f"input {n} of the union" for n in range(1, len(inputs) + 1)]
        if self._first is not None:  # later rows update earlier ones, so they have their columns
            inputs, names = (self._first, *inputs), ["what came before", *names]
        whole = stacked(inputs, names, self._updates.keys)
        some = self._known.tuples(read, firsts[:-1])
        found = self._union.youngest(*some)
        made = whole.take(pa.array(np.sort(numbers_of(found))))
        self._first = whole.schema.empty_table()
        self._union.sent(found)
        live = self._known.saw(read, some)
        if live is not None:
            self._union.keep(live)
        return made


class UpdateJoin:
    """Joins two streams on their update key within a window of time; the newest match of a key goes out.

    Columns: those of the left, then those of the right but for the key; `right_` stands before names that
    are in both, and a name that this makes and that is taken is refused.
    """

    def __init__(
        self,
        updates: Updates,
        within: int,
        on: On | None,
        forget: Seconds = 3600.0,
        clock: Clock | None = None,
    ) -> None:
        self._updates, self._on = updates, on
        self._known = KnownKeys(updates.keys, updates.time, forget, clock)
        self._join = Join(within, None if on is None else self._matches)
        self._rows = (KeptRows(), KeptRows())

    def push(self, left: Rows, right: Rows) -> pa.Table:
        """Take rows of both sides; the newest match of each key that has a new one."""
        new, keys = [self._updates._checked(rows) for rows in (left, right)], self._updates.keys
        need_own_names(joined_names(keys, *new))
        need_like_times(self._updates.time, *new)
        read, before = self._known.read(new), self._rows
        sides = zip(before, new, ("left", "right"), strict=True)
        rows = [with_side(kept, now, side, keys) for kept, now, side in sides]
        some = self._known.tuples(read, [kept.came for kept in before])
        self._rows = (rows[0], rows[1])
        try:
            found = self._join.push(*some)
        except BaseException:  # the predicate is not ours: if it fails nothing came
            self._rows = before
            raise
        made = [kept.take(numbers_of(of)) for kept, of in zip(rows, (found.left, found.right), strict=True)]
        live = self._known.saw(read, some)
        if live is not None:
            self._join.keep(live)
        self._forget()
        return self._table(*made)

    def _matches(self, left: Tuples, right: Tuples) -> Any:
        assert self._on is not None
        sides = [kept.take(numbers_of(of)) for kept, of in zip(self._rows, (left, right), strict=True)]
        return mask(self._on(*sides), len(left)).to_numpy(zero_copy_only=False)

    def _forget(self) -> None:
        """Drop the rows of a side that the join no longer holds, once they are as many as its others."""
        left, right = (
            rows if len(rows) <= 2 * size else rows.only(np.sort(numbers_of(self._join.kept(side))))
            for side, (rows, size) in enumerate(zip(self._rows, self._join.sizes, strict=True))
        )
        self._rows = (left, right)

    def _table(self, left: pa.Table, right: pa.Table) -> pa.Table:
        keys = self._updates.keys
        columns = [*left.columns, *(right[name] for name in right.column_names if name not in keys)]
        return pa.Table.from_arrays(columns, joined_names(keys, left, right))
