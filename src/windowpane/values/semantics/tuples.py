"""The tuples that the definitions speak about, and their order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from windowpane.values.windows import Order


@dataclass(frozen=True, slots=True)
class Tuple:
    """One tuple of a stream, reduced to what a window definition can ask of it.

    `time` is the value of the window's measure and `arrival` the position in the stream, which no two
    tuples share. `tie` orders tuples of one time. `key` cuts session, delimited and context-aware
    windows, `partition` the row windows made with `.per`. `marks` holds the columns that the window
    itself reads, and `row` leads back to where the tuple came from.
    """

    time: int
    arrival: int = 0
    tie: Any = 0
    partition: Hashable = ()
    key: Hashable = ()
    marks: Mapping[str, Any] = field(default_factory=dict, compare=False)
    row: int = 0

    @property
    def rank(self) -> tuple[int, Any, int]:
        """What event-time rank sorts by; arrival decides only where the tie-breaker does not."""
        return (self.time, self.tie, self.arrival)


@dataclass(frozen=True)
class Stream:
    """A set of tuples with the orders that the definitions need, each computed once."""

    tuples: tuple[Tuple, ...]

    @cached_property
    def ordered(self) -> tuple[Tuple, ...]:
        """The tuples by event-time rank."""
        return tuple(sorted(self.tuples, key=lambda t: t.rank))

    @cached_property
    def arrived(self) -> tuple[Tuple, ...]:
        """The tuples by arrival."""
        return tuple(sorted(self.tuples, key=lambda t: t.arrival))

    @cached_property
    def _ranks(self) -> dict[int, int]:
        return {t.arrival: position for position, t in enumerate(self.ordered)}

    @cached_property
    def _arrivals(self) -> dict[int, int]:
        return {t.arrival: position for position, t in enumerate(self.arrived)}

    def by(self, order: Order) -> tuple[Tuple, ...]:
        """The tuples in event-time or arrival order."""
        return self.arrived if order == "arrival" else self.ordered

    def positions(self, order: Order) -> dict[int, int]:
        """The position of each tuple in that order, from 0, by its arrival number."""
        return self._arrivals if order == "arrival" else self._ranks

    def before(self, time: int) -> int:
        """How many tuples lie below this time."""
        return bisect_left(self.ordered, time, key=lambda t: t.time)

    def between(self, low: int | None, high: int) -> tuple[Tuple, ...]:
        """The tuples with `low <= time < high`, by rank; a low of None does not bound."""
        first = 0 if low is None else self.before(low)
        return self.ordered[first : self.before(high)]

    def split(self, by: Callable[[Tuple], Hashable]) -> dict[Hashable, Stream]:
        """The sub-streams that share a value, in order of first occurrence by rank."""
        parts: dict[Hashable, list[Tuple]] = {}
        for t in self.ordered:
            parts.setdefault(by(t), []).append(t)
        return {value: Stream(tuple(part)) for value, part in parts.items()}


EMPTY = Stream(())
