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

from windowpane.core.arrays import ALWAYS, NEVER, Ints
from windowpane.core.columns import read_time
from windowpane.core.keys import KeyIndex
from windowpane.core.lane_blocks import Blocks, Reader
from windowpane.core.snapshot import read_keys
from windowpane.core.upstream.append import AppendQueue, queue_of
from windowpane.core.upstream.change import changed, wanted
from windowpane.core.upstream.operators import last_of_key
from windowpane.core.upstream.queue import KeyQueue
from windowpane.core.upstream.recency import Looks
from windowpane.query import NUMBER, STANDS_FOR
from windowpane.spark.envelope import read_batches
from windowpane.spark.fresh_calls import AnyQueue, Calls, Clock, Pace, last_told, mean_cost, rising
from windowpane.spark.fresh_frames import frame_of, table_of
from windowpane.spark.fresh_store import PIECE, Pieces, Touched, joined, read_rows
from windowpane.spark.newest import Newest
from windowpane.spark.queue_spec import Notes, QueueSpec, staleness_table, stalest_keys
from windowpane.spark.zones import UTC, in_zone
from windowpane.values.freshness import SWITCH, Policy

_GUESS, _SHORTEST = 0.001, 1e-9
"""Seconds that a row takes before anything is known of it, and that a call takes at least."""
_FORGET = 3600.0
"""Seconds after which an idle key may be forgotten."""


@dataclass
class Fresh:
    """One queue in one bucket; `columns` are those that blocks by key are stored with."""

    spec: QueueSpec
    types: tuple[tuple[str, pa.DataType], ...]
    queue: AnyQueue | None = None
    held: pa.Table | None = None
    numbers: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    next: int = 0
    pace: Pace = field(default_factory=Pace)
    touched: Touched = field(default_factory=Touched)
    looks: Looks = field(default_factory=lambda: Looks(_FORGET, -np.inf))
    ticks: Clock = perf_counter
    columns: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        kinds = dict(self.types)
        self.index = KeyIndex(self.spec.keys, [kinds[name] for name in self.spec.keys])
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
            self.touched.all = True

    def _changed(self, queue: AnyQueue, policy: Policy) -> AnyQueue:
        """The queue under another policy, with what waits."""
        self.touched.all = True
        none = np.empty(0, np.int64)
        if self.held is None or self.held.num_rows == 0:
            return changed(queue, policy, (none, none))
        ids = self.index.encode([self.held[name] for name in self.spec.keys], self.held.num_rows)
        time = read_time(self.held[self.spec.time], self.spec.time)[0]
        order = self.spec.order(self.held, time)
        at = last_of_key(ids, *order)
        at = at[~self.newest.older(ids, order)[at]]
        return changed(queue, policy, (ids[at], self.numbers[at]))

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
        rows = np.arange(self.next, self.next + len(at))
        self.next += len(at)
        shed = self._let_wait(queue, ids[at], now, rows)
        kept = at[~np.isin(rows, shed)]  # nobody gets those that were shed
        self.newest.rise(ids[kept], tuple(part[kept] for part in order))
        self.touched.note_keys(ids)
        # With a key the queue learns of those before it too, of which only outdated rows came so far.
        self.touched.note_keys(np.arange(known, queue.keys))
        self.touched.note_rows(rows)
        notes.lost += notes.updates - notes.outdated - (len(queue) - before)
        some = table.take(pa.array(at))
        self.held = some if self.held is None else joined([self.held, some])
        self.numbers = np.append(self.numbers, rows)
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
            self.touched.note_keys(ids)
            self._drop_gone(queue)
        return answers, ids

    def _call(self, rows: Ints) -> pa.Table:
        assert self.held is not None
        at = np.searchsorted(self.numbers, rows)
        given = frame_of(self.spec, self.held.take(pa.array(at)))
        return table_of(self.spec, self.spec.function(given))

    def _drop_gone(self, queue: AnyQueue) -> None:
        """Forget rows that were served or overwritten."""
        if self.held is None:
            return
        keep = np.isin(self.numbers, queue.waiting_rows())
        if not bool(keep.all()):
            self.touched.note_rows(self.numbers[~keep])
            self.held = self.held.filter(pa.array(keep)).combine_chunks()
            self.numbers = self.numbers[keep]

    def store(self, number: int, blocks: Blocks) -> dict[str, Any]:
        """Put the state into blocks; gives what is stored beside them."""
        self._number_anew()
        arrays = {} if self.queue is None else self.queue.views()
        small = {name: arrays.pop(name).tolist() for name in ("totals", "habits") if name in arrays}
        line = {name: arrays.pop(name) for name in list(arrays) if name.startswith("line ")}
        if list(arrays) != self.columns:  # those that are stored are of another policy or version
            self.columns, self.touched.all = list(arrays), True
        put = Pieces(f"queue {number}", blocks, self.touched)
        put.index(self.index)
        for name, known in self.newest.parts().items():
            put.arrays(name, {name: known}, by_key=True)
        put.held(self.held, self.numbers)
        # The place of a key's last tuple in the line is told from its head, which moves.
        put.arrays("by key", arrays, by_key=isinstance(self.queue, KeyQueue))
        put.arrays("line", line, by_key=False)
        self.touched.stored(len(self.index), put.digests)
        return {
            "parts": put.parts,
            "digests": put.digests,
            "policy": None if self.queue is None else self.queue.policy.value,
            "small": small,
            "columns": {"by key": self.columns, "line": list(line)},
            "next": self.next,
            "floor": self.newest.floor,
            "pace": astuple(self.pace),
        }

    def _number_anew(self) -> None:
        """Where rows that wait have become few among their numbers, give them new ones: fewer pieces."""
        pieces = len(np.unique(self.numbers // PIECE))
        if self.queue is None or pieces <= 16 + 2 * len(self.numbers) // PIECE:
            return
        numbers = np.arange(len(self.numbers))
        self.queue.renumber(self.numbers, numbers)
        self.numbers, self.next, self.touched.all = numbers, len(numbers), True

    def restore(self, number: int, header: Mapping[str, Any], blocks: Mapping[str, bytes]) -> None:
        """Go on from what `store` gave."""
        read = Reader(f"queue {number}", blocks, header)
        self.index = read_keys(self.index.names, self.index.types, read)
        self.next, self.pace = int(header["next"]), Pace(*header.get("pace", ()))
        parts = {name: read.arrays(name, {name: none})[name] for name, none in self.newest.parts().items()}
        self.newest.restore(int(header["floor"]), parts)
        held = read_rows(block for _, block in read.blocks("held"))
        if held is not None:
            self.numbers, self.held = held[NUMBER].to_numpy(), held.drop_columns([NUMBER])
        if header["policy"] is not None:
            arrays = {name: np.array(values) for name, values in header["small"].items()}
            for part, columns in header["columns"].items():
                arrays |= read.arrays(part, dict.fromkeys(columns, np.empty(0, np.int64)))
            kind = AppendQueue if Policy(header["policy"]).keeps_all else KeyQueue
            self.queue, self.columns = kind.restore(header["policy"], arrays), header["columns"]["by key"]
        self.touched.stored(len(self.index), header["digests"])
