"""A queue goes on under another policy: what is known of the keys stays, and so does what waits.

`wanted` says when a queue that switches by load does so, between append and update semantics (Moga et al.
2009, section 8, as future work).
"""

from __future__ import annotations

import math

import numpy as np

from windowpane.core.arrays import Bools, Ints, Values
from windowpane.core.kernels.update_queue import BEGAN, KEYS, WAITING
from windowpane.core.upstream.append import LINE, AppendQueue
from windowpane.core.upstream.queue import KeyQueue
from windowpane.values.freshness import Policy, policy_of

_NONE: Ints = np.empty(0, np.int64)


class Load:
    """The work that comes for each unit of time; work of more than `over` ago counts little."""

    __slots__ = ("_came", "_load", "_over")

    def __init__(self, over: float, began: float) -> None:
        self._over, self._came, self._load = over, began, 0.0

    def add(self, work: float, now: float) -> float:
        """Count work that comes now; the load with it."""
        self._load = self._load * math.exp((self._came - now) / self._over) + work / self._over
        self._came = now
        return self._load


def wanted(queue: KeyQueue | AppendQueue, *, behind: float, cost: float, load: float = 0.0) -> Policy:
    """The policy that a queue which switches by load should have now: `append` or `freshest`.

    It keeps every tuple until the consumer falls behind: what waits, at a `cost` for each, takes longer than
    `behind`. Then it keeps the newest of each key, until none waits and less work comes than can be done.
    """
    if isinstance(queue, KeyQueue):
        return Policy.FRESHEST if len(queue) or load >= 1.0 else Policy.APPEND
    return Policy.FRESHEST if len(queue) * cost > behind else Policy.APPEND


def changed(
    queue: KeyQueue | AppendQueue, policy: Policy | str, newest: tuple[Ints, Ints], held: Ints = _NONE
) -> KeyQueue | AppendQueue:
    """The queue with this policy; `newest` has the key ids that wait and their newest rows.

    `held` has the key ids whose rows were taken and are not delivered yet. A queue that kept all rows keeps
    only the newest if the policy says so.
    """
    arrays, chosen = queue.arrays(), policy_of(policy)
    if isinstance(queue, KeyQueue):
        return _lined_up(arrays, chosen) if chosen.keeps_all else KeyQueue.known(chosen, arrays)
    if chosen.keeps_all:
        return AppendQueue.restore(chosen, arrays)
    return _newest_only(arrays, chosen, newest, held)


def _newest_only(
    arrays: dict[str, Values], policy: Policy, newest: tuple[Ints, Ints], held: Ints
) -> KeyQueue:
    """From a line of tuples, keys that wait with their newest."""
    ids, rows = newest
    by_key = {name: arrays[name] for name in KEYS.names or ()} | {"totals": arrays["totals"]}
    gone = np.ones(len(by_key["row"]), np.bool_)
    gone[ids] = False
    by_key["row"][ids] = rows
    by_key["first"][gone] = np.inf
    by_key["pending"][_overtaken(arrays, ids, held)] = np.inf
    # Such a queue does not learn how often keys update: all that is known is how many updates came.
    span = by_key["arrived"] - by_key["totals"][BEGAN]
    unknown = (by_key["weight"] <= 0.0) & (by_key["updates"] > 0)
    by_key["gaps"][unknown] = (span / np.maximum(by_key["updates"], 1))[unknown]
    by_key["weight"][unknown] = 1.0
    by_key["totals"][WAITING] = len(ids)
    return KeyQueue.known(policy, by_key)


def _overtaken(arrays: dict[str, Values], ids: Ints, held: Ints) -> Bools:
    """Of which keys tuples wait, but only older ones than were delivered: with those gone they are fresh.

    A key whose last tuple was shed stays stale, as under shedding, until a later one is delivered.
    """
    found = np.zeros(len(arrays["row"]), np.bool_)
    kept, last = arrays["line kept"], np.full(len(found), -1)
    np.maximum.at(last, arrays["line ids"], np.arange(len(kept)))
    found[arrays["line ids"][kept]] = True
    shed = np.flatnonzero(last >= 0)
    found[shed[~kept[last[shed]]]] = False
    found[ids] = found[held] = False
    return found


def _lined_up(arrays: dict[str, Values], policy: Policy) -> AppendQueue:
    """From keys that wait, a line of their newest tuples in order of arrival."""
    waiting = np.flatnonzero(arrays["first"] < np.inf)
    ids = waiting[np.lexsort((arrays["row"][waiting], arrays["arrived"][waiting]))]
    columns = ids, arrays["row"][ids], arrays["arrived"][ids], np.ones(len(ids), np.bool_)
    line = {f"line {name}": column for name, column in zip(LINE, columns, strict=True)}
    return AppendQueue.restore(policy, arrays | line)
