"""A queue between a producer and a consumer in one process that keeps results fresh under overload.

The producer puts tuples as they come; the consumer gets the newest tuple of the key that the policy chooses.
Older tuples of a key are overwritten while it waits: this queue is lossy on purpose (but see the policies
`append`, `shed` and `switch`). Any number of threads may put; one thread gets.
"""

from __future__ import annotations

import queue as standard
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Bools, Ints
from windowpane.core.upstream.append import AppendQueue, queue_of
from windowpane.core.upstream.change import Load, changed, wanted
from windowpane.core.upstream.memory import Usage
from windowpane.core.upstream.recency import Looks
from windowpane.local.freshness import Freshness
from windowpane.local.update_arguments import at_least_one
from windowpane.local.waiting import Key, Waiting, WaitingObjects
from windowpane.local.waiting_rows import WaitingRows
from windowpane.values.clocks import clock_of
from windowpane.values.errors import BadQuery, QueueClosed
from windowpane.values.freshness import (
    SWITCH,
    Policy,
    Seconds,
    behind_in_seconds,
    cost_in_seconds,
    forget_in_seconds,
    timeout_in_seconds,
)


class UpdateQueue:
    """Put tuples, get the newest tuple of the key that most needs it.

    Lengths of time are seconds, or texts such as "5 ms".

    Args:
        key: what a tuple updates: a column, several columns, or a function of a tuple.
        policy: `freshest`, `in_place`, `linecutting`, `fifo`, or, keeping all tuples, `append` and `shed`;
            `switch` is `append` until the consumer falls behind, then `freshest` until it has caught up.
        schema: the columns of the tuples, all but the key's of fixed width: they are then kept in pages of
            memory, without a Python object for each.
        memory: with a schema, the most bytes that waiting tuples may take, or a text such as '64 MB' (64 MiB
            by default); a tuple more is an error.
        cost: the seconds that the consumer needs for a tuple, as a first guess; it is measured.
        behind: for `switch`, the seconds of work that may wait before older tuples are overwritten.
        clock: where the time comes from, in seconds that never go back; by default the system's.
        forget: after how many seconds without an update a key that does not wait is forgotten, with what was
            learned of it, so that memory is bounded by the keys of that time.
    """

    def __init__(  # noqa: PLR0913 - keyword options, each with a default
        self,
        key: Key,
        policy: Policy | str = "freshest",
        *,
        schema: pa.Schema | None = None,
        memory: str | int | None = None,
        cost: Seconds = 0.001,
        behind: Seconds = 1.0,
        clock: Callable[[], float] | None = None,
        forget: Seconds = 3600.0,
    ) -> None:
        cost, behind, forget = cost_in_seconds(cost), behind_in_seconds(behind), forget_in_seconds(forget)
        self._clock = clock_of(clock)
        self._changed = threading.Condition()
        self._switches, self._behind = policy == SWITCH, behind
        began = self._clock()
        self._queue = queue_of(Policy.APPEND if self._switches else policy, cost=cost, began=began)
        self._load = Load(behind, began)
        self._waiting = _waiting_in(key, schema, memory)
        self._puts = self._gets = self._lost = 0
        self._held: Ints = np.empty(0, np.int64)
        self._got_at = 0.0
        self._closed = False
        self._forget, self._looks = forget, Looks(forget, began)

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

    @property
    def policy(self) -> Policy:
        """The policy in use; one that switches is `append` or `freshest`."""
        with self._changed:
            return self._queue.policy

    @property
    def usage(self) -> Usage | None:
        """How many pages and cells of memory the waiting tuples take; None without a schema."""
        with self._changed:
            return self._waiting.usage

    def put(self, item: Any) -> None:
        """Add a tuple: a mapping with the key columns, or whatever the key function takes."""
        self.put_batch([item])

    def put_batch(self, items: Iterable[Any] | pa.Table | pa.RecordBatch) -> None:
        """Add tuples in arrival order: an Arrow table or batch, a pandas frame, or an iterable of tuples."""
        batch = self._waiting.batch(items)
        with self._changed:
            if self._closed:
                raise QueueClosed("the queue is closed, so nothing more can be put. Make a new one to go on.")
            now = self._clock()
            self._forget_idle(now)
            try:
                ids = self._waiting.ids(batch)
                load = self._load.add(len(ids) * self._queue.cost, now)
                self._switch(load)
                if self._crowded(ids):
                    self._change(Policy.FRESHEST)
                self._enqueue(batch, ids, now)
            except BaseException:  # keys without an update would count as keys that are fresh
                self._keep_keys(np.arange(len(self._waiting)) < self._queue.keys)
                raise
            self._puts += len(ids)
            self._switch(load)
            self._changed.notify_all()

    def get(self, timeout: Seconds | None = None) -> Any:
        """The newest tuple of the key to serve next; waits for one, at most `timeout` seconds.

        What was got before counts as delivered now, unless `done` said so earlier.

        Raises:
            queue.Empty: nothing came within the timeout.
            QueueClosed: the queue was closed and all that was put has been got.
        """
        (item,) = self.get_batch(1, timeout)
        return item

    def get_batch(self, most: int, timeout: Seconds | None = None) -> list[Any]:
        """As `get`, for up to `most` tuples in the order in which to process them; at least one."""
        taken = self._take(most, timeout)
        rows: list[Any] = taken.to_pylist() if isinstance(taken, pa.Table) else taken
        return rows

    def get_table(self, most: int, timeout: Seconds | None = None) -> pa.Table:
        """As `get_batch`, as a table; for queues with a schema."""
        if not isinstance(self._waiting, WaitingRows):
            raise BadQuery("get_table() needs the columns of the tuples. Make the queue with `schema=`.")
        return self._take(most, timeout)

    def done(self) -> None:
        """The results of what was got last are delivered."""
        with self._changed:
            self._deliver()

    def staleness(self) -> Freshness:
        """How stale results have been since the queue was made."""
        with self._changed:
            found = self._queue.staleness(self._clock())
            counts = (self._puts, self._gets, self._lost, len(self._queue))
            return Freshness(self._waiting.keys(), found.queue, found.application, *counts, found.forgotten)

    def close(self) -> None:
        """No more tuples will be put; the consumer gets what is left, then `QueueClosed`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _enqueue(self, batch: Any, ids: Ints, now: float) -> None:
        """Let tuples wait; where there is no memory for them, nothing changes."""
        times = np.full(len(ids), now)
        if isinstance(self._queue, AppendQueue):
            shed = self._queue.enqueue(ids, times, self._waiting.append(batch))
            self._waiting.drop(shed)
            self._lost += len(shed)
        else:
            before = len(self._queue)
            self._waiting.overwrite(batch, ids)
            self._queue.enqueue(ids, times)
            self._lost += len(ids) - (len(self._queue) - before)

    def _switch(self, load: float) -> None:
        """Where the load says so, keep only the newest tuple of each key, or all of them again."""
        if self._switches:
            policy = wanted(self._queue, behind=self._behind, cost=self._queue.cost, load=load)
            if policy is not self._queue.policy:
                self._change(policy)

    def _crowded(self, ids: Ints) -> bool:
        """Whether these tuples have no room beside all that wait, but would if only the newest stay."""
        queue, room = self._queue, self._waiting.room
        if not self._switches or not isinstance(queue, AppendQueue) or len(queue) + len(ids) <= room:
            return False
        return len(np.union1d(queue.newest()[0], ids)) <= room

    def _change(self, policy: Policy) -> None:
        """Go on under another policy, between `append` and `freshest`."""
        queue = self._queue
        newest = queue.newest() if isinstance(queue, AppendQueue) else (self._held[:0], self._held[:0])
        older = np.setdiff1d(queue.waiting_rows(), newest[1])
        self._queue = changed(queue, policy, newest, self._held)
        self._waiting.drop(older)
        self._waiting.name_by_key(*newest)
        self._lost += len(older)

    def _take(self, most: int, timeout: Seconds | None) -> Any:
        limit, patience = min(at_least_one(most), self._waiting.most), timeout_in_seconds(timeout)
        with self._changed:
            self._deliver()
            if not self._changed.wait_for(lambda: len(self._queue) or self._closed, patience):
                raise standard.Empty
            if not len(self._queue):
                raise QueueClosed(
                    "the queue is closed and everything in it was got. Make a new one to go on."
                )
            self._got_at = self._clock()
            taken = self._queue.take(self._got_at, limit=limit)
            self._held = taken.ids
            self._gets += len(taken)
            return self._waiting.take(taken.ids, taken.rows if self._queue.policy.keeps_all else None)

    def _forget_idle(self, now: float) -> None:
        """Forget keys that were idle for long."""
        if not self._looks.due(self._queue.keys, now):
            return
        idle = self._queue.idle(now - self._forget)
        idle[self._held] = False
        if self._looks.pays(idle, now):
            self._queue.keep(~idle, now)
            self._keep_keys(~idle)
            self._held = (np.cumsum(~idle) - 1)[self._held]

    def _keep_keys(self, live: Bools) -> None:
        self._waiting.keep_keys(live, by_key=not self._queue.policy.keeps_all)

    def _deliver(self) -> None:
        if len(self._held):
            now = self._clock()
            held, self._held = self._held, np.empty(0, np.int64)
            self._queue.deliver(held, np.full(len(held), now))
            self._queue.learn(held, np.full(len(held), max((now - self._got_at) / len(held), 1e-9)))


def _waiting_in(key: Key, schema: pa.Schema | None, memory: str | int | None) -> Waiting:
    if schema is not None:
        return WaitingRows(key, schema, 1 << 26 if memory is None else memory)
    if memory is not None:
        raise BadQuery(
            f"memory={memory!r} is for tuples in pages, whose columns must be known. Give their `schema`, or "
            "leave `memory` out."
        )
    return WaitingObjects(key)
