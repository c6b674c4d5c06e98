"""The append queue, with or without random load shedding: what update queues are compared with.

It has the interface of `KeyQueue`. A tuple that was shed makes its key stale as any other does.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints, Values
from windowpane.core.kernels import append_queue as steps
from windowpane.core.kernels import update_queue as shared
from windowpane.core.upstream.queue import KeyQueue, Taken, new_queue, widened
from windowpane.core.upstream.staleness import Staleness, forget, staleness_of
from windowpane.values.freshness import Policy, policy_of

HEADROOM = 0.95
"""The load that random shedding leaves: at exactly 1 the queue would still grow."""
LINE = ("ids", "rows", "times", "kept")
"""What is known of the tuples in the line, but for what follows from their order."""
_SMALLEST = 16


class AppendQueue:
    """Every tuple of every key in arrival order; with the policy `shed` some are dropped at random."""

    __slots__ = ("_count", "_last", "_line", "_queue", "_rng", "policy")

    def __init__(
        self, policy: Policy | str = Policy.APPEND, *, cost: float = 1.0, began: float = 0.0, seed: int = 0
    ) -> None:
        self.policy = policy_of(policy)
        self._count = 0
        self._queue = new_queue(_SMALLEST, cost, began)
        self._last = np.full(_SMALLEST, -1, np.int64)
        self._line = _line(_SMALLEST)
        self._rng = np.random.default_rng([seed, *b"shed"])

    def __len__(self) -> int:
        """How many tuples wait."""
        return int(self._queue.totals[shared.WAITING])

    @property
    def now(self) -> float:
        """The last time that the queue was told."""
        return float(self._queue.totals[shared.NOW])

    @property
    def keys(self) -> int:
        """How many keys were ever seen."""
        return self._count

    def enqueue(self, ids: Ints, times: Floats, rows: Ints | None = None, *, whole: bool = False) -> Ints:
        """Take tuples in arrival order; the rows of those that were shed: none where `whole`, for `thin`."""
        if not len(ids):
            return np.empty(0, np.int64)
        rows = np.arange(len(ids)) if rows is None else rows
        self._make_room(int(ids.max()) + 1, len(ids))
        shed = self.policy is Policy.SHED and not whole
        chances = self._rng.random(len(ids)) if shed else np.zeros(len(ids))
        at = int(self._line.ends[steps.TAIL])
        keys, totals = self._queue.keys, self._queue.totals
        headroom = HEADROOM if shed else np.inf
        steps.join_line(keys, totals, self._line, self._last, ids, times, rows, chances, headroom)
        return rows[~self._line.kept[at : at + len(ids)]]

    def thin(self, weights: Floats, room: float) -> Ints:
        """Shed at random what is beyond the room, as if it had been shed when it came; these rows.

        `weights` has what a tuple takes of the room, by key id. This is for consumers with a budget for each
        batch: they need to know no load.
        """
        begin, end = self._line.ends
        kept = self._line.kept[begin:end]
        drawn = self._rng.permutation(np.flatnonzero(kept))
        fits = np.cumsum(weights[self._line.ids[begin:end][drawn]]) <= room
        fits[:1] = True  # there is time for one, however dear it is
        kept[drawn[~fits]] = False
        self._queue.totals[shared.WAITING] = np.count_nonzero(fits)
        shed: Ints = self._line.rows[begin:end][drawn[~fits]]
        steps.close_ranks(self._line, self._last)
        return shed

    def take(
        self, now: float, *, limit: int | None = None, budget: float = np.inf, costs: Floats | None = None
    ) -> Taken:
        """Serve tuples in arrival order: at most `limit`, and while the next fits into `budget`."""
        room = len(self) if limit is None else min(limit, len(self))
        out, times = np.empty(room, np.int64), np.empty(room)
        known = shared.AS_LEARNED if costs is None else costs
        keys, totals = self._queue.keys, self._queue.totals
        when = (float(now), float(budget))
        count = steps.leave_line(keys, totals, self._line, self._last, *when, known, out, times)
        return Taken(self._line.ids[out[:count]], self._line.rows[out[:count]], times[:count])

    def deliver(self, ids: Ints, times: Floats) -> None:
        """The results of what was taken reached the application at these times."""
        shared.deliver_many(self._queue, ids, times)

    def learn(self, ids: Ints, costs: Floats, weight: float = shared.LEARN) -> None:
        """What processing these keys took; it tells how much must be shed."""
        shared.learn_many(self._queue, ids, costs, weight)

    def idle(self, since: float) -> Bools:
        """By key id: whether nothing of the key waits or is being processed, or came since a time.

        A key whose last tuple was shed would be stale for ever: it is idle too, else keys that come but once
        would be known for ever. Where one was taken before that, whoever has it must say so until then.
        """
        keys, (head, tail) = self._queue.keys[: self._count], self._line.ends
        waits = np.zeros(self._count, np.bool_)
        waits[self._line.ids[head:tail][self._line.kept[head:tail]]] = True
        shed = keys["first"] < np.inf
        covered = ~waits & (shed | (keys["pending"] == np.inf))
        return np.asarray(covered & (keys["arrived"] < since))

    def keep(self, live: Bools, now: float) -> None:
        """Forget the keys that are not live, which must be idle, and number the others anew, in order."""
        forget(self._queue.keys, self._queue.totals, ~live, now)
        steps.close_ranks(self._line, self._last)  # nothing stays in the line of keys whose tuples were shed
        arrays = self.arrays()
        by_key = {name: arrays[name][live] for name in self._queue.keys.dtype.names or ()}
        ids = (np.cumsum(live) - 1)[arrays["line ids"]]
        made = AppendQueue.restore(self.policy, arrays | by_key | {"line ids": ids})
        self._count, self._queue, self._last, self._line = made._count, made._queue, made._last, made._line

    def staleness(self, now: float) -> Staleness:
        """Average staleness of each key seen, since the measurement began."""
        return staleness_of(self._queue.keys, self._queue.totals, self._count, now)

    @property
    def costs(self) -> Floats:
        """What a service of each key takes, by key id, 0 where it is not known; it changes with the queue."""
        found: Floats = self._queue.keys["cost"][: self._count]
        return found

    @property
    def cost(self) -> float:
        """What a service takes on average, as far as it is known."""
        return float(self._queue.totals[shared.COST])

    def newest(self) -> tuple[Ints, Ints]:
        """The keys of which a tuple waits, and the row of the newest of each; none may have been shed."""
        ids = np.flatnonzero(self._last[: self._count] >= 0)
        return ids, self._line.rows[self._last[ids]]

    def waiting_rows(self) -> Ints:
        """The rows that wait, in arrival order."""
        head, tail = self._line.ends
        return self._line.rows[head:tail][self._line.kept[head:tail]]

    def oldest(self) -> float:
        """Since when the tuple waits that waits longest; infinity where none does."""
        head, tail = self._line.ends
        return float(self._line.times[head:tail][self._line.kept[head:tail]].min(initial=np.inf))

    def arrays(self) -> dict[str, Values]:
        """Everything that the queue knows: arrays by key id, the line, and `totals` of all keys."""
        return {name: column.copy() for name, column in self.views().items()}

    def views(self) -> dict[str, Values]:
        """As `arrays`, not copied where that can be: what they hold changes with the queue."""
        head, tail = self._line.ends
        found: dict[str, Values] = {
            name: self._queue.keys[name][: self._count] for name in self._queue.keys.dtype.names or ()
        }
        for name in LINE:
            found[f"line {name}"] = getattr(self._line, name)[head:tail]
        return found | {"totals": self._queue.totals}

    @classmethod
    def restore(cls, policy: Policy | str, arrays: Mapping[str, Values]) -> AppendQueue:
        """The queue that `arrays` was called on, with the same policy."""
        made = cls(policy, seed=int(arrays["totals"][shared.ORDER]))
        made.take_over(len(arrays["row"]), slice(None), arrays)
        return made

    def take_over(self, count: int, ids: Ints | slice, arrays: Mapping[str, Values]) -> None:
        """Go on from what another queue knows of these of `count` keys, and of all; with its line."""
        waiting = len(arrays["line ids"])
        self._line.ends[:], self._last[:] = 0, -1
        self._make_room(max(count, 1), waiting)
        self._count = count
        for name in self._queue.keys.dtype.names or ():
            self._queue.keys[name][:count][ids] = arrays[name]
        self._queue.totals[:] = arrays["totals"]
        for name in LINE:
            getattr(self._line, name)[:waiting] = arrays[f"line {name}"]
        self._line.ends[:] = 0, waiting
        steps.close_ranks(self._line, self._last)  # which tells the next and the last tuple of each key

    def _make_room(self, keys: int, tuples: int) -> None:
        self._count = max(self._count, keys)
        if keys > len(self._queue.keys):
            self._queue = widened(self._queue, 2 * keys)
            self._last = np.concatenate([self._last, np.full(2 * keys - len(self._last), -1)])
        if self._line.ends[steps.TAIL] + tuples <= len(self._line.ids):
            return
        steps.close_ranks(self._line, self._last)
        waiting = int(self._line.ends[steps.TAIL])
        if 2 * (waiting + tuples) > len(self._line.ids):  # at least half is free, so moving stays rare
            old, self._line = self._line, _line(4 * (waiting + tuples))
            for column, before in zip(self._line, old, strict=True):
                column[: len(before)] = before


def queue_of(
    policy: Policy | str, *, cost: float = 1.0, began: float = 0.0, seed: int = 0
) -> KeyQueue | AppendQueue:
    """The queue for any policy."""
    if policy_of(policy).keeps_all:
        return AppendQueue(policy, cost=cost, began=began, seed=seed)
    return KeyQueue(policy, cost=cost, began=began)


def _line(size: int) -> steps.Line:
    ids, rows, following = (np.zeros(size, np.int64) for _ in range(3))
    return steps.Line(ids, rows, np.zeros(size), np.zeros(size, np.bool_), following, np.zeros(2, np.int64))
