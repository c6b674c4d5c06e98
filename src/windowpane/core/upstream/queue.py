"""The update queue: for each key the newest tuple only, served by policy (Moga et al. 2009, section 4.1).

Everything is an array by key id, so the whole queue is exported and restored as arrays. A tuple is a number
(`row`) that means something to the caller. One consumer serves: what it takes it delivers before it takes
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints, Values
from windowpane.core.kernels import update_queue as steps
from windowpane.core.kernels.habits import new_habits
from windowpane.core.kernels.key_ranks import RANKS
from windowpane.core.kernels.kinetic import build, tournament
from windowpane.core.upstream.staleness import Staleness, forget, staleness_of
from windowpane.values.errors import BadQuery, BadState
from windowpane.values.freshness import Policy, policy_of

CODES = {
    Policy.FIFO: steps.FIFO,
    Policy.IN_PLACE: steps.IN_PLACE,
    Policy.LINECUTTING: steps.LINECUTTING,
    Policy.FRESHEST: steps.FRESHEST,
}
_SMALLEST = 16
_RENEWED = ("linear", "square")
"""What of a rank is found anew whenever keys enter the tournament; of ranks that change with time all is."""
_SHORTEST = 1e-12


@dataclass(frozen=True, slots=True)
class Taken:
    """What was served, in order: key ids, the newest row of each, and when its turn came."""

    ids: Ints
    rows: Ints
    times: Floats

    def __len__(self) -> int:
        return len(self.ids)


class KeyQueue:
    """An update queue over dense key ids (0, 1, 2, ...). Times are floats in one unit and never go back.

    `cost` is what processing one tuple takes, in the same unit; `learn` corrects it key by key.
    """

    __slots__ = ("_code", "_count", "_queue", "policy")

    def __init__(
        self, policy: Policy | str = Policy.FRESHEST, *, cost: float = 1.0, began: float = 0.0
    ) -> None:
        self.policy = policy_of(policy)
        if self.policy.keeps_all:
            raise BadQuery(f"policy {self.policy.value!r} keeps every tuple, so it is no update queue.")
        self._code = CODES[self.policy]
        self._count = 0
        self._queue = new_queue(_SMALLEST, cost, began)

    def __len__(self) -> int:
        """How many keys wait."""
        return int(self._queue.totals[steps.WAITING])

    @property
    def now(self) -> float:
        """The last time that the queue was told."""
        return float(self._queue.totals[steps.NOW])

    @property
    def keys(self) -> int:
        """How many keys were ever seen."""
        return self._count

    @property
    def costs(self) -> Floats:
        """What a service of each key takes, by key id, 0 where it is not known; it changes with the queue."""
        found: Floats = self._queue.keys["cost"][: self._count]
        return found

    @property
    def cost(self) -> float:
        """What a service takes on average, as far as it is known."""
        return float(self._queue.totals[steps.COST])

    def enqueue(self, ids: Ints, times: Floats, rows: Ints | None = None) -> None:
        """Take updates in arrival order; without `rows` their positions in this batch are used."""
        if not len(ids):
            return
        self._count = max(self._count, int(ids.max()) + 1)
        self._grow(self._count)
        rows = np.arange(len(ids)) if rows is None else rows
        steps.arrive_many(self._queue, self._code, ids, times, rows)

    def take(
        self, now: float, *, limit: int | None = None, budget: float = np.inf, costs: Floats | None = None
    ) -> Taken:
        """Serve keys in policy order: at most `limit`, and while the cost of the next fits into `budget`.

        With `costs` (by key id; by default what was learned) the turn of a key comes when those before it
        are done. Without a budget all are served now.
        """
        room = len(self) if limit is None else min(limit, len(self))
        ids, times = np.empty(room, np.int64), np.empty(room)
        known = steps.AS_LEARNED if costs is None else costs
        count = steps.serve_many(self._queue, float(now), float(budget), known, ids, times)
        return Taken(ids[:count], self._queue.keys.row[ids[:count]], times[:count])

    def deliver(self, ids: Ints, times: Floats) -> None:
        """The results of what was taken reached the application at these times."""
        steps.deliver_many(self._queue, ids, times)

    def learn(self, ids: Ints, costs: Floats, weight: float = steps.LEARN) -> None:
        """What processing these keys took; later services of a key count on it.

        `weight` is how much it counts against what was known of the key: 1 forgets that.
        """
        steps.learn_many(self._queue, ids, costs, weight)

    def waiting(self) -> Ints:
        """The ids of the keys that wait, in order of id."""
        return np.flatnonzero(self._queue.keys.first[: self._count] < np.inf)

    def waiting_rows(self) -> Ints:
        """The newest rows of the keys that wait."""
        rows: Ints = self._queue.keys.row[self.waiting()]
        return rows

    def oldest(self) -> float:
        """Since when the key waits that waits longest; infinity where none does."""
        return float(self._queue.keys.first[: self._count].min(initial=np.inf))

    def idle(self, since: float) -> Bools:
        """By key id: whether nothing of the key waits or is being processed, or came since a time."""
        keys = self._queue.keys[: self._count]
        return np.asarray((keys["first"] == np.inf) & (keys["pending"] == np.inf) & (keys["arrived"] < since))

    def keep(self, live: Bools, now: float) -> None:
        """Forget the keys that are not live, which must be idle, and number the others anew, in order."""
        forget(self._queue.keys, self._queue.totals, ~live, now)
        arrays = self.arrays()
        by_key = {name: arrays[name][live] for name, _ in self._by_key()}
        made = KeyQueue.restore(self.policy, arrays | by_key)
        self._count, self._queue = made._count, made._queue

    def staleness(self, now: float) -> Staleness:
        """Average staleness of each key seen, since the measurement began."""
        return staleness_of(self._queue.keys, self._queue.totals, self._count, now)

    def arrays(self) -> dict[str, Values]:
        """Everything that the queue knows: arrays by key id, and `habits` and `totals` of all keys."""
        return {name: column.copy() for name, column in self.views().items()}

    def views(self) -> dict[str, Values]:
        """As `arrays`, not copied: what they hold changes with the queue."""
        by_key = {name: column[: self._count] for name, column in self._by_key()}
        return by_key | {"habits": self._queue.habits, "totals": self._queue.totals}

    @classmethod
    def restore(cls, policy: Policy | str, arrays: Mapping[str, Values]) -> KeyQueue:
        """The queue that `arrays` was called on, with the same policy."""
        made = cls(policy)
        try:
            made.take_over(len(arrays["row"]), slice(None), arrays)
        except (KeyError, ValueError) as error:
            raise BadState(f"these are not the arrays of an update queue: {error!r} does not fit.") from error
        return made

    def take_over(self, count: int, ids: Ints | slice, arrays: Mapping[str, Values]) -> None:
        """Go on from what another queue knows of these of `count` keys, and of all together."""
        if count > len(self._queue.keys):
            self._queue = widened(self._queue, 2 * count)
        self._count = count
        for name, column in self._by_key():
            column[:count][ids] = arrays[name]
        if arrays["habits"].shape == self._queue.habits.shape:  # else of a version with other pieces
            self._queue.habits[:] = arrays["habits"]
        self._queue.totals[:] = arrays["totals"]
        self._queue = self._queue._replace(tree=tournament(len(self._queue.keys)))
        self._build()

    @classmethod
    def known(cls, policy: Policy | str, arrays: Mapping[str, Values]) -> KeyQueue:
        """A queue with this policy where the same keys wait, and as long, as in one that had another."""
        nothing = dict.fromkeys(RANKS.names or (), np.zeros(len(arrays["row"])))
        made = cls.restore(policy, {"habits": new_habits(), **arrays, **nothing})
        since = arrays["arrived" if made.policy is Policy.FIFO else "first"]
        waiting = made.waiting()
        steps.enter_all(made._queue, made._code, waiting[np.argsort(since[waiting], kind="stable")])
        made._queue = made._queue._replace(tree=tournament(len(made._queue.keys)))
        made._build()
        return made

    def _by_key(self) -> list[tuple[str, Values]]:
        """What is known of keys by name, without what follows from the rest."""
        renewed = (*_RENEWED, "constant") if self._code == steps.FRESHEST else _RENEWED
        return [
            (name, part[name])
            for part in (self._queue.keys, self._queue.ranks)
            for name in part.dtype.names or ()
            if name not in renewed
        ]

    def _grow(self, count: int) -> None:
        old = self._queue
        if count <= len(old.keys.row):
            return
        self._queue = widened(old, 2 * count)
        self._build()

    def _build(self) -> None:
        keys, ranks, habits, tree, totals = self._queue
        build(tree, ranks, habits, keys.first < np.inf, float(totals[steps.NOW]))


def new_queue(size: int, cost: float, began: float) -> steps.Queue:
    """A queue with room for this many keys, of which nothing is known."""
    keys = np.zeros(size, steps.KEYS).view(np.recarray)
    for name in ("first", "pending"):
        keys[name] = np.inf
    for name in ("arrived", "served", "delivered"):
        keys[name] = -np.inf
    totals = np.zeros(steps.TOTALS)
    totals[[steps.COST, steps.BEGAN, steps.MEASURED, steps.NOW, steps.CAME]] = cost, *[began] * 4
    totals[steps.PAUSE] = max(cost, _SHORTEST)
    ranks = np.zeros(size, RANKS).view(np.recarray)
    return steps.Queue(keys, ranks, new_habits(), tournament(size), totals)


def widened(queue: steps.Queue, size: int) -> steps.Queue:
    """The queue with room for more keys; nobody is in its tournament yet."""
    wide = new_queue(size, 0.0, 0.0)
    wide.keys[: len(queue.keys)], wide.ranks[: len(queue.ranks)] = queue.keys, queue.ranks
    return wide._replace(habits=queue.habits, totals=queue.totals)
