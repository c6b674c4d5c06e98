"""Brute force: the definitions of the update queue and of staleness, tuple by tuple, without a structure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass
class Trace:
    """Which key was served when, with which update, and when its result was delivered."""

    serves: list[tuple[float, int, int]] = field(default_factory=list)
    deliveries: list[tuple[float, int, int]] = field(default_factory=list)


def run(
    policy: str, times: Sequence[float], ids: Sequence[int], costs: Sequence[float], until: float
) -> Trace:
    """Serve updates by the rules of 5.2 and 5.3 (`fifo`, `in_place`, `linecutting`) or append FIFO."""
    trace = Trace()
    line: list[int] = []  # update numbers, head first; for update queues one for each key
    cut: set[int] = set()
    free, at, current = 0.0, 0, None
    while True:
        now = times[at] if at < len(times) else math.inf
        if current is not None and free < now:
            now = free
        if now > until:
            return trace
        while at < len(times) and times[at] == now:
            enqueue(policy, line, cut, at, times, ids, costs)
            at += 1
        if current is not None and free <= now:
            trace.deliveries.append((now, ids[current], current))
            current = None
        if current is None and line:
            current = line.pop(0)
            cut.discard(ids[current])
            trace.serves.append((now, ids[current], current))
            free = now + costs[ids[current]]


def enqueue(policy, line, cut, at, times, ids, costs):
    key = ids[at]
    place = next((i for i, number in enumerate(line) if ids[number] == key), None)
    if policy == "append" or place is None:
        line.append(at)
    elif policy == "fifo":
        line.pop(place)
        line.append(at)
    else:
        line[place] = at
    if policy == "linecutting" and key not in cut:
        past = {times[number] for number in range(at + 1) if ids[number] == key}
        if costs[key] * len(line) < mean_gap(sorted(past)):  # its rate is below 1 / (cost * residents)
            line.remove(at)
            line.insert(len(cut), at)
            cut.add(key)


def mean_gap(times: Sequence[float], forget: float = 1 / 256) -> float:
    """The mean time between the different times of updates, older ones counting less, from time 0 on.

    Summed up in order, as a gap that is rounded otherwise may lie on the other side of what it is held to.
    """
    total, weight = 0.0, 0.0
    for before, time in pairwise([0.0, *times]):
        total += time - before - forget * total
        weight += 1 - forget * weight
    return total / weight


def staleness(
    trace: Trace, times: Sequence[float], ids: Sequence[int], key: int, until: float, *, queue: bool
) -> float:
    """Average staleness of a key from 0 to `until`, by its definition at every piece between events."""
    covers = [(when, number) for when, k, number in (trace.serves if queue else trace.deliveries) if k == key]
    own = [
        (times[number], number) for number in range(len(ids)) if ids[number] == key and times[number] <= until
    ]
    events = sorted({0.0, until, *(t for t, _ in own), *(t for t, _ in covers if t <= until)})
    total = 0.0
    for a, b in pairwise(events):
        newest = max((number for when, number in covers if when <= a), default=-1)
        pending = [t for t, number in own if t <= a and number > newest]
        if pending:
            total += ((a - pending[0]) + (b - pending[0])) / 2 * (b - a)
    return total / until
