"""Where the tuples of an update queue wait: as the objects that were put, or in pages of memory.

Keys become dense ids. A queue of all tuples calls each by a number (`append` gives it), one of the newest
tuples calls them by the ids of their keys.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Bools, Ints
from windowpane.core.upstream.memory import Usage
from windowpane.core.upstream.operators import last_of_key
from windowpane.local.object_keys import hashable, shown, told_apart
from windowpane.local.python_values import need_objects
from windowpane.local.rows import codes_of, listed, need_columns, table_of
from windowpane.local.update_arguments import names_of
from windowpane.values.errors import BadQuery, WrongType, unknown_column

Key = str | Sequence[str] | Callable[[Any], Hashable]


class Waiting(Protocol):
    """The tuples that wait, and the keys that were seen."""

    def batch(self, items: Any) -> Any:
        """Tuples as they are put, made ready; what cannot be put is refused here."""

    def ids(self, batch: Any) -> Ints:
        """The key id of each tuple; new keys get the next ids."""

    def append(self, batch: Any) -> Ints:
        """Keep every tuple; the numbers by which they go."""

    def overwrite(self, batch: Any, ids: Ints) -> None:
        """Keep the newest tuple of each key in place of the one that waits."""

    def drop(self, numbers: Ints) -> None:
        """Forget tuples by their numbers."""

    def name_by_key(self, ids: Ints, numbers: Ints) -> None:
        """The tuples that wait, one of each key and known by these numbers, go by their keys from now on."""

    def take(self, ids: Ints, numbers: Ints | None) -> Any:
        """The tuples of these keys, by their numbers where all are kept; they wait no longer."""

    def keep_keys(self, live: Bools, *, by_key: bool) -> None:
        """Forget the keys that are not live, none of which waits, and number the others anew."""

    def keys(self) -> tuple[Hashable, ...]:
        """The keys by id."""

    def __len__(self) -> int:
        """How many keys there are."""

    @property
    def room(self) -> float:
        """How many tuples can wait at once."""

    @property
    def most(self) -> int:
        """How many tuples can be taken at once."""

    @property
    def usage(self) -> Usage | None:
        """How much of which memory is taken, where that is known."""


@dataclass(frozen=True, slots=True)
class Objects:
    """A batch of tuples as objects; `codes` says which of `keys` each has."""

    keys: Sequence[Hashable]
    codes: Ints
    items: Any

    def listed(self, at: Ints | None = None) -> list[Any]:
        """The items, or those at these positions, as Python objects."""
        if isinstance(self.items, pa.Table):
            rows: list[Any] = (self.items if at is None else self.items.take(pa.array(at))).to_pylist()
            return rows
        return list(self.items) if at is None else [self.items[i] for i in at.tolist()]


class WaitingObjects:
    """Tuples of any kind as the Python objects that they are."""

    __slots__ = ("_columns", "_ids", "_items", "_key", "_next")

    def __init__(self, key: Key) -> None:
        self._key = key
        self._columns = columns_of(key)
        self._ids: dict[Hashable, int] = {}
        self._items: dict[int, Any] = {}
        self._next = 0

    def batch(self, items: Any) -> Objects:
        """A table, a pandas frame, or any iterable of tuples."""
        table = table_of(items)
        if table is not None:
            need_columns(table.column_names, (*self._columns, *table.column_names), "the table")
            need_objects(table)
            if self._columns:
                return Objects(*_coded(table, self._columns), table)
        rows = listed(items) if table is None else table.to_pylist()
        seen: dict[Hashable, int] = {}
        codes = np.array([seen.setdefault(self._key_of(row), len(seen)) for row in rows], np.int64)
        return Objects(list(seen), codes, rows)

    def ids(self, batch: Objects) -> Ints:
        """As `Waiting.ids`."""
        ids = [self._ids.setdefault(told_apart(key), len(self._ids)) for key in batch.keys]
        return np.array(ids, np.int64)[batch.codes]

    def append(self, batch: Objects) -> Ints:
        """As `Waiting.append`."""
        numbers = np.arange(self._next, self._next + len(batch.codes))
        self._next += len(numbers)
        self._items.update(zip(numbers.tolist(), batch.listed(), strict=True))
        return numbers

    def overwrite(self, batch: Objects, ids: Ints) -> None:
        """As `Waiting.overwrite`."""
        newest = last_of_key(ids, np.arange(len(ids)))
        self._items.update(zip(ids[newest].tolist(), batch.listed(newest), strict=True))

    def drop(self, numbers: Ints) -> None:
        """As `Waiting.drop`."""
        for number in numbers.tolist():
            del self._items[number]

    def name_by_key(self, ids: Ints, numbers: Ints) -> None:
        """As `Waiting.name_by_key`."""
        pairs = zip(ids.tolist(), numbers.tolist(), strict=True)
        self._items = {key: self._items[number] for key, number in pairs}

    def take(self, ids: Ints, numbers: Ints | None) -> list[Any]:
        """As `Waiting.take`."""
        return [self._items.pop(place) for place in (ids if numbers is None else numbers).tolist()]

    def keep_keys(self, live: Bools, *, by_key: bool) -> None:
        """As `Waiting.keep_keys`."""
        place = np.cumsum(live) - 1
        if by_key:
            self._items = {int(place[key]): item for key, item in self._items.items() if live[key]}
        left = [key for key, stays in zip(self._ids, live.tolist(), strict=True) if stays]
        self._ids = {key: number for number, key in enumerate(left)}

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._ids)

    def keys(self) -> tuple[Hashable, ...]:
        """As `Waiting.keys`."""
        return tuple(map(shown, self._ids))

    @property
    def room(self) -> float:
        """As `Waiting.room`: nobody counts the memory of objects."""
        return math.inf

    @property
    def most(self) -> int:
        """As `Waiting.most`."""
        return sys.maxsize

    @property
    def usage(self) -> None:
        """Nobody knows how much memory objects take."""
        return

    def _key_of(self, item: Any) -> Hashable:
        if callable(self._key):
            return told_apart(hashable(self._key(item), "the key that the function gave"))
        need_mapping(item, self._columns)
        values = tuple(hashable(item[name], f"column {name!r} of the key") for name in self._columns)
        return told_apart(values[0] if len(values) == 1 else values)


def columns_of(key: Key) -> tuple[str, ...]:
    """The columns of a key; none for a function."""
    if callable(key):
        return ()
    remedy = "Give a column, several, or a function of a tuple."
    names = names_of(key, "key", remedy)
    if not names:
        raise BadQuery(f"key={key!r} names no column. {remedy}")
    return names


def _coded(table: pa.Table, columns: Sequence[str]) -> tuple[list[Hashable], Ints]:
    """As `codes_of`, which Arrow cannot do for lists and structs."""
    try:
        return codes_of(table, columns)
    except pa.ArrowNotImplementedError as error:
        kinds = ", ".join(f"{name!r} ({table.schema.field(name).type})" for name in columns)
        raise WrongType(
            f"by the key {kinds} no key can be found: {error}. Cast to numbers, texts or times, or give a "
            "function of a tuple as the key."
        ) from error


def need_mapping(item: Any, columns: Sequence[str]) -> None:
    """Refuse a tuple that has no such columns."""
    if not isinstance(item, Mapping):
        many = "put_batch() takes tables. " if hasattr(item, "columns") or hasattr(item, "schema") else ""
        raise WrongType(
            f"a tuple is a {type(item).__name__}, but the key {columns[0]!r} is a column. {many}Put "
            "mappings, or give a function as the key."
        )
    missing = [name for name in columns if name not in item]
    if missing:
        raise unknown_column(missing[0], "the tuple", [str(name) for name in item])
