"""Pending tuples: those that the punctuation has not settled yet, in event-time order.

Windows that depend on the order of tuples (positions, markers, non-commutative aggregates) wait for the
punctuation here; once settled, tuples are in order for good and only their partials are kept.
Equal times are ordered by the tie column, a hash of the tuple's content, so that the order does not
depend on arrival.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windowpane.core.arrays import Bools, Ints, Tuples, concat_tuples
from windowpane.core.kernels import tables

TIE = "$tie"


@dataclass(frozen=True, slots=True)
class Settling:
    """The result of adding a batch: what is settled now, what waits, and which of both just arrived."""

    settled: Tuples
    waiting: Tuples
    settled_fresh: Bools
    waiting_fresh: Bools

    def arrived(self) -> Tuples:
        """The tuples that just arrived, settled ones first."""
        return concat_tuples(self.settled.take(self.settled_fresh), self.waiting.take(self.waiting_fresh))


def settle(pending: Tuples, new: Tuples, bound: int) -> Settling:
    """Sort a batch in and take out the tuples below `bound`."""
    both = concat_tuples(pending, new)
    if len(both) == 0:
        none = np.empty(0, np.bool_)
        return Settling(both, both, none, none)
    tie = tie_of(both)
    arrived = len(pending) + tables.time_order(both.time[len(pending) :], tie[len(pending) :])
    order = tables.merge_order(both.time, tie, np.arange(len(pending)), arrived)
    cut = int(np.searchsorted(both.time, bound, sorter=order, side="left"))
    fresh = order >= len(pending)
    settled = replace(both.take(order[:cut]), rising=True)
    return Settling(settled, both.take(order[cut:]), fresh[:cut], fresh[cut:])


def tie_of(tuples: Tuples) -> Ints:
    """The tie column of a batch of pending tuples."""
    return tuples.columns[TIE].values
