"""Average staleness of keys, as the application sees it and as the queue does (Moga 2009, 3.3 and 5.1).

At time t a key's staleness is t minus the arrival of its oldest update that no result covers (application: no
delivered result; queue: no service), and 0 where there is none. Averages are over time, then over keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Bools, Floats
from windowpane.core.kernels.update_queue import (
    APPLICATION_AREA,
    FORGOTTEN,
    MEASURED,
    QUEUE_AREA,
    Keys,
    stale_areas,
)


class Averages:
    """Averages over keys, for what has the staleness of each.

    `forgotten` is of keys that are not known any more: how many, and the sums of their averages.
    """

    __slots__ = ()

    queue: Floats
    application: Floats
    forgotten: tuple[int, float, float]

    @property
    def average_queue(self) -> float:
        """Queue staleness averaged over the keys."""
        return _mean_of(self.queue, self.forgotten[0], self.forgotten[1])

    @property
    def average_application(self) -> float:
        """Application staleness averaged over the keys: what the policies are there to lower."""
        return _mean_of(self.application, self.forgotten[0], self.forgotten[2])


@dataclass(frozen=True, slots=True)
class Staleness(Averages):
    """Average staleness over a span of time, by key id; in the unit of the times."""

    queue: Floats
    application: Floats
    span: float
    forgotten: tuple[int, float, float] = (0, 0.0, 0.0)


def _mean_of(by_key: Floats, others: int, total: float) -> float:
    """The mean over keys and over some others, of which the sum is known."""
    count = len(by_key) + others
    return (float(by_key.sum()) + total) / count if count else 0.0


def staleness_of(keys: Keys, totals: Floats, count: int, now: float) -> Staleness:
    """The averages of the first `count` keys from the start of the measurement until now."""
    measured = float(totals[MEASURED])
    span = now - measured
    if not span > 0.0:
        return Staleness(np.zeros(count), np.zeros(count), 0.0)
    queue, application = np.empty(count), np.empty(count)
    stale_areas(keys, measured, float(now), queue, application)
    gone = (
        int(totals[FORGOTTEN]),
        float(totals[QUEUE_AREA]) / span,
        float(totals[APPLICATION_AREA]) / span,
    )
    return Staleness(queue / span, application / span, span, gone)


def forget(keys: Keys, totals: Floats, gone: Bools, now: float) -> None:
    """Count the staleness of keys that are forgotten now with that of all who were before."""
    found = staleness_of(keys, totals, len(gone), now)
    totals[FORGOTTEN] += np.count_nonzero(gone)
    totals[QUEUE_AREA] += found.queue[gone].sum() * found.span
    totals[APPLICATION_AREA] += found.application[gone].sum() * found.span
