"""Windows under update semantics: an overloaded operator serves the newest window of each key.

Moga et al. 2009, section 6. The queue decides which windows there are to be and hands their tuples over with
marks (table 1); windows are never cut: what is delivered is a whole window, what is lost is whole windows.
LAZY commits to windows that have arrived in full, EAGER to the newest one that started.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.kernels import update_window_runs as runs
from windowpane.core.kernels import update_windows as steps
from windowpane.core.kernels.kinetic import build
from windowpane.core.kernels.update_queue import MEASURED, NOW
from windowpane.core.kernels.zones import HELD, WIDTH
from windowpane.core.upstream.memory import PagePool, Usage
from windowpane.core.upstream.memory_buffers import WindowBuffers
from windowpane.core.upstream.queue import CODES, new_queue, widened
from windowpane.core.upstream.staleness import Staleness, staleness_of
from windowpane.values.errors import BadQuery, BadWindow
from windowpane.values.freshness import Policy, policy_of

_NO_WINDOW = [
    steps.INSIDE, steps.NEWEST, steps.CLOSED, steps.COMMITTED, steps.DELIVERED, steps.MARKED,
]  # fmt: skip
_SMALLEST = 16


class Commit(StrEnum):
    """When the operator commits to a window (6.2)."""

    LAZY = "lazy"
    """To the newest window that has arrived in full."""
    EAGER = "eager"
    """To the newest window that started; its tuples are processed as they come."""


class Phase(StrEnum):
    """What the operator does with a key. A key of any phase may wait besides."""

    DONE = "done"
    READY = "ready"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class UpdateWindow:
    """Windows of `size` places, one every `slide`: a key's tuples, or with `timed` its event times."""

    size: int
    slide: int
    commit: Commit = Commit.LAZY
    timed: bool = False

    def __post_init__(self) -> None:
        if self.size < 1 or self.slide < 1:
            raise BadWindow(
                f"a window of size {self.size} and slide {self.slide} cannot be. Both must be at least 1."
            )

    @property
    def most_tuples(self) -> int:
        """The most that waits for one key, where tuples are counted."""
        return self.size + self.slide - 1


@dataclass(frozen=True, slots=True)
class Served:
    """What one call of `serve` brought.

    The dequeued tuples in order: key ids, windows, marks (the end of a window that is to be opened, 0 for the
    start of one that is not, -1 else) and rows. Then the windows that are complete: `done_keys`,
    `done_windows`, when they were committed and when they were done.
    """

    keys: Ints
    windows: Ints
    marks: Ints
    rows: Ints
    done_keys: Ints
    done_windows: Ints
    committed: Floats
    done: Floats

    @property
    def tuples(self) -> int:
        """How many tuples were dequeued."""
        return len(self.keys)


