"""The update queue: for each key the newest tuple only, served by policy (Moga et al. 2009, section 4.1).

Everything is an array by key id, so the whole queue is exported and restored as arrays. A tuple is a number
(`row`) that means something to the caller. One consumer serves: what it takes it delivers before it takes
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Floats, Ints, Values
from windowpane.core.kernels import update_queue as steps
from windowpane.core.kernels.kinetic import Ranks, build, tournament
from windowpane.core.upstream.staleness import Staleness, staleness_of
from windowpane.values.errors import BadQuery, BadState
from windowpane.values.freshness import Policy, policy_of

CODES = {
    Policy.FIFO: steps.FIFO,
    Policy.IN_PLACE: steps.IN_PLACE,
    Policy.LINECUTTING: steps.LINECUTTING,
    Policy.FRESHEST: steps.FRESHEST,
}
_UNKNOWN = dict.fromkeys(("arrived", "served", "delivered"), -np.inf) | {
    "first": np.inf,
    "pending": np.inf,
}
_WHOLE = ("row", "updates", "serves", "idles")
_SMALLEST = 16


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

    __slots__ = ("_code", "_count", "_keys", "_ranks", "_totals", "_tree", "policy")

    def __init__(
        self, policy: Policy | str = Policy.FRESHEST, *, cost: float = 1.0, began: float = 0.0
    ) -> None:
        self.policy = policy_of(policy)
        if self.policy.keeps_all:
            raise BadQuery(f"policy {self.policy.value!r} keeps every tuple, so it is no update queue.")
        self._code = CODES[self.policy]
        self._count = 0
        self._totals = empty_totals(cost, began)
        self._keys, self._ranks = empty_keys(_SMALLEST), empty_ranks(_SMALLEST)
        self._tree = tournament(_SMALLEST)

    def __len__(self) -> int:
        """How many keys wait."""
        return int(self._totals[steps.WAITING])

    @property
    def keys(self) -> int:
        """How many keys were ever seen."""
        return self._count

    @property
    def looked(self) -> int:
        """How many keys were looked at so far, to place keys and to find those to serve."""
        return int(self._tree.looked[0])

    def enqueue(self, ids: Ints, times: Floats, rows: Ints | None = None) -> None:
        """Take updates in arrival order; without `rows` their positions in this batch are used."""
        if not len(ids):
            return
        self._count = max(self._count, int(ids.max()) + 1)
        self._grow(self._count)
        rows = np.arange(len(ids)) if rows is None else rows
        steps.arrive_many(self._keys, self._ranks, self._tree, self._totals, self._code, ids, times, rows)

    def take(
        self, now: float, *, limit: int | None = None, budget: float = np.inf, costs: Floats | None = None
    ) -> Taken:
        """Serve keys in policy order: at most `limit`, and while the cost of the next fits into `budget`.

        With `costs` (by key id; by default what was learned) the turn of a key comes when those before it
        are done. Without a budget all are served now.
        """
        room = len(self) if limit is None else min(limit, len(self))
        ids, times = np.empty(room, np.int64), np.empty(room)
        if not np.isfinite(budget):
            costs = np.zeros(len(self._keys.cost))
        elif costs is None:
            costs = np.where(self._keys.cost > 0.0, self._keys.cost, self._totals[steps.COST])
        state = (self._keys, self._ranks, self._tree, self._totals)
        count = steps.serve_many(*state, float(now), float(budget), costs, ids, times)
        return Taken(ids[:count], self._keys.row[ids[:count]], times[:count])

    def deliver(self, ids: Ints, times: Floats) -> None:
        """The results of what was taken reached the application at these times."""
        steps.deliver_many(self._keys, self._totals, ids, times)

    def learn(self, ids: Ints, costs: Floats) -> None:
        """What processing these keys took; later services of a key count on it."""
        steps.learn_many(self._keys, self._totals, ids, costs)

    def waiting(self) -> Ints:
        """The ids of the keys that wait, in order of id."""
        return np.flatnonzero(self._keys.first[: self._count] < np.inf)

    def measure_from(self, now: float) -> None:
        """Forget the staleness so far and measure from now on."""
        self._totals[steps.MEASURED] = now
        self._keys.queue_area[:] = 0.0
        self._keys.application_area[:] = 0.0

    def staleness(self, now: float) -> Staleness:
        """Average staleness of each key seen, since the measurement began."""
        return staleness_of(self._keys, self._totals, self._count, now)

    def arrays(self) -> dict[str, Values]:
        """Everything that the queue knows, as arrays by key id, and `totals`."""
        columns = self._keys._asdict() | self._ranks._asdict()
        return {name: column[: self._count].copy() for name, column in columns.items()} | {
            "totals": self._totals.copy()
        }

    @classmethod
    def restore(cls, policy: Policy | str, arrays: Mapping[str, Values]) -> KeyQueue:
        """The queue that `arrays` was called on, with the same policy."""
        queue = cls(policy)
        try:
            queue._totals[:] = arrays["totals"]
            queue._count = len(arrays["row"])
            queue._grow(queue._count)
            for columns in (queue._keys, queue._ranks):
                for name, column in columns._asdict().items():
                    column[: queue._count] = arrays[name]
        except (KeyError, ValueError) as error:
            raise BadState(f"these are not the arrays of an update queue: {error!r} does not fit.") from error
        queue._build()
        return queue

    def _grow(self, count: int) -> None:
        if count <= len(self._keys.row):
            return
        keys, ranks = empty_keys(2 * count), empty_ranks(2 * count)
        for new, old in ((keys, self._keys), (ranks, self._ranks)):
            for column, before in zip(new, old, strict=True):
                column[: len(before)] = before
        self._keys, self._ranks = keys, ranks
        self._build()

    def _build(self) -> None:
        self._tree = tournament(len(self._keys.row))._replace(looked=self._tree.looked)
        build(self._tree, self._ranks, self._keys.first < np.inf, float(self._totals[steps.NOW]))


def empty_keys(size: int) -> steps.Keys:
    """Columns for keys of which nothing is known."""
    columns = {name: np.full(size, _UNKNOWN.get(name, 0.0)) for name in steps.Keys._fields}
    return steps.Keys(**columns | {name: np.zeros(size, np.int64) for name in _WHOLE})


def empty_ranks(size: int) -> Ranks:
    """Ranks for keys that never waited."""
    return Ranks(*(np.zeros(size) for _ in Ranks._fields))


def empty_totals(cost: float, began: float) -> Floats:
    """The numbers of a queue as a whole, before anything came."""
    totals = np.zeros(steps.TOTALS)
    totals[[steps.COST, steps.BEGAN, steps.MEASURED, steps.NOW]] = cost, began, began, began
    return totals
