"""Average staleness of keys, as the application sees it and as the queue does (Moga 2009, 3.3 and 5.1).

At time t a key's staleness is t minus the arrival of its oldest update that no result covers (application: no
delivered result; queue: no service), and 0 where there is none. Averages are over time, then over keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Floats
from windowpane.core.kernels.update_queue import MEASURED, Keys


@dataclass(frozen=True, slots=True)
class Staleness:
    """Average staleness over a span of time, by key id; in the unit of the times."""

    queue: Floats
    application: Floats
    span: float

    @property
    def average_queue(self) -> float:
        """Queue staleness averaged over the keys."""
        return float(self.queue.mean()) if len(self.queue) else 0.0

    @property
    def average_application(self) -> float:
        """Application staleness averaged over the keys."""
        return float(self.application.mean()) if len(self.application) else 0.0


def staleness_of(keys: Keys, totals: Floats, count: int, now: float) -> Staleness:
    """The averages of the first `count` keys from the start of the measurement until now."""
    measured = float(totals[MEASURED])
    span = now - measured
    if not span > 0.0:
        return Staleness(np.zeros(count), np.zeros(count), 0.0)
    queue = keys.queue_area[:count] + areas(
        keys.first[:count], np.maximum(measured, keys.served[:count]), now
    )
    application = keys.application_area[:count] + areas(
        keys.pending[:count], np.maximum(measured, keys.delivered[:count]), now
    )
    return Staleness(queue / span, application / span, span)


def areas(since: Floats, counted: Floats, until: float) -> Floats:
    """For each key the integral of (t - since) over t from `since` or `counted`, the later, to `until`."""
    begin = np.minimum(np.maximum(since, counted), until)
    age = np.where(since < until, until - since, 0.0)
    span = until - begin
    return span * (age - 0.5 * span)
