"""How much less staleness could any policy have? What can be computed, and what is known in hindsight.

Our policy serves the key that is most overdue at a price of services, and learns rates and price. The same
rule with the true rates and the best of many prices, found afterwards, shows what better learning could gain.
Where keys are few or alike, the least staleness of any policy can be computed, and shows what is left then.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from windowpane.core.arrays import Floats
from windowpane.simulate.optimum import due, in_slots, optimum
from windowpane.simulate.overload import Arrivals, simulate_due

PRICES: Floats = 0.025 * np.power(1.35, np.arange(17.0))
"""What a service is to save, in (cost * keys) ** 2."""
LIKELY = slice(4, 10)
"""Those among which the best one is for ten keys in two classes."""
SERVICES = 9
"""Waits of more than so many services count as that where the least staleness is computed."""

Pair = tuple[float, float]
"""Queue and application staleness."""


def hindsight(shares: Floats, load: float, streams: Iterable[Arrivals], measured: float) -> float:
    """The application staleness of the most overdue first, with true rates and the best of all prices."""
    waits = [due(shares, part * (load * len(shares)) ** 2) for part in PRICES]
    found = [
        [simulate_due(stream, load, wait, measured=measured).staleness.average_application for wait in waits]
        for stream in streams
    ]
    return float(np.mean(found, axis=0).min())


def least_of(shares: Floats, load: float, *, slots: int) -> Pair:
    """The least staleness that any policy can have."""
    queue, application = (
        optimum(shares, load, application=kind, slots=slots, services=SERVICES) for kind in (False, True)
    )
    return queue, application


def room_of(shares: Floats, load: float, *, slots: int, prices: Floats = PRICES) -> float:
    """The application staleness of the most overdue first, at its best price, over the least of any policy.

    For a consumer that looks at its queue at the ends of slots only, so many in a service.
    """
    given = prices * (load * len(shares)) ** 2
    least, found = in_slots(shares, load, application=True, slots=slots, services=SERVICES, prices=given)
    return min(found) / least
