"""Calls of an expensive function: how many keys each is for, and what it tells of their costs.

A call is timed as a whole. It is for as many keys as are expected to fit into its part of the budget, so keys
that are expected to be dear come in small calls. Where a call takes far longer than expected, each of its
keys is expected to cost that many times more: so they come in smaller calls, until those that are dear are
among few, and the others are cleared by calls that take far less than expected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.kernels.update_queue import LEARN
from windowpane.core.upstream.append import AppendQueue
from windowpane.core.upstream.queue import KeyQueue, Taken
from windowpane.values.freshness import Policy

AnyQueue = KeyQueue | AppendQueue
Clock = Callable[[], float]
_ROWS, _GROWTH, _ENOUGH = 4096, 4, 16
"""Rows of a call: at most; how many times those of calls before; so many that it tells what they cost."""
_PARTS, _WORTH = 8, 4
"""The part of the budget that the first call is for, and how many times its own price a call should take."""
_FAR, _BOLD = 2.0, 1.5
"""How many times what was expected is a surprise, and is believed; and is dared once to find a price."""
_KEEP, _TINY = 0.9, 1e-9


@dataclass
class Pace:
    """How long calls took of late: sums in which older calls count less. A row is one of an average key.

    A call has a price of its own, and its rows cost: a line through the calls, by least squares.
    """

    calls: float = 0.0
    rows: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0
    most: float = 0.0
    late: int = 0

    def add(self, rows: float, seconds: float) -> None:
        """A call for so many rows took so long."""
        new = 1.0, rows, seconds, rows * rows, rows * seconds
        # The first call of all may load what the function needs: then the second takes less, for more rows.
        keep = 0.0 if self.calls == 1.0 and seconds < self.seconds else _KEEP
        sums = (keep * old + more for old, more in zip(astuple(self), new, strict=False))
        self.calls, self.rows, self.seconds, self.squares, self.products = sums
        self.most = max(_KEEP * self.most, rows)

    def surprise(self, rows: float, seconds: float) -> None:
        """Where one call after the other takes far longer than expected, so would those before.

        Once may be the doing of a dear key. Time and again it is a function that is slower than it was, and
        calls would be too large for it until those before no longer count.
        """
        price, row = self.line
        self.late = self.late + 1 if seconds > _FAR * (price + row * rows) else 0
        if self.late > 1:
            self.seconds, self.products = _FAR * self.seconds, _FAR * self.products

    @property
    def each(self) -> float:
        """What a row takes, with its share of the price."""
        return self.seconds / self.rows

    @property
    def line(self) -> tuple[float, float]:
        """The price of a call and the cost of a row; without a price where calls do not tell it."""
        spread = self.calls * self.squares - self.rows * self.rows
        if spread > 1e-3 * self.rows * self.rows:
            slope = (self.calls * self.products - self.rows * self.seconds) / spread
            if 0.0 < slope < self.each:
                return (self.seconds - slope * self.rows) / self.calls, slope
        return 0.0, self.each

    def fits(self, budget: float) -> float:
        """How many rows of an average key there is time for; without end where too few calls tell it."""
        if self.calls <= 1.0:  # the first may load what the function needs
            return np.inf
        price, row = self.line
        return max((budget - price) / row, 1.0)


def mean_cost(queue: AnyQueue) -> float | None:
    """What a row costs on average over the keys of which it is known; None where it is of none."""
    known = queue.costs
    known = known[known > 0]
    return float(known.mean()) if len(known) else None


def last_told(queue: AnyQueue | None) -> float:
    """The last time that a queue knows; results of the last call were delivered after its rows were taken."""
    if queue is None:
        return -np.inf
    return float(queue.views()["delivered"].max(initial=queue.now))


def rising(base: float, ticks: Clock) -> Clock:
    """A clock that begins at a time and goes on by ticks.

    A wall clock may be set back, and that of another machine may be behind: calls would seem to take no time.
    """
    began = ticks()
    return lambda: base + (ticks() - began)


class Calls:
    """The calls of one micro-batch; `budget` is in seconds."""

    def __init__(self, queue: AnyQueue, pace: Pace, budget: float) -> None:
        self._queue, self._pace, self._budget = queue, pace, budget
        self._mean, self._any = mean_cost(queue), False
        self._costs = self._expected(queue.costs)

    def next(self, now: float, spent: float) -> Taken | None:
        """What the next call is for, taken from the queue now; None where nobody waits or fits any more.

        The first call is for one key at least, so that each has its turn, however dear it is.
        """
        room = self._budget - spent
        if not len(self._queue) or room <= 0.0:
            return None
        taken = self._fitting(now, room) if self._pace.calls else None
        if taken is None and not self._any:
            taken = self._queue.take(now, limit=1)
        self._any = True
        return taken

    def _fitting(self, now: float, room: float) -> Taken | None:
        price, row = self._pace.line
        if self._pace.calls == 1.0:
            # Two calls of as many rows would never tell a price.
            if 2 * self._pace.seconds <= _BOLD * room:
                return self._queue.take(now, limit=2 * max(int(self._pace.most), 1))
            if self._any:
                return None  # there is more room in the next micro-batch
        part = max(room / (2 if self._any else _PARTS), _WORTH * price)
        if self._any and part - price <= _ENOUGH * row:
            part = room
        most = min(_GROWTH * int(np.ceil(self._pace.most)), _ROWS)
        # The last key may take twice what is left, so that dear keys leave no time unused on average.
        for seconds, rows in ((min(part, room), most), (2 * room, 1)):
            fits = max(seconds - price, 0.0) / row * _TINY
            taken = self._queue.take(now, limit=rows, budget=fits, costs=self._costs)
            if len(taken):
                return taken
        return None

    def shed(self) -> Ints:
        """Where rows are shed: those for which there is no time in this micro-batch, drawn by lot."""
        if not isinstance(self._queue, AppendQueue) or self._queue.policy is not Policy.SHED:
            return np.empty(0, np.int64)
        return self._queue.thin(self._costs / _TINY, self._pace.fits(self._budget))

    def _expected(self, known: Floats) -> Floats:
        """What keys are expected to cost, of which it is known or 0: billionths of the average.

        They are so small that a key's turn comes when the call begins, not after those before it.
        """
        return np.where(known > 0.0, known / (self._mean or 1.0), 1.0) * _TINY

    def took(self, taken: Taken, seconds: float) -> None:
        """The call took so long: its keys share that as they were expected to."""
        weights = self._costs[taken.ids] / _TINY
        rows = float(weights.sum())
        if self._pace.calls > 1.0:
            self._pace.surprise(rows, seconds)
        price, row = self._pace.line if self._pace.calls else (0.0, seconds / rows)
        # The price of a call says nothing of the few keys that it happened to be for.
        some = self._pace.calls > 1.0
        tells = len(taken) >= _ENOUGH or (some and _PARTS * (seconds - price) >= self._budget)
        # Where this is not the first to take far longer, those before were made longer already.
        most = 1.0 if self._pace.late > 1 else _FAR
        self._pace.add(rows, min(seconds, most * (price + row * rows)))
        # Rows are those of an average key; of keys that are known to be cheap the call had more than that.
        self._pace.most = max(self._pace.most, float(len(taken)))
        ratio = (max(seconds - price, _TINY) if tells else seconds) / (row * rows)
        if tells or (some and ratio * _FAR <= 1.0):
            self._learn(taken, weights, ratio, seconds)

    def _learn(self, taken: Taken, weights: Floats, ratio: float, seconds: float) -> None:
        """Keys cost so many times what was expected; on average over keys, what rows take of late."""
        if not self._mean:
            self._mean = self._pace.each
            self._costs = self._expected(self._queue.costs)
        far = not 1 / _FAR < ratio < _FAR
        known = self._queue.costs[taken.ids] > 0.0
        # What is set, not moved, must fit to what the others are known to cost.
        scale = np.where(known & (not far), self._pace.each, self._mean)
        believed = min(max(ratio, 1 / _FAR), _FAR)
        costs = np.minimum(weights * believed * scale, seconds)
        self._queue.learn(taken.ids, costs, 1.0 if far else LEARN)
        self._costs[taken.ids] = self._expected(self._queue.costs[taken.ids])
