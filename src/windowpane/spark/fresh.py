"""Update queues in buckets: the newest row of each key waits until the function has time for it.

This is the whole of the operator but for Spark. Times of arrival and service are seconds of a given clock,
which is read once in a micro-batch; what passes within it is measured by `ticks`, which nobody sets back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import ALWAYS, NEVER, Ints, Values
from windowpane.core.columns import read_time
from windowpane.core.keys import KeyIndex
from windowpane.core.lane_blocks import Blocks
from windowpane.core.upstream.append import AppendQueue, queue_of
from windowpane.core.upstream.change import changed, wanted
from windowpane.core.upstream.operators import last_of_key
from windowpane.core.upstream.queue import KeyQueue
from windowpane.core.upstream.recency import Looks
from windowpane.query import STANDS_FOR
from windowpane.spark.envelope import read_batches
from windowpane.spark.fresh_before import contents_before
from windowpane.spark.fresh_blocks import IN_LINE, Contents
from windowpane.spark.fresh_calls import AnyQueue, Calls, Clock, Pace, last_told, mean_cost, rising
from windowpane.spark.fresh_frames import frame_of, table_of
from windowpane.spark.fresh_store import Store
from windowpane.spark.newest import Newest
from windowpane.spark.queue_spec import Notes, QueueSpec, staleness_table, stalest_keys
from windowpane.spark.zones import UTC, in_zone
from windowpane.values.freshness import SWITCH, Policy

_GUESS, _SHORTEST = 0.001, 1e-9
"""Seconds that a row takes before anything is known of it, and that a call takes at least."""
_FORGET = 3600.0
"""Seconds after which an idle key may be forgotten."""
_SPARE = 1024
"""Rows that nobody waits for are kept while they are no more than those that wait, and so many."""
_OF_ALL = ("totals", "habits")
"""What a queue knows of all keys together."""


@dataclass
class Fresh:
    """One queue in one bucket; `rows` has all that wait, and some that no longer do."""

    spec: QueueSpec
    types: tuple[tuple[str, pa.DataType], ...]
    queue: AnyQueue | None = None
    pace: Pace = field(default_factory=Pace)
    kept: Store = field(default_factory=Store)
    looks: Looks = field(default_factory=lambda: Looks(_FORGET, -np.inf))
    ticks: Clock = perf_counter

    def __post_init__(self) -> None:
        kinds = dict(self.types)
        self.index = KeyIndex(self.spec.keys, [kinds[name] for name in self.spec.keys])
        self.rows = Contents(self.index).rows
        self.newest = Newest(ties=self.spec.ties is not None)

    def step(
        self,
        payloads: list[bytes],
        clock: Clock,
        *,
        drain: bool = False,
        limit: int = ALWAYS,
        bound: int = NEVER,
    ) -> tuple[dict[str, list[pa.Table]], Notes]:
        """Take rows in, and call the function while there is budget (`drain`: until none waits).

        Rows with times from `limit` on are too far ahead; none, of these either, is promised to come below
        `bound`.
        """
        notes = Notes()
        clock = rising(max(clock(), last_told(self.queue)), self.ticks)
        waited = 0 if self.queue is None else len(self.queue)
        self.queue = self._ready(clock())
        notes.lost = waited - len(self.queue)  # where the policy is another: one that keeps the newest only
        self._forget_idle(self.queue, clock(), bound)
        self._take_in(payloads, self.queue, clock(), limit, notes)
        queue = self.queue
        answers, served = self._serve(queue, clock, np.inf if drain else self.spec.budget, notes)
        now = clock()
        stale = queue.staleness(now)
        notes.waiting, notes.keys = len(queue), queue.keys
        notes.staleness_us = int(np.nan_to_num(stale.application).sum() * 1e6)
        notes.oldest_us = int(max(now - queue.oldest(), 0.0) * 1e6) if len(queue) else 0
        pending = queue.views()["pending"]
        table = staleness_table(self.spec, self.index, stale, served, now - pending)
        notes.stalest = stalest_keys(self.spec, table)
        return {self.spec.name: answers, f"{self.spec.name} staleness": [table] if len(table) else []}, notes

    def _ready(self, now: float) -> AnyQueue:
        """The queue, with the policy that is wanted now."""
        if self.queue is None:
            policy = Policy.APPEND if self.spec.policy == SWITCH else Policy(self.spec.policy)
            return queue_of(policy, cost=_GUESS, began=now)
        return self._adapted(self.queue)

    def _adapted(self, queue: AnyQueue) -> AnyQueue:
        """The queue, under another policy if that is wanted."""
        policy = self._wanted(queue)
        if queue.policy is policy:
            return queue
        queue = self._changed(queue, policy)
        self._drop_gone(queue)
        return queue

    def _wanted(self, queue: AnyQueue) -> Policy:
        if self.spec.policy != SWITCH:
            return Policy(self.spec.policy)
        return wanted(queue, behind=self.spec.budget, cost=mean_cost(queue) or _GUESS)

    def _forget_idle(self, queue: AnyQueue, now: float, bound: int) -> None:
        """Forget keys without a row for an hour, if no older one may come."""
        if not self.looks.due(queue.keys, now):
            return
        idle = queue.idle(now - _FORGET)
        idle &= self.newest.time[: len(idle)] < bound
        if self.looks.pays(idle, now):
            live = np.ones(len(self.index), np.bool_)
            live[: len(idle)] = ~idle
            queue.keep(~idle, now)
            self.index.compact(live)
            self.newest.keep(live)
            self.kept.anew()

    def _changed(self, queue: AnyQueue, policy: Policy) -> AnyQueue:
        """The queue under another policy, with what waits."""
        self.kept.anew()
        none = np.empty(0, np.int64)
        if isinstance(queue, KeyQueue) or policy.keeps_all or not len(queue):
            return changed(queue, policy, (none, none))
        numbers = np.sort(queue.waiting_rows())
        held = self.rows.take(numbers)
        ids = self.index.encode([held[name] for name in self.spec.keys], held.num_rows)
        time = read_time(held[self.spec.time], self.spec.time)[0]
        order = self.spec.order(held, time)
        at = last_of_key(ids, *order)
        at = at[~self.newest.older(ids, order)[at]]
        return changed(queue, policy, (ids[at], numbers[at]))

    def _take_in(self, payloads: list[bytes], queue: AnyQueue, now: float, limit: int, notes: Notes) -> None:
        table, time, rows_of = self._placed(payloads, limit, notes)
        if not len(time):
            return
        ids = self.index.encode([table[name] for name in self.spec.keys], table.num_rows)
        self.newest.know(len(self.index))
        order = self.spec.order(table, time)
        notes.updates = int(rows_of.sum())
        if isinstance(queue, KeyQueue):
            older = self.newest.older(ids, order)
            at = last_of_key(ids, *order)
            at = at[~older[at]]
            notes.outdated = int(rows_of[older].sum())
        else:
            at = np.lexsort(order[::-1])
        before, known = len(queue), queue.keys
        rows = np.arange(self.rows.came, self.rows.came + len(at))
        shed = self._let_wait(queue, ids[at], now, rows)
        kept = at[~np.isin(rows, shed)]  # nobody gets those that were shed
        self.newest.rise(ids[kept], tuple(part[kept] for part in order))
        self.kept.note(ids)
        # With a key the queue learns of those before it too, of which only outdated rows came so far.
        self.kept.note(np.arange(known, queue.keys))
        if len(shed):
            self.kept.rearranged()
        notes.lost += notes.updates - notes.outdated - (len(queue) - before)
        self.rows = self.rows.with_rows(table.take(pa.array(at)))
        self._drop_gone(queue)
        before = len(queue)
        self.queue = self._adapted(queue)
        notes.lost += before - len(self.queue)

    def _let_wait(self, queue: AnyQueue, ids: Ints, now: float, rows: Ints) -> Ints:
        """The rows wait, unless they are shed; those that are."""
        times = np.full(len(ids), now)
        if isinstance(queue, KeyQueue):
            queue.enqueue(ids, times, rows)
        else:
            queue.enqueue(ids, times, rows, whole=True)
        return Calls(queue, self.pace, self.spec.budget).shed()

    def _placed(self, payloads: list[bytes], limit: int, notes: Notes) -> tuple[pa.Table, Ints, Ints]:
        """The rows that are not too far ahead, their times, and how many rows each stands for."""
        batches = [batch for payload in payloads for batch in read_batches(payload) if batch.num_rows]
        if not batches:
            return pa.table({}), np.empty(0, np.int64), np.empty(0, np.int64)
        table = in_zone(pa.Table.from_batches(batches).combine_chunks(), UTC)
        rows_of = np.ones(table.num_rows, np.int64)
        if STANDS_FOR in table.column_names:
            rows_of = table[STANDS_FOR].to_numpy()
            table = table.drop_columns([STANDS_FOR])
        time = read_time(table[self.spec.time], self.spec.time)[0]
        near = time < limit
        if not bool(near.all()):
            notes.too_far_ahead = int(rows_of[~near].sum())
            table, time, rows_of = table.filter(pa.array(near)), time[near], rows_of[near]
        return table, time, rows_of

    def _serve(
        self, queue: AnyQueue, clock: Clock, budget: float, notes: Notes
    ) -> tuple[list[pa.Table], Ints]:
        """Calls of some rows each, as many as fit; their costs are learned."""
        calls, began = Calls(queue, self.pace, budget), clock()
        answers: list[pa.Table] = []
        served = [np.empty(0, np.int64)]
        start = began
        while (taken := calls.next(start, start - began)) is not None:
            answers.append(self._call(taken.rows))
            end = clock()
            calls.took(taken, max(end - start, _SHORTEST))
            queue.deliver(taken.ids, np.full(len(taken), end))
            served.append(taken.ids)
            start = end
        ids = np.concatenate(served)
        notes.served = len(ids)
        if notes.served:
            self.kept.note(ids)
            self._drop_gone(queue)
        return answers, ids

    def _call(self, rows: Ints) -> pa.Table:
        given = frame_of(self.spec, self.rows.take(rows))
        return table_of(self.spec, self.spec.function(given))

    def _drop_gone(self, queue: AnyQueue) -> None:
        """Forget rows that were served or overwritten, where they are many."""
        if len(self.rows) > 2 * len(queue) + _SPARE:
            self.rows = self.rows.only(np.sort(queue.waiting_rows()))

    def store(self, number: int, blocks: Blocks) -> dict[str, Any]:
        """Put the state into blocks; gives what is stored beside them."""
        views = {} if self.queue is None else self.queue.views()
        header = self.kept.write(f"queue {number}", blocks, self._contents())
        return header | {
            "policy": None if self.queue is None else self.queue.policy.value,
            "small": {name: views[name].tolist() for name in _OF_ALL if name in views},
            "count": 0 if self.queue is None else self.queue.keys,
            "floor": self.newest.floor,
            "pace": astuple(self.pace),
        }

    def _contents(self) -> Contents:
        """What is stored in blocks."""
        queue = self.queue
        views = {} if queue is None else queue.views()
        waits = np.empty(0, np.int64)
        if isinstance(queue, KeyQueue):
            waits = np.where(views["first"] < np.inf, views["row"], -1)
        line = {name: views[name] for name in IN_LINE if name in views}
        known = {name: array for name, array in views.items() if name not in {*IN_LINE, *_OF_ALL}}
        return Contents(self.index, known | self.newest.parts(), self.rows, waits, line)

    def leads_to(self, header: Mapping[str, Any]) -> bool:
        """Whether what another worker stored went on from what is here."""
        return self.kept.leads_to(header)

    def restore(self, number: int, header: Mapping[str, Any], blocks: Mapping[str, bytes]) -> None:
        """Go on from what `store` gave: here, in a queue that leads to it, or as a new queue."""
        label = f"queue {number}"
        if "journal" in header:
            given = self.kept.read(label, header, blocks, self._contents())
        else:
            given = contents_before(label, header, blocks, self.index)
        self.index, self.rows = given.index, given.rows
        self.pace = Pace(*header.get("pace", ()))
        ids = np.arange(len(self.index)) if given.ids is None else given.ids
        self.newest.take_over(int(header["floor"]), len(self.index), ids, given.known)
        if header["policy"] is not None:
            count = int(header.get("count", len(given.known["row"])))
            ids = ids[: np.searchsorted(ids, count)]
            arrays = {name: array[: len(ids)] for name, array in given.known.items()} | given.line
            arrays |= {name: np.array(values) for name, values in header["small"].items()}
            self._take_over(Policy(header["policy"]), count, ids, arrays)

    def _take_over(self, policy: Policy, count: int, ids: Ints, arrays: Mapping[str, Values]) -> None:
        """The queue goes on from what is stored of these of so many keys, and of all together."""
        if self.queue is None:
            self.queue = (AppendQueue if policy.keeps_all else KeyQueue).restore(policy, arrays)
        else:
            self.queue.take_over(count, ids, arrays)
        self._drop_gone(self.queue)
