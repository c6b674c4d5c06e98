"""Windows whose edges follow from their parameters: sliding, landmark, cumulative, a user's own.

Where Li 2008 (WID thesis) counts from the smallest value in the stream, we count from the window's
`origin`, so that an answer does not hinge on which tuple happens to be the first; ids may be negative.

Eq. 5.3, 5.6 and 5.9 are printed with ceilings, which would give the thesis's own example (a tuple 5 s
after the start, range 600 s, slide 60 s) the windows 1 to 10. Its text says 0 to 9, and so does the
inverse of Eq. 5.2, which has floors. We follow the text.
"""

from __future__ import annotations

from windowpane.values.semantics.base import Bounds, Interval, WindowId
from windowpane.values.semantics.tuples import Tuple
from windowpane.values.windows import ContextFreeWindow, Cumulative, Landmark, Sliding


class SlidingMeaning(Interval[Sliding]):
    """Id w is the window that starts at `origin + (w + 1 - panes)*slide`, panes = size/slide rounded up.

    Where the slide divides the size this is Eq. 5.2 of Li 2008 (WID thesis): windows end at
    `origin + (w+1)*slide`. Elsewhere starts stay on the grid, as in Spark and Flink, and ends do not.
    """

    @property
    def _panes(self) -> int:
        return -(-self.window.size // self.window.slide)

    def bounds(self, wid: WindowId) -> Bounds:
        """Li 2008 (WID thesis), Eq. 5.2."""
        start = self.window.origin + (wid + 1 - self._panes) * self.window.slide
        return start, start + self.window.size

    def wids(self, t: Tuple) -> frozenset[WindowId]:
        """Li 2008 (WID thesis), Eq. 5.3; empty for a tuple in the gap that a slide above the size leaves."""
        since, slide = t.time - self.window.origin, self.window.slide
        first, last = (since - self.window.size) // slide + 1, since // slide
        return frozenset(range(first - 1 + self._panes, last + self._panes))


class LandmarkMeaning(Interval[Landmark]):
    """Id w is the window `[start, origin + (w+1)*slide)`; a start of None does not bound."""

    def bounds(self, wid: WindowId) -> Bounds:
        """Li 2008 (WID thesis), Eq. 5.8."""
        return self.window.start, self.window.origin + (wid + 1) * self.window.slide

    def wids(self, t: Tuple) -> frozenset[WindowId]:
        """Li 2008 (WID thesis), Eq. 5.9, cut off after the last id of `windows`."""
        if self.window.start is not None and t.time < self.window.start:
            return frozenset()
        return frozenset(range(self._first(t.time), self._last() + 1))

    def _first(self, time: int) -> int:
        return (time - self.window.origin) // self.window.slide

    def _last(self) -> int:
        last = self._first(self.stream.ordered[-1].time)
        return last if self.upto is None else max(last, self._first(self.upto) - 1)


class CumulativeMeaning(Interval[Cumulative]):
    """Id w is the window that ends at `origin + (w+1)*step` and starts with the period that holds it."""

    def bounds(self, wid: WindowId) -> Bounds:
        """From the start of the period to the end of the step."""
        steps = self.window.period // self.window.step
        start = self.window.origin + wid // steps * self.window.period
        return start, self.window.origin + (wid + 1) * self.window.step

    def wids(self, t: Tuple) -> frozenset[WindowId]:
        """From the tuple's own step to the last step of its period."""
        since = t.time - self.window.origin
        following = (since // self.window.period + 1) * (self.window.period // self.window.step)
        return frozenset(range(since // self.window.step, following))


class ContextFreeMeaning(Interval[ContextFreeWindow]):
    """A user's window is its own id: `(start, end)`."""

    def bounds(self, wid: WindowId) -> Bounds:
        """The id."""
        start, end = wid
        return start, end

    def wids(self, t: Tuple) -> frozenset[WindowId]:
        """No window is longer than `longest`, so all that hold the tuple end within that of it."""
        ends = self.window.triggers(t.time, t.time + self.window.longest)
        return frozenset((start, end) for start, end in ends if start <= t.time < end)
