"""Window definitions: small frozen values.

Windows are half-open `[start, end)` on an int64 measure (microseconds for time), except
slide-by-tuple windows, which are `(t - size, t]`. What each definition means is written down as
`windows() / extent() / wids()` in `semantics`; this module holds the parameters and their checks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from windowpane.values.durations import Duration, microseconds
from windowpane.values.errors import BadWindow
from windowpane.values.punctuation import LONGEST

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Order = Literal["time", "arrival"]
OWN_KEYS = ("*",)
"""The partition that `.per()` without columns stands for: the query's own keys."""


def _positive(value: object, name: str, window: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadWindow(f"{window}: {name} is {value!r}, but it must be a whole number. Give an int above 0.")
    if value <= 0:
        raise BadWindow(f"{window}: {name} is {value}, but it must be above 0. Give a positive {name}.")
    if value > LONGEST:
        raise BadWindow(f"{window}: {name} is {value}, but it must be at most {LONGEST}. Give a smaller one.")


def _within(value: int, name: str, window: str) -> None:
    if not -LONGEST <= value <= LONGEST:
        raise BadWindow(f"{window}: {name} is {value}, but it must be from {-LONGEST} to {LONGEST}.")


def _order(order: str, window: str) -> None:
    if order not in ("time", "arrival"):
        raise BadWindow(f"{window}: order is {order!r}. Use 'time' (event-time rank) or 'arrival'.")


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows `[origin + k*slide, origin + k*slide + size)` for every integer k; tumbling if slide = size."""

    size: int
    slide: int
    origin: int = 0
    on: str | None = None

    def __post_init__(self) -> None:
        _positive(self.size, "size", "sliding window")
        _positive(self.slide, "slide", "sliding window")
        _within(self.origin, "origin", "sliding window")


@dataclass(frozen=True, slots=True)
class Landmark:
    """Windows `[start, origin + k*slide)`: all that came since `start` (None: since ever)."""

    slide: int
    start: int | None = None
    origin: int = 0
    on: str | None = None

    def __post_init__(self) -> None:
        _positive(self.slide, "slide", "landmark window")
        _within(self.origin, "origin", "landmark window")
        _within(self.start or 0, "start", "landmark window")


@dataclass(frozen=True, slots=True)
class Cumulative:
    """Windows `[p, p + j*step)` for every period start p and j = 1 .. period/step."""

    step: int
    period: int
    origin: int = 0
    on: str | None = None

    def __post_init__(self) -> None:
        _positive(self.step, "step", "cumulative window")
        _positive(self.period, "period", "cumulative window")
        _within(self.origin, "origin", "cumulative window")
        if self.period % self.step:
            raise BadWindow(
                f"cumulative window: period {self.period} is no multiple of step {self.step}. "
                "Choose a step that divides the period."
            )


@dataclass(frozen=True, slots=True)
class Session:
    """Tuples of one key with at most `gap` between neighbours; `[first, last + gap)`.

    Two tuples exactly `gap` apart belong to the same session, as in Spark.
    """

    gap: int
    on: str | None = None

    def __post_init__(self) -> None:
        _positive(self.gap, "gap", "session window")


@dataclass(frozen=True, slots=True)
class Rows:
    """Windows over tuple positions `[(k+1)*slide - size, (k+1)*slide)`, k = 0, 1, ... (positions from 0).

    `order` says which position: the rank by event time (lawful), or the arrival (depends on arrival
    order, hence by name). Positions count the whole stream unless `.per(...)` partitions it.
    """

    size: int
    slide: int
    order: Order = "time"
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _positive(self.size, "size", "rows window")
        _positive(self.slide, "slide", "rows window")
        _order(self.order, "rows window")

    def per(self, *columns: str) -> Rows:
        """Count separately for each value of these columns (none: the query's keys)."""
        return replace(self, partition=columns or OWN_KEYS)


@dataclass(frozen=True, slots=True)
class Delimited:
    """Windows cut by marker tuples in the data; `start` and `end` name boolean columns, per key.

    Only `start`: a marker at t ends the window before and begins `[t, next start)`.
    Only `end`: a marker at t belongs to the window it ends; windows are `(previous end, t]`.
    Both: a start opens a window if none is open (else it is ignored), the next end at or after it closes it.
    """

    start: str | None = None
    end: str | None = None

    def __post_init__(self) -> None:
        if self.start is None and self.end is None:
            raise BadWindow(
                "delimited window: neither start nor end is given. Name at least one boolean column."
            )


@dataclass(frozen=True, slots=True)
class PerRow:
    """Slide-by-tuple: for every `every`-th tuple, at time t, the window `(t - size, t]`."""

    size: int
    every: int = 1
    order: Order = "time"
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _positive(self.size, "size", "per_row window")
        _positive(self.every, "every", "per_row window")
        _order(self.order, "per_row window")

    def per(self, *columns: str) -> PerRow:
        """Count tuples separately for each value of these columns (none: the query's keys)."""
        return replace(self, partition=columns or OWN_KEYS)


@dataclass(frozen=True, slots=True)
class LastRows:
    """At every time `origin + k*every`, the last `size` tuples below it by event-time rank."""

    size: int
    every: int
    origin: int = 0
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _positive(self.size, "size", "last_rows window")
        _positive(self.every, "every", "last_rows window")
        _within(self.origin, "origin", "last_rows window")

    def per(self, *columns: str) -> LastRows:
        """Take the last rows of each value of these columns (none: of the query's keys)."""
        return replace(self, partition=columns or OWN_KEYS)


class ContextFreeWindow(ABC):
    """Base for a user's own window whose edges follow from its parameters alone.

    Make it a frozen dataclass, so that equal definitions share their slices.
    """

    on: str | None = None

    @abstractmethod
    def next_edge(self, time: int) -> int:
        """The smallest start or end of any window that is greater than `time`."""

    @abstractmethod
    def triggers(self, after: int, upto: int) -> Iterable[tuple[int, int]]:
        """Every window `(start, end)` with `after < end <= upto`, by rising end."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """No window is longer than this; slices older than it are forgotten."""


class ContextAwareWindow(ABC):
    """Base for a user's own window that depends on the tuples.

    The engine keeps tuples for `horizon` behind the punctuation and calls `windows` once per batch
    for all keys. Make it a frozen dataclass.
    """

    columns: tuple[str, ...] = ()

    @property
    @abstractmethod
    def horizon(self) -> int:
        """No window that is still to come starts more than this before the punctuation."""

    @abstractmethod
    def windows(
        self,
        keys: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        columns: dict[str, npt.NDArray[np.generic]],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Arrays (key, start, end) of all windows over tuples sorted by (key, time).

        A window is reported once the punctuation reaches its end, so tuples at or after the end must
        not change it.
        """


Window = (
    Sliding
    | Landmark
    | Cumulative
    | Session
    | Rows
    | Delimited
    | PerRow
    | LastRows
    | ContextFreeWindow
    | ContextAwareWindow
)


def _on(size: Duration, on: str | None) -> int:
    """A length on another measure than time is a plain number of that measure's units."""
    if on is not None and not isinstance(size, int):
        raise BadWindow(f"a window on {on!r} is measured in that column's units, so {size!r} must be an int.")
    return microseconds(size)


def tumbling(size: Duration, *, origin: Duration = 0, on: str | None = None) -> Sliding:
    """Windows of `size` that follow one another without a gap."""
    length = _on(size, on)
    return Sliding(length, length, _on(origin, on), on)


def sliding(size: Duration, slide: Duration, *, origin: Duration = 0, on: str | None = None) -> Sliding:
    """A window of `size` every `slide`. A slide above the size leaves gaps, which is allowed."""
    return Sliding(_on(size, on), _on(slide, on), _on(origin, on), on)


def landmark(
    slide: Duration, *, start: Duration | None = None, origin: Duration = 0, on: str | None = None
) -> Landmark:
    """All tuples since `start`, reported every `slide`."""
    return Landmark(_on(slide, on), None if start is None else _on(start, on), _on(origin, on), on)


def cumulative(
    step: Duration, period: Duration, *, origin: Duration = 0, on: str | None = None
) -> Cumulative:
    """A window that grows by `step` and starts anew every `period`."""
    return Cumulative(_on(step, on), _on(period, on), _on(origin, on), on)


def session(gap: Duration, *, on: str | None = None) -> Session:
    """Bursts of activity of one key, ended by more than `gap` of silence."""
    return Session(_on(gap, on), on)


def rows(size: int, slide: int | None = None, *, order: Order = "time") -> Rows:
    """The last `size` tuples every `slide` tuples (default: every `size`)."""
    return Rows(size, size if slide is None else slide, order)


def delimited(*, start: str | None = None, end: str | None = None) -> Delimited:
    """Windows that marker tuples in the data open and close."""
    return Delimited(start, end)


def per_row(size: Duration, *, every: int = 1, order: Order = "time") -> PerRow:
    """For every `every`-th tuple the window of length `size` that ends with it."""
    return PerRow(microseconds(size), every, order)


def last_rows(size: int, every: Duration, *, origin: Duration = 0) -> LastRows:
    """The last `size` tuples, reported every `every` of time."""
    return LastRows(size, microseconds(every), microseconds(origin))
