"""The clock of an update queue: what it says is checked, since one wrong time would spoil all averages."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from windowpane.values.errors import BadQuery


@dataclass(slots=True)
class Clock:
    """Seconds that a function tells. Where that is set back, time stands still and goes on from there.

    Queues count on it: by a time before the last one keys would starve until that has come again.
    """

    source: Callable[[], object]
    _last: float = -math.inf
    _back: float = 0.0
    """By how much the source was set back in all."""

    def __call__(self) -> float:
        """What time it is."""
        found = self.source()
        if not (isinstance(found, float | Real) and math.isfinite(found)):
            raise BadQuery(
                f"the clock says {found!r}, which is no time. Give a function that returns seconds."
            )
        now = float(found) + self._back
        if now < self._last:
            self._back += self._last - now
            now = self._last
        self._last = now
        return now


def clock_of(clock: Callable[[], object] | None) -> Clock:
    """The clock that a user gave; by default the system's."""
    if clock is not None and not callable(clock):
        raise BadQuery(
            f"clock={clock!r} cannot be called. Give a function that returns seconds, such as "
            "time.perf_counter."
        )
    return Clock(clock or time.perf_counter)  # `monotonic` ticks but 64 times a second on some systems
