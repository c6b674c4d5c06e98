"""A queue goes on under another policy: what is known of the keys stays, and so does what waits."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Ints, Values
from windowpane.core.kernels.update_queue import BEGAN, KEYS, WAITING
from windowpane.core.upstream.append import AppendQueue
from windowpane.core.upstream.queue import KeyQueue
from windowpane.values.freshness import Policy, policy_of


def changed(
    queue: KeyQueue | AppendQueue, policy: Policy | str, newest: tuple[Ints, Ints]
) -> KeyQueue | AppendQueue:
    """The queue with this policy; `newest` has the key ids that wait and their newest rows.

    All that was taken must be delivered. A queue that kept all rows keeps only these if the policy says so.
    """
    arrays, chosen = queue.arrays(), policy_of(policy)
    if isinstance(queue, KeyQueue):
        return _lined_up(arrays, chosen) if chosen.keeps_all else KeyQueue.known(chosen, arrays)
    return AppendQueue.restore(chosen, arrays) if chosen.keeps_all else _newest_only(arrays, chosen, *newest)


def _newest_only(arrays: dict[str, Values], policy: Policy, ids: Ints, rows: Ints) -> KeyQueue:
    """From a line of tuples, keys that wait with their newest."""
    by_key = {name: arrays[name] for name in KEYS.names or ()} | {"totals": arrays["totals"]}
    gone = np.ones(len(by_key["row"]), np.bool_)
    gone[ids] = False
    by_key["row"][ids] = rows
    for name in ("first", "pending"):
        by_key[name][gone] = np.inf
    # Such a queue does not learn how often keys update: all that is known is how many updates came.
    span = by_key["arrived"] - by_key["totals"][BEGAN]
    unknown = (by_key["weight"] <= 0.0) & (by_key["updates"] > 0)
    by_key["gaps"][unknown] = (span / np.maximum(by_key["updates"], 1))[unknown]
    by_key["weight"][unknown] = 1.0
    by_key["totals"][WAITING] = len(ids)
    return KeyQueue.known(policy, by_key)


def _lined_up(arrays: dict[str, Values], policy: Policy) -> AppendQueue:
    """From keys that wait, a line of their newest tuples in order of arrival."""
    waiting = np.flatnonzero(arrays["first"] < np.inf)
    ids = waiting[np.argsort(arrays["arrived"][waiting], kind="stable")]
    last = np.full(len(arrays["row"]), -1, np.int64)
    last[ids] = np.arange(len(ids))
    line = {
        "ids": ids,
        "rows": arrays["row"][ids],
        "times": arrays["arrived"][ids],
        "kept": np.ones(len(ids), np.bool_),
        "following": np.full(len(ids), -1, np.int64),
    }
    return AppendQueue.restore(
        policy, {**arrays, "last": last} | {f"line {name}": column for name, column in line.items()}
    )
