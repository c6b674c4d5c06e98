"""What it takes to give a window definition its meaning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from windowpane.values.semantics.tuples import Stream, Tuple

WindowId = Any
"""Any hashable value; which one is said at each kind of window."""
Bounds = tuple[int | None, int]
W = TypeVar("W")


@dataclass(frozen=True)
class Meaning(ABC, Generic[W]):
    """A window definition applied to a set of tuples: Li 2008 (WID thesis), section 5.1.1.

    `upto` matters to landmark and last-rows windows alone, which hold tuples for ever: their ids end
    with the first window that has seen all tuples, or with the last that ends at or before `upto` if
    that is later.
    """

    window: W
    stream: Stream
    upto: int | None = None

    def windows(self) -> frozenset[WindowId]:
        """The ids of all windows that hold at least one tuple."""
        return frozenset().union(*(self.wids(t) for t in self.stream.ordered))

    @abstractmethod
    def extent(self, wid: WindowId) -> tuple[Tuple, ...]:
        """The tuples of one window, by event-time rank."""

    @abstractmethod
    def wids(self, t: Tuple) -> frozenset[WindowId]:
        """The ids of the windows that hold this tuple of the stream: the dual of `extent`."""

    @abstractmethod
    def bounds(self, wid: WindowId) -> Bounds:
        """What a result reports as the window's start and end."""


class Interval(Meaning[W]):
    """A window that holds exactly the tuples of its reported half-open range."""

    def extent(self, wid: WindowId) -> tuple[Tuple, ...]:
        """The tuples with `start <= time < end`."""
        low, high = self.bounds(wid)
        return self.stream.between(low, high)
