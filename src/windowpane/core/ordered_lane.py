"""The ordered lane: a slice lane whose aggregates are not commutative.

Tuples wait until they are settled and are then folded in event-time order, so that only waiting tuples
are kept. Answers that must come before everything is settled (allowed lateness, early results) are read
from a view: the settled slices with the waiting tuples folded in for the occasion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from windowpane.core.arrays import Tuples, no_tuples
from windowpane.core.emission import Emission, Group, Moment
from windowpane.core.pending import settle
from windowpane.core.slice_lane import SliceLane, SliceSpec, new_slice_lane


@dataclass(frozen=True)
class OrderedLane:
    """Settled slices and the tuples that wait."""

    slices: SliceLane
    pending: Tuples

    def step(self, tuples: Tuples, group: Group, moment: Moment) -> tuple[OrderedLane, list[Emission]]:
        """Settle what the punctuation allows, answer what closed, forget what no window needs."""
        s = settle(self.pending, tuples, moment.settled)
        slices, n_keys = self.slices, group.n_keys
        kept = slices.insert(slices.rows_of(s.settled, n_keys), n_keys)
        view, fresh, earlier = kept, slices.rows_of(no_tuples(), n_keys), slices.table
        if moment.lateness or moment.early:
            view = kept.insert(slices.rows_of(s.waiting, n_keys), n_keys)
            fresh = slices.rows_of(s.arrived(), n_keys)
        if moment.lateness and bool((tuples.time < moment.before).any()):
            earlier = slices.insert(slices.rows_of(self.pending, n_keys), n_keys).table
        answered, answers = view.answer(fresh, n_keys, moment, earlier)
        lane = replace(kept, ledger=answered.ledger).forget(moment)
        return OrderedLane(lane, s.waiting), answers

    @property
    def nbytes(self) -> int:
        """Memory held by slices and waiting tuples."""
        return self.slices.nbytes + tuple_bytes(self.pending)


def tuple_bytes(tuples: Tuples) -> int:
    """Memory held by a batch of tuples."""
    total = tuples.time.nbytes + tuples.key.nbytes
    for column in tuples.columns.values():
        total += column.values.nbytes
        total += 0 if column.valid is None else column.valid.nbytes
        total += 0 if column.order is None else column.order.nbytes
    return total


def new_ordered_lane(spec: SliceSpec) -> OrderedLane:
    """A lane that has seen nothing."""
    return OrderedLane(new_slice_lane(spec), no_tuples())
