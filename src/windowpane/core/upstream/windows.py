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
from windowpane.core.kernels.paging import USED
from windowpane.core.kernels.update_queue import LEARN, MEASURED, NOW, WAITING, learn_many
from windowpane.core.kernels.zones import SIZE, WIDTH
from windowpane.core.upstream.memory import PagePool, Usage
from windowpane.core.upstream.memory_buffers import WindowBuffers
from windowpane.core.upstream.queue import CODES, new_queue, widened
from windowpane.core.upstream.served import Served, new_delivered, new_dequeued
from windowpane.core.upstream.staleness import Staleness, forget, staleness_of
from windowpane.values.errors import BadQuery, BadWindow
from windowpane.values.freshness import Policy, policy_of

_NO_WINDOW = [
    steps.INSIDE, steps.NEWEST, steps.CLOSED, steps.COMMITTED, steps.FINISHED, steps.MARKED,
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
        """The most tuples of one key that are kept, where tuples are counted (7.2: omega + delta - 1)."""
        return self.size + self.slide - 1


class WindowQueue:
    """An update queue of windows over dense key ids; times are floats in one unit and never go back.

    A row is `width` words, of which the first is the tuple's place (written by the queue where tuples are
    counted). `cost` is what a tuple takes to process, in the unit of the times.
    """

    __slots__ = (
        "_bound", "_buffers", "_count", "_forgotten", "_machine", "late", "policy", "taken", "window",
    )  # fmt: skip

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
        self.taken = self.late = 0
        self._count, self._bound, self._forgotten = 0, steps.NONE, steps.NONE
        self._buffers = WindowBuffers(pool, width, block=block)
        self._buffers.grow(_SMALLEST)
        spec = [
            window.size,
            window.slide,
            not window.timed,
            window.commit is Commit.EAGER,
            CODES[self.policy],
        ]
        counts = np.zeros(steps.COUNTS, np.int64)
        counts[[steps.FIRST, steps.LAST]] = steps.NOBODY
        self._machine = steps.Machine(
            new_queue(_SMALLEST, cost * window.size, 0.0),
            self._empty_buffers(_SMALLEST),
            _empty_moments(_SMALLEST),
            self._buffers.memory,
            np.array(spec, np.int64),
            counts,
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
    def keys(self) -> int:
        """How many keys are known."""
        return self._count

    @property
    def most_held(self) -> int:
        """The most tuples that any key ever had here."""
        return int(self._machine.counts[steps.MOST_HELD])

    @property
    def lost(self) -> int:
        """How many windows with tuples arrived in full and will have no result, as newer ones took over."""
        counts, b = self._machine.counts, self._machine.buffers[: self._count]
        newest, committed, full = (b[:, column] for column in (steps.NEWEST, steps.COMMITTED, steps.CLOSED))
        to_come = (newest > committed) & (newest <= full)
        begun = (b[:, steps.PHASE] != steps.DONE) & (committed <= full)
        still = np.count_nonzero(to_come) + np.count_nonzero(begun)
        return int(counts[steps.FULL] - counts[steps.RESULTS]) - int(still)

    def enqueue(self, keys: Ints, rows: Ints, times: Floats) -> Bools:
        """Take tuples in arrival order; which came below the bound of their key, and were left out.

        `taken` and `late` count them.
        """
        late = np.zeros(len(keys), np.bool_)
        if not len(keys):
            return late
        known = self._count
        self.grow(int(keys.max()) + 1)
        rows = np.array(rows, np.int64, order="C")
        taken = runs.enqueue_many(self._machine, keys, rows, times, late)
        self.taken += taken
        self.late += int(np.count_nonzero(late))
        if taken < len(keys):
            self._count = max(known, int(keys[:taken].max(initial=-1)) + 1)  # not those of which nothing came
            raise self._buffers.full(taken, len(keys))
        return late

    def punctuate(self, bound: int, now: float) -> None:
        """No tuple below this event time is still to come, of any key."""
        if not self.window.timed:
            raise BadQuery("windows that count tuples have no punctuation. Use windows of event time.")
        self._bound = max(self._bound, bound)
        runs.punctuate(self._machine, bound, now)

    def serve(self, now: float, tuples: int, cost: float = 0.0) -> Served:
        """Process so many tuples (LAZY up to a window more), each taking `cost`, from now on.

        What is done counts for the application when `deliver` says so.
        """
        memory = self._machine.memory
        places = int(memory.places.counts[USED] * memory.shape[SIZE])  # tuples are at most that many
        # EAGER may hand a tuple over twice: with the committed window and with the newest.
        most = min(tuples, 2 * places)
        out = new_dequeued(most + min(self.most_held, places), int(memory.shape[WIDTH]))
        done = new_delivered(most + self._count + 1)
        runs.serve_many(self._machine, out, done, float(now), float(cost), tuples)
        n, d = int(out.filled[0]), int(done.filled[0])
        return Served(
            out.keys[:n], out.marks[:n], out.rows[:n],
            done.keys[:d], done.windows[:d], done.tuples[:d], done.committed[:d], done.times[:d],
        )  # fmt: skip

    def deliver(self, keys: Ints, now: float) -> None:
        """The results of these keys reached the application; to be told before more is served."""
        runs.deliver_many(self._machine, np.unique(keys), float(now))

    def learn(self, keys: Ints, costs: Floats) -> None:
        """What processing a window of these keys took; later services of a key count on it."""
        learn_many(self._machine.waiting, keys, costs, LEARN)

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

    def buffered(self) -> tuple[Ints, Ints]:
        """How many tuples of each key its enqueue buffer has, and how many its dequeue buffer (6.2).

        Both lie in one window buffer: EAGER tuples may be in both. LAZY windows are dequeued as a whole, so
        between calls their dequeue buffer is empty.
        """
        b, held = self._machine.buffers[: self._count], self.lengths()
        if self.window.commit is Commit.LAZY:
            return held, np.zeros_like(held)
        waits = b[:, steps.NEWEST] > b[:, steps.COMMITTED]
        begun = b[:, steps.PHASE] != steps.DONE
        return np.where(waits, held - b[:, steps.START_SKIP], 0), np.where(begun, b[:, steps.LEFT], 0)

    def idle(self) -> Bools:
        """By key id: whether the operator could work on nothing of the key before a tuple of it comes."""
        phase = self._machine.buffers[: self._count, steps.PHASE]
        # A key that waits has its turn once it is done, so not while its committed window lacks tuples.
        waits = (self._machine.waiting.keys.first[: self._count] < np.inf) & (phase == steps.DONE)
        return np.asarray(~(waits | (phase == steps.READY)))

    def keep(self, live: Bools, now: float) -> None:
        """Forget the keys that are not live, which must be idle, and number the others anew, in order.

        With its tuples goes the number of a key's tuples, so counted windows begin anew with it. Windows of
        event time do not: of a key that is not known, windows that may hold forgotten tuples are never
        served, and tuples that lie in no later one are late.
        """
        m, ids, gone = self._machine, np.flatnonzero(live), np.flatnonzero(~live)
        forget(m.waiting.keys, m.waiting.totals, ~live, now)
        m.waiting.totals[WAITING] -= np.count_nonzero(m.waiting.keys.first[gone] < np.inf)
        if self.window.timed:
            last = int(m.buffers[gone, steps.INSIDE].max(initial=steps.NONE))
            newest = steps.NONE if last == steps.NONE else last // self.window.slide
            self._forgotten = max(self._forgotten, newest)
        size = max(2 * len(ids), _SMALLEST)
        self._buffers.keep(ids, size)
        place = np.where(live, np.cumsum(live) - 1, steps.NOBODY)
        for at in (m.buffers[: self._count, steps.AFTER], m.counts[steps.FIRST : steps.LAST + 1]):
            at[:] = np.where(at == steps.NOBODY, steps.NOBODY, place[at])
        self._count = len(ids)
        self._renew(ids, size)

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
        self._buffers.grow(2 * count)
        self._renew(np.arange(len(m.buffers)), 2 * count)

    def _renew(self, ids: Ints, size: int) -> None:
        """Make room for so many keys, of which the first are those that had these ids."""
        m, n = self._machine, len(ids)
        keys, ranks = (part[ids].view(np.recarray) for part in (m.waiting.keys, m.waiting.ranks))
        waiting = widened(m.waiting._replace(keys=keys, ranks=ranks), size)
        buffers, moments = self._empty_buffers(size), _empty_moments(size)
        buffers[:n], moments[:n] = m.buffers[ids], m.moments[ids]
        choosable = (waiting.keys.first < np.inf) & (buffers[:, steps.PHASE] == steps.DONE)
        build(waiting.tree, waiting.ranks, waiting.habits, choosable, float(waiting.totals[NOW]))
        self._machine = steps.Machine(waiting, buffers, moments, self._buffers.memory, m.spec, m.counts)

    def _empty_buffers(self, keys: int) -> Ints:
        columns = np.zeros((keys, steps.COLUMNS), np.int64)
        columns[:, _NO_WINDOW] = steps.NONE
        columns[:, steps.BOUND] = self._bound
        if self._forgotten > steps.NONE:
            columns[:, steps.CLOSED] = self._forgotten
            columns[:, steps.BOUND] = max(self._bound, (self._forgotten + 1) * self.window.slide)
        return columns


def _empty_moments(keys: int) -> Floats:
    return np.full((keys, steps.MOMENTS), np.inf)
