"""The clock of an update queue: what it says is checked, since one wrong time would spoil all averages."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from windowpane.values.errors import BadQuery


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds that a function tells; they must never go back."""

    source: Callable[[], object]

    def __call__(self) -> float:
        """What time it is."""
        found = self.source()
        if isinstance(found, float | Real) and math.isfinite(found):
            return float(found)
        raise BadQuery(f"the clock says {found!r}, which is no time. Give a function that returns seconds.")


def clock_of(clock: Callable[[], object] | None) -> Clock:
    """The clock that a user gave; by default the system's."""
    if clock is not None and not callable(clock):
        raise BadQuery(
            f"clock={clock!r} cannot be called. Give a function that returns seconds, such as time.monotonic."
        )
    return Clock(clock or time.monotonic)
