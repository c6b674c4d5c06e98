"""A queue between a producer and a consumer in one process that keeps results fresh under overload.

The producer puts tuples as they come; the consumer gets the newest tuple of the key that the policy chooses.
Older tuples of a key are overwritten while it waits: this queue is lossy on purpose (but see the policies
`append` and `shed`). Any number of threads may put; one thread gets.
"""

from __future__ import annotations

import math
import queue as standard
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Floats, Ints
from windowpane.core.upstream.append import AppendQueue, queue_of
from windowpane.core.upstream.operators import last_of_key
from windowpane.core.upstream.staleness import mean_of
from windowpane.local.rows import codes_of
from windowpane.values.errors import QueueClosed, WrongType, unknown_column
from windowpane.values.freshness import Policy

_MANY = 1024
Key = str | Sequence[str] | Callable[[Any], Hashable]


@dataclass(frozen=True, slots=True)
class Freshness:
    """How stale the results are, in seconds, averaged over the time since the queue was made.

    Attributes:
        keys: every key that was put and is not forgotten.
        queue: for each key, how long its oldest unserved update has been waiting, on average.
        application: for each key, how far its last delivered result is behind, on average.
        puts: how many tuples were put.
        gets: how many were got.
        lost: how many were overwritten by newer ones or shed.
        waiting: how many wait now.
        forgotten: of the keys that were forgotten, how many and the sums of their staleness (queue,
            application); the averages count them.
    """

    keys: tuple[Hashable, ...]
    queue: Floats
    application: Floats
    puts: int
    gets: int
    lost: int
    waiting: int
    forgotten: tuple[int, float, float] = (0, 0.0, 0.0)

    @property
    def average_queue(self) -> float:
        """Queue staleness averaged over the keys."""
        return mean_of(self.queue, self.forgotten[0], self.forgotten[1])

    @property
    def average_application(self) -> float:
        """Application staleness averaged over the keys: what the policies are there to lower."""
        return mean_of(self.application, self.forgotten[0], self.forgotten[2])

    def of(self, key: Hashable) -> float:
        """The average application staleness of one key."""
        return float(self.application[self.keys.index(key)])