class WindowQueue:
    """An update queue of windows over dense key ids; times are floats in one unit and never go back.

    A row is `width` words, of which the first is the tuple's place (written by the queue where tuples are
    counted). `cost` is what a tuple takes to process, in the unit of the times.
    """

    __slots__ = ("_bound", "_buffers", "_count", "_machine", "late", "policy", "window")

    def __init__(
        self,
        window: UpdateWindow,
        pool: PagePool,
        width: int,
        *,
        policy: Policy | str = Policy.IN_PLACE,
        cost: float = 1.0,
        block: int = 8,
    ) -> None:
        self.window, self.policy = window, policy_of(policy)
        if self.policy.keeps_all:
            raise BadQuery(f"policy {self.policy.value!r} keeps every tuple, so it is no update queue.")
        self.late = 0
        self._count, self._bound = 0, steps.NONE
        self._buffers = WindowBuffers(pool, width, block=block)
        self._buffers.grow(_SMALLEST)
        spec = [
            window.size,
            window.slide,
            not window.timed,
            window.commit is Commit.EAGER,
            CODES[self.policy],
        ]
        counts = [steps.NOBODY, steps.NOBODY, 0]
        self._machine = steps.Machine(
            new_queue(_SMALLEST, cost * window.size, 0.0),
            _empty_buffers(_SMALLEST, steps.NONE),
            _empty_moments(_SMALLEST),
            self._buffers.memory,
            np.array(spec, np.int64),
            np.array(counts, np.int64),
        )

    @property
    def machine(self) -> steps.Machine:
        """The state, for loops."""
        return self._machine

    @property
    def usage(self) -> Usage:
        """How much memory is taken."""
        return self._buffers.usage

    @property
    def most_held(self) -> int:
        """The most tuples that any key ever had here."""
        return int(self._machine.counts[steps.MOST_HELD])

    def enqueue(self, keys: Ints, rows: Ints, times: Floats) -> Bools:
        """Take tuples in arrival order; which came below the bound of their key, and were left out."""
        late = np.zeros(len(keys), np.bool_)
        if not len(keys):
            return late
        self.grow(int(keys.max()) + 1)
        rows = np.array(rows, np.int64, order="C")
        taken = runs.enqueue_many(self._machine, keys, rows, times, late)
        self.late += int(np.count_nonzero(late))
        if taken < len(keys):
            raise self._buffers.full(taken, len(keys))
        return late

    def punctuate(self, bound: int, now: float) -> None:
        """No tuple below this event time is still to come, of any key."""
        if not self.window.timed:
            raise BadQuery("windows that count tuples have no punctuation. Use windows of event time.")
        self._bound = max(self._bound, bound)
        runs.punctuate(self._machine, bound, now)

    def serve(self, now: float, tuples: int, cost: float = 0.0) -> Served:
        """Process so many tuples (LAZY up to a window more), each taking `cost`, from now on."""
        held = self._machine.memory.chains[:, HELD]
        out = new_dequeued(tuples + int(held.max()), int(self._machine.memory.shape[WIDTH]))
        done = new_delivered(tuples + self._count + 1)
        runs.serve_many(self._machine, out, done, float(now), float(cost), tuples)
        n, d = int(out.filled[0]), int(done.filled[0])
        return Served(
            out.keys[:n], out.windows[:n], out.marks[:n], out.rows[:n],
            done.keys[:d], done.windows[:d], done.committed[:d], done.times[:d],
        )  # fmt: skip

    def waiting(self) -> Ints:
        """The ids of the keys that wait, in order of id."""
        return np.flatnonzero(self._machine.waiting.keys.first[: self._count] < np.inf)

    def phases(self) -> list[Phase]:
        """What the operator does with each key."""
        names = list(Phase)
        return [names[phase] for phase in self._machine.buffers[: self._count, steps.PHASE]]

    def lengths(self) -> Ints:
        """How many tuples of each key are here."""
        return self._buffers.lengths(np.arange(self._count))

    def measure_from(self, now: float) -> None:
        """Forget the staleness so far and measure from now on."""
        waiting = self._machine.waiting
        waiting.totals[MEASURED] = now
        waiting.keys.queue_area[:] = 0.0
        waiting.keys.application_area[:] = 0.0

    def staleness(self, now: float) -> Staleness:
        """Average staleness of each key seen: the application's counts windows that arrived in full."""
        return staleness_of(self._machine.waiting.keys, self._machine.waiting.totals, self._count, now)

    def grow(self, count: int) -> None:
        """Make sure that keys 0 to `count - 1` have buffers."""
        self._count = max(self._count, count)
        m = self._machine
        if count <= len(m.buffers):
            return
        size = 2 * count
        waiting = widened(m.waiting, size)
        buffers, moments = _empty_buffers(size, self._bound), _empty_moments(size)
        buffers[: len(m.buffers)], moments[: len(m.buffers)] = m.buffers, m.moments
        choosable = (waiting.keys.first < np.inf) & (buffers[:, steps.PHASE] == steps.DONE)
        build(waiting.tree, waiting.ranks, waiting.habits, choosable, float(waiting.totals[NOW]))
        self._buffers.grow(size)
        self._machine = steps.Machine(waiting, buffers, moments, self._buffers.memory, m.spec, m.counts)


def _empty_buffers(keys: int, bound: int) -> Ints:
    columns = np.zeros((keys, steps.COLUMNS), np.int64)
    columns[:, _NO_WINDOW] = steps.NONE
    columns[:, steps.BOUND] = bound
    return columns


def _empty_moments(keys: int) -> Floats:
    return np.full((keys, steps.MOMENTS), np.inf)


def new_dequeued(tuples: int, width: int) -> steps.Dequeued:
    """Room for what the operator is handed."""
    keys, windows, marks = (np.empty(tuples, np.int64) for _ in range(3))
    return steps.Dequeued(keys, windows, marks, np.empty((tuples, width), np.int64), np.zeros(1, np.int64))


def new_delivered(windows: int) -> steps.Delivered:
    """Room for windows that are complete."""
    return steps.Delivered(
        np.empty(windows, np.int64),
        np.empty(windows, np.int64),
        np.empty(windows),
        np.empty(windows),
        np.zeros(1, np.int64),
    )
