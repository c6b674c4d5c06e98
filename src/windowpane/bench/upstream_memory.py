"""The memory of update queues: on-demand paging against the naive manager (Moga et al. 2009, section 7.3).

100 keys, 20 to 1,000 tuples per second, 10 keys served per second, until so many results were delivered.
Usage is sampled twice between two services.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.upstream.memory import KeyCells, PagePool
from windowpane.core.upstream.memory_buffers import FixedBuffers
from windowpane.core.upstream.queue import KeyQueue
from windowpane.core.upstream.windows import Commit, UpdateWindow, WindowQueue
from windowpane.simulate.overload import arrivals, zipf
from windowpane.values.freshness import Policy

KEYS = 100
THETAS = (0.0, 0.3, 0.6, 0.9)
SERVICES = 10
RATES = (20, 50, 100, 200, 500, 1_000)
LOADS = tuple(rate / SERVICES for rate in RATES)
PAGE_TUPLES = 8
_SAMPLES = 2
_BUFFERED = UpdateWindow(10, 5, Commit.EAGER)


@dataclass(frozen=True, slots=True)
class Averages:
    """Of one run: tuples that there is room for, and the share of it in use; by cells and by whole pages."""

    paged: float
    naive: float
    paged_effective: float
    naive_effective: float
    paged_pages: float
    naive_pages: float


def memory_points(results: int) -> Iterator[tuple[str, str, float, float]]:
    """Figures 16 (by skew) and 17 (by load), each an average over the other; then window buffers (7.2)."""
    found = {(theta, rate): tuple_memory(theta, rate, results) for theta in THETAS for rate in RATES}
    grid = np.array([[astuple(found[theta, rate]) for rate in RATES] for theta in THETAS])
    for figure, xs, means in (("16", THETAS, grid.mean(axis=1)), ("17", LOADS, grid.mean(axis=0))):
        for x, row in zip(xs, means, strict=True):
            mean = Averages(*(float(value) for value in row))
            yield f"{figure}a", "paged", x, mean.paged_effective
            yield f"{figure}a", "naive", x, mean.naive_effective
            yield f"{figure}a", "paged, whole pages", x, mean.paged_pages
            yield f"{figure}a", "naive, whole pages", x, mean.naive_pages
            yield f"{figure}b", "paged", x, mean.paged
            yield f"{figure}b", "naive", x, mean.naive
    for theta in THETAS:
        paged, naive, used = buffer_memory(theta, 200, results)
        yield "7.2", "paged / naive", theta, paged / naive
        yield "7.2", "share in use, paged", theta, used / paged
        yield "7.2", "share in use, naive", theta, used / naive


def tuple_memory(theta: float, rate: int, results: int) -> Averages:
    """Run one tuple-based update queue over both managers."""
    pool = PagePool(2 * KEYS, PAGE_TUPLES * 8)
    paged, naive = KeyCells(pool, 1), KeyCells(pool, 1, keep=True)
    queue = KeyQueue(Policy.IN_PLACE, cost=1.0 / SERVICES)
    samples = []
    for now, ids, times in _moments(theta, rate, results):
        queue.enqueue(ids, times)
        for cells in (paged, naive):
            cells.put(ids, ids.reshape(-1, 1))
        a, b = paged.usage, naive.usage
        shares = (a.effective, b.effective, a.page_effective, b.page_effective)
        samples.append((a.allocated, b.allocated, *shares))
        if now is not None:
            taken = queue.take(now, limit=1)
            for cells in (paged, naive):
                cells.take(taken.ids)
            queue.deliver(taken.ids, taken.times)
    return Averages(*(float(mean) for mean in np.mean(samples, axis=0)))


def buffer_memory(theta: float, rate: int, results: int) -> tuple[float, float, float]:
    """Room for the window buffers of EAGER: in blocks, as the naive manager has it, and what is in use."""
    queue = WindowQueue(_BUFFERED, PagePool(4 * KEYS, 512), 1, cost=1.0 / SERVICES, block=4)
    queue.grow(KEYS)
    naive = FixedBuffers(_BUFFERED.most_tuples, 1, keys=KEYS)
    samples = []
    for now, ids, times in _moments(theta, rate, results):
        queue.enqueue(ids, np.zeros((len(ids), 1), np.int64), times)
        follow(naive, queue)
        samples.append((queue.usage.allocated, naive.usage.allocated, naive.usage.used))
        if now is not None:
            queue.serve(now, _BUFFERED.size)
    paged, fixed, used = np.mean(samples, axis=0).tolist()
    return paged, fixed, used


def follow(naive: FixedBuffers, queue: WindowQueue) -> None:
    """Let the naive manager hold the tuples that a queue holds: some were dropped at either end, some came.

    A tuple is known by its key and its place, its only word, which rises with every tuple of the key.
    """
    keys = np.arange(KEYS)
    (mine, held), (theirs, wanted) = naive.read(keys), queue._buffers.read(keys)
    owner, other = np.repeat(keys, np.diff(held)), np.repeat(keys, np.diff(wanted))
    place, new = mine[:, 0], theirs[:, 0]
    stay = np.isin(owner + KEYS * place, other + KEYS * new)
    last = np.full(KEYS, -1)
    np.maximum.at(last, owner[stay], place[stay])
    newer = np.bincount(owner[place > last[owner]], minlength=KEYS)
    naive.drop_newest(keys, newer)
    naive.drop_oldest(keys, np.diff(held) - newer - np.bincount(owner[stay], minlength=KEYS))
    came = ~np.isin(other + KEYS * new, owner + KEYS * place)
    naive.append(other[came], theirs[came])


def _moments(theta: float, rate: int, results: int) -> Iterator[tuple[float | None, Ints, Floats]]:
    """The tuples up to each sample, and the time of the service that follows it, if one does."""
    stream = arrivals(zipf(KEYS, theta), rate * results // SERVICES, seed=rate)
    times = stream.times / rate
    step = 1.0 / (SERVICES * _SAMPLES)
    moments = np.arange(1, results * _SAMPLES + 1) * step
    ends = np.searchsorted(times, moments, side="right")
    begin = 0
    for i, (moment, end) in enumerate(zip(moments.tolist(), ends.tolist(), strict=True)):
        serves = (i + 1) % _SAMPLES == 0
        yield moment if serves else None, stream.ids[begin:end], times[begin:end]
        begin = end