class UpdateQueue:
    """Put tuples, get the newest tuple of the key that most needs it.

    Args:
        key: what a tuple updates: a column, several columns, or a function of a tuple.
        policy: `freshest`, `in_place`, `linecutting`, `fifo`, or, keeping all tuples, `append` and `shed`.
        cost: the seconds that the consumer needs for a tuple, as a first guess; it is measured.
        clock: where the time comes from, in seconds that never go back; by default the system's.
        forget: after how many seconds without an update a key that does not wait is forgotten, with what was
            learned of it, so that memory is bounded by the keys of that time.
    """

    def __init__(
        self,
        key: Key,
        policy: Policy | str = "freshest",
        *,
        cost: float = 0.001,
        clock: Callable[[], float] | None = None,
        forget: float = 3600.0,
    ) -> None:
        self._key = key
        self._columns = () if callable(key) else (key,) if isinstance(key, str) else tuple(key)
        self._clock = clock or time.monotonic
        self._changed = threading.Condition()
        self._queue = queue_of(policy, cost=cost, began=self._clock())
        self._ids: dict[Hashable, int] = {}
        self._items: dict[int, Any] = {}
        self._rows = 0
        self._puts = self._gets = self._lost = 0
        self._held: Ints = np.empty(0, np.int64)
        self._got_at = 0.0
        self._closed = False
        self._forget, self._look_at, self._many = forget, self._clock() + forget, _MANY

    def __len__(self) -> int:
        """How many tuples wait."""
        with self._changed:
            return len(self._queue)

    def __iter__(self) -> Iterator[Any]:
        """Get until the queue is closed and empty."""
        while True:
            try:
                yield self.get()
            except QueueClosed:
                return

    def put(self, item: Any) -> None:
        """Add a tuple: a mapping with the key columns, or whatever the key function takes."""
        self._add([self._key_of(item)], np.zeros(1, np.int64), [item])

    def put_batch(self, items: Iterable[Any] | pa.Table | pa.RecordBatch) -> None:
        """Add tuples in arrival order: an Arrow table or batch, a pandas frame, or an iterable of tuples."""
        if hasattr(items, "columns") and not isinstance(items, (pa.Table, pa.RecordBatch)):
            items = pa.Table.from_pandas(items, preserve_index=False)
        if isinstance(items, (pa.Table, pa.RecordBatch)) and self._columns:
            keys, codes = codes_of(items, self._columns)
            self._add(keys, codes, items)
            return
        rows = items.to_pylist() if isinstance(items, (pa.Table, pa.RecordBatch)) else list(items)
        seen: dict[Hashable, int] = {}
        codes = np.array([seen.setdefault(self._key_of(row), len(seen)) for row in rows], np.int64)
        self._add(list(seen), codes, rows)

    def get(self, timeout: float | None = None) -> Any:
        """The newest tuple of the key to serve next; waits for one, at most `timeout` seconds.

        What was got before counts as delivered now, unless `done` said so earlier.

        Raises:
            queue.Empty: nothing came within the timeout.
            QueueClosed: the queue was closed and all that was put has been got.
        """
        (item,) = self.get_batch(1, timeout)
        return item

    def get_batch(self, most: int, timeout: float | None = None) -> list[Any]:
        """As `get`, for up to `most` tuples in the order in which to process them; at least one."""
        with self._changed:
            self._deliver()
            if not self._changed.wait_for(lambda: len(self._queue) or self._closed, timeout):
                raise standard.Empty
            if not len(self._queue):
                raise QueueClosed(
                    "the queue is closed and everything in it was got. Make a new one to go on."
                )
            self._got_at = self._clock()
            taken = self._queue.take(self._got_at, limit=most)
            self._held = taken.ids
            self._gets += len(taken)
            keep = self._queue.policy.keeps_all
            return [self._items.pop(place) for place in (taken.rows if keep else taken.ids).tolist()]

    def done(self) -> None:
        """The results of what was got last are delivered."""
        with self._changed:
            self._deliver()

    def staleness(self) -> Freshness:
        """How stale results have been since the queue was made."""
        with self._changed:
            found = self._queue.staleness(self._clock())
            counts = (self._puts, self._gets, self._lost, len(self._queue))
            return Freshness(tuple(self._ids), found.queue, found.application, *counts, found.forgotten)

    def close(self) -> None:
        """No more tuples will be put; the consumer gets what is left, then `QueueClosed`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _key_of(self, item: Any) -> Hashable:
        if callable(self._key):
            return self._key(item)
        if not isinstance(item, Mapping):
            raise WrongType(
                f"a tuple is a {type(item).__name__}, but the key {self._columns[0]!r} is a column. Put "
                "mappings, or give a function as the key."
            )
        missing = [name for name in self._columns if name not in item]
        if missing:
            raise unknown_column(missing[0], "the tuple", [str(name) for name in item])
        values = tuple(item[name] for name in self._columns)
        return values[0] if len(values) == 1 else values

    def _add(self, keys: Sequence[Hashable], codes: Ints, items: Any) -> None:
        """Enter tuples; `codes` says which of `keys` each has."""
        with self._changed:
            if self._closed:
                raise QueueClosed("the queue is closed, so nothing more can be put. Make a new one to go on.")
            now = self._clock()
            self._forget_idle(now)
            ids = np.array([self._id_of(key) for key in keys], np.int64)[codes]
            rows = np.arange(self._rows, self._rows + len(ids))
            self._rows += len(ids)
            self._puts += len(ids)
            times = np.full(len(ids), now)
            if isinstance(self._queue, AppendQueue):
                shed = self._queue.enqueue(ids, times, rows)
                self._items.update(zip(rows.tolist(), _listed(items, None), strict=True))
                for row in shed.tolist():
                    del self._items[row]
                self._lost += len(shed)
            else:
                before = len(self._queue)
                self._queue.enqueue(ids, times, rows)
                self._lost += len(ids) - (len(self._queue) - before)
                newest = last_of_key(ids, rows)
                self._items.update(zip(ids[newest].tolist(), _listed(items, newest), strict=True))
            self._changed.notify()

    def _forget_idle(self, now: float) -> None:
        """Forget keys that were idle for long; looked for now and then, and whenever keys have doubled."""
        if now < self._look_at and len(self._ids) < self._many:
            return
        idle = self._queue.idle(now - self._forget)
        idle[self._held] = False
        if np.count_nonzero(idle) * 4 >= len(idle) > 0:
            self._queue.keep(~idle, now)
            place = np.cumsum(~idle) - 1
            if not self._queue.policy.keeps_all:
                self._items = {int(place[key]): item for key, item in self._items.items()}
            self._held = place[self._held]
            left = [key for key, gone in zip(self._ids, idle.tolist(), strict=False) if not gone]
            self._ids = {key: number for number, key in enumerate(left)}
        self._look_at, self._many = now + self._forget / 4, max(2 * len(self._ids), _MANY)

    def _id_of(self, key: Hashable) -> int:
        return self._ids.setdefault(_one_nan(key), len(self._ids))

    def _deliver(self) -> None:
        held, self._held = self._held, np.empty(0, np.int64)
        if len(held):
            now = self._clock()
            self._queue.deliver(held, np.full(len(held), now))
            self._queue.learn(held, np.full(len(held), max((now - self._got_at) / len(held), 1e-9)))


def _one_nan(key: Hashable) -> Hashable:
    """The key with one NaN for all of them: a dictionary finds it by identity."""
    if isinstance(key, tuple):
        return tuple(_one_nan(part) for part in key)
    return math.nan if isinstance(key, float) and math.isnan(key) else key


def _listed(items: Any, at: Ints | None) -> list[Any]:
    """The items at these positions, as Python objects."""
    if isinstance(items, (pa.Table, pa.RecordBatch)):
        rows: list[Any] = (items if at is None else items.take(pa.array(at))).to_pylist()
        return rows
    return list(items) if at is None else [items[i] for i in at.tolist()]
