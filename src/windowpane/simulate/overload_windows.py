"""An overloaded window operator in virtual time: LAZY, EAGER, and the append windows to compare with.

As in `overload`, the unit of time is the mean time between two tuples of the stream. Windows count tuples of
their key, or are of event time, which is then the whole unit in which a tuple comes. A tuple costs `cost` for
every window that it is processed for.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.kernels.ranks import number_tuples
from windowpane.core.kernels.update_window_runs import overload
from windowpane.core.upstream.append import HEADROOM
from windowpane.core.upstream.memory import PagePool
from windowpane.core.upstream.served import new_delivered, new_dequeued
from windowpane.core.upstream.staleness import Staleness
from windowpane.core.upstream.windows import UpdateWindow, WindowQueue
from windowpane.simulate.overload import Arrivals, span_of
from windowpane.values.errors import BadQuery, BadWindow, OutOfMemory
from windowpane.values.freshness import Policy

_PAGE_BYTES = 4096
_BLOCK = 8


@dataclass(frozen=True, slots=True)
class WindowOutcome:
    """Which windows were delivered, in order, and what that means for the application."""

    keys: Ints
    windows: Ints
    committed: Floats
    done: Floats
    processed: int
    """How often a tuple was processed for a window."""
    most_held: int
    """The most tuples of one key that waited."""
    staleness: Staleness


def simulate_windows(
    window: UpdateWindow,
    stream: Arrivals,
    cost: float,
    *,
    policy: Policy | str = Policy.IN_PLACE,
    measured: float = 0.0,
    until: float | None = None,
) -> WindowOutcome:
    """Serve the newest window of each key by policy."""
    begin, end = span_of(stream, measured, until)
    _need_cost(cost)
    places = np.floor(stream.times).astype(np.int64)
    most = _most_at_once(places, window.size + window.slide) if window.timed else window.most_tuples
    # The tuples of a key may leave its first and its last block nearly empty.
    blocks = min(stream.keys * (most // _BLOCK + 2), len(places) + 2 * stream.keys)
    pages = blocks * 8 * _BLOCK // _PAGE_BYTES + 2
    queue = WindowQueue(window, PagePool(pages, _PAGE_BYTES), 1, policy=policy, cost=cost, block=_BLOCK)
    queue.grow(stream.keys)
    queue.measure_from(begin)
    done, work = new_delivered(len(places)), new_dequeued(most, 1)
    rows = places.reshape(-1, 1)
    processed = overload(queue.machine, work, done, stream.ids, rows, stream.times, float(cost), end)
    if processed < 0:
        raise OutOfMemory(f"{pages} pages did not hold the window buffers of {stream.keys} keys.")
    n = int(done.filled[0])
    return WindowOutcome(
        done.keys[:n], done.windows[:n], done.committed[:n], done.times[:n],
        processed, queue.most_held, queue.staleness(end),
    )  # fmt: skip


def _need_cost(cost: float) -> None:
    """By a cost below 0 windows would be given before they came."""
    if not isinstance(cost, Real) or not 0.0 <= float(cost) < np.inf:
        raise BadQuery(f"cost={cost!r}: give a time of at least 0, the same for every tuple.")


def _most_at_once(places: Ints, length: int) -> int:
    """How many tuples there are in the fullest stretches of this length, two for what a key may hold."""
    ends = np.searchsorted(places, places + length, side="left")
    return 2 * int((ends - np.arange(len(places))).max(initial=1))


def simulate_append_windows(
    window: UpdateWindow,
    stream: Arrivals,
    cost: float,
    *,
    shed: bool = False,
    measured: float = 0.0,
    until: float | None = None,
    seed: int = 0,
) -> WindowOutcome:
    """Process every window of every key, or with `shed` a random share of them that the operator can take.

    Tuples wait in arrival order. One that lies in several open windows is processed for each of them. Only
    for windows that count tuples.
    """
    if window.timed:
        raise BadWindow("append windows of event time are not simulated. Use windows that count tuples.")
    begin, end = span_of(stream, measured, until)
    _need_cost(cost)
    counts = np.bincount(stream.ids, minlength=stream.keys)
    started = -(-counts // window.slide)
    key = np.repeat(np.arange(stream.keys), started)
    first = np.cumsum(started) - started
    number = np.arange(len(key)) - first[key]
    kept: Bools = np.ones(len(key), np.bool_)
    if shed and cost > 0.0:
        load = cost * window.size * len(key) / max(stream.span, cost)
        kept = np.random.default_rng([seed, *b"windows"]).random(len(key)) * load < HEADROOM
    opened = _windows_of_tuples(window, stream, kept, first)
    work = np.cumsum(opened * cost)
    finished = work + np.maximum.accumulate(stream.times - (work - opened * cost))
    closer = _closing_tuples(window, stream, key, number)
    whole = kept & (closer < len(stream.ids))
    key, number, closer = key[whole], number[whole], closer[whole]
    order = np.argsort(closer)
    order = order[finished[closer[order]] <= end]
    keys, windows, at = key[order], number[order], closer[order]
    return WindowOutcome(
        keys, windows, stream.times[at], finished[at],
        int(opened[finished <= end].sum()), 0,
        window_staleness(window, stream, (keys, windows, finished[at]), begin, end),
    )  # fmt: skip


def window_staleness(
    window: UpdateWindow,
    stream: Arrivals,
    delivered: tuple[Ints, Ints, Floats],
    measured: float,
    until: float,
) -> Staleness:
    """Application staleness of windows that count, from what was delivered: keys, windows, times in order.

    At any time it is the age of the first window after the last delivered one that has arrived in full.
    Queue staleness is not known (NaN).
    """
    keys, windows, times = delivered
    unknown = np.full(stream.keys, np.nan)
    span = until - measured
    if not span > 0.0:
        return Staleness(unknown, np.zeros(stream.keys), 0.0)
    everyone = np.arange(stream.keys)
    # Before the first delivery the first window of a key counts.
    key = np.concatenate([everyone, keys])
    following = np.concatenate([np.zeros(stream.keys, np.int64), windows + 1])
    begin = np.concatenate([np.full(stream.keys, -np.inf), times])
    order = np.argsort(key, kind="stable")
    key, following, begin = key[order], following[order], begin[order]
    last = np.append(key[1:] != key[:-1], True)
    end = np.where(last, until, np.append(begin[1:], until))
    closer = _closing_tuples(window, stream, key, following)
    since = np.append(stream.times, np.inf)[closer]
    low = np.minimum(np.maximum(np.maximum(begin, since), measured), end)
    known = since < np.inf
    area = np.zeros(len(key))
    area[known] = 0.5 * ((end - since)[known] ** 2 - (low - since)[known] ** 2)
    area[low >= end] = 0.0
    return Staleness(unknown, np.bincount(key, area, stream.keys) / span, span)


def _windows_of_tuples(window: UpdateWindow, stream: Arrivals, kept: Bools, first: Ints) -> Ints:
    """For each tuple the number of kept windows that it lies in; `first` is where a key's windows begin."""
    place = number_tuples(stream.ids, np.zeros(stream.keys, np.int64))
    high = place // window.slide + 1
    low = np.minimum(np.maximum((place - window.size) // window.slide + 1, 0), high)
    running = np.concatenate([[0], np.cumsum(kept)])
    base = first[stream.ids]
    opened: Ints = running[base + high] - running[base + low]
    return opened


def _closing_tuples(window: UpdateWindow, stream: Arrivals, key: Ints, number: Ints) -> Ints:
    """Which tuple closes each window; the number of tuples where none does."""
    order = np.argsort(stream.ids, kind="stable")
    counts = np.bincount(stream.ids, minlength=stream.keys)
    place = number * window.slide + window.size - 1
    at = np.where(place < counts[key], (np.cumsum(counts) - counts)[key] + place, len(order))
    closer: Ints = np.append(order, len(order))[at]
    return closer
