"""How stale the results behind an update queue have been."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Floats
from windowpane.core.upstream.staleness import Averages
from windowpane.local.object_keys import told_apart
from windowpane.local.update_arguments import at_least_one
from windowpane.values.errors import BadQuery


@dataclass(frozen=True, slots=True)
class Freshness(Averages):
    """How stale the results are, in seconds, averaged over the time since the queue was made.

    Attributes:
        keys: every key that was put and is not forgotten.
        queue: for each key, how long its oldest unserved update has been waiting, on average.
        application: for each key, how far its last delivered result is behind, on average.
        puts: how many tuples were put.
        gets: how many were got.
        lost: how many were overwritten by newer ones or shed.
        waiting: how many wait now.
        forgotten: of the keys that were forgotten, how many and the sums of their staleness (queue,
            application); the averages count them.
    """

    keys: tuple[Hashable, ...]
    queue: Floats
    application: Floats
    puts: int
    gets: int
    lost: int
    waiting: int
    forgotten: tuple[int, float, float] = (0, 0.0, 0.0)

    def __str__(self) -> str:
        """What happened, in a line."""
        counts = {"put": self.puts, "got": self.gets, "lost": self.lost, "waiting": self.waiting}
        told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
        return f"{told}; {len(self.keys):,} keys, {self.average_application:.3g} s behind on average"

    def stalest(self, most: int = 10) -> list[tuple[Hashable, float]]:
        """The keys whose results were furthest behind on average, with the seconds, the stalest first."""
        order = np.argsort(-self.application, kind="stable")[: at_least_one(most, "key")]
        return [(self.keys[i], float(self.application[i])) for i in order.tolist()]

    def of(self, key: Hashable) -> float:
        """The average application staleness of one key."""
        known = [told_apart(one) for one in self.keys]
        if told_apart(key) not in known:
            raise BadQuery(
                f"no key {key!r} is known: it was never put, or is forgotten since. Give one of `keys`; of "
                "several columns a key is a tuple."
            )
        return float(self.application[known.index(told_apart(key))])
