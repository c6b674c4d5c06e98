"""Progress: punctuation as data. Every task tells every bucket which times it saw.

A task cannot know which rows are too far ahead, since that depends on the stream's progress. So it
describes its times by narrow cells (smallest, largest, rows), from which each bucket finds the same bound:
cells are taken in rising order, and one that begins more than `max_ahead` above the progress is left out
with all above it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from windowpane.core.arrays import ALWAYS, NEVER, Ints
from windowpane.values.errors import BadQuery
from windowpane.values.punctuation import Delay, External, Manual, Policy

CELLS = 16
"""Cells per `max_ahead`: rows of one cell are never far ahead of each other."""


@dataclass(frozen=True)
class Rule:
    """How a bound follows from times; the part of a policy that Spark's tasks can follow together."""

    delay: int | None
    max_ahead: int | None
    marker: str | None

    def cells(self, time: Ints) -> Ints:
        """Rows of (smallest, largest, count), one per cell of times; sorted."""
        if len(time) == 0:
            return np.empty((0, 3), np.int64)
        if self.max_ahead is None:
            return np.array([[time.min(), time.max(), len(time)]], np.int64)
        width = max(self.max_ahead // CELLS, 1)
        cell = time // width
        if cell.min() == cell.max():
            return np.array([[time.min(), time.max(), len(time)]], np.int64)
        order = np.argsort(time, kind="stable")
        heads = np.concatenate([[0], np.nonzero(np.diff(cell[order]))[0] + 1])
        ends = np.append(heads[1:], len(time))
        return np.stack([time[order][heads], time[order][ends - 1], ends - heads], axis=1)


def rule_of(policy: Policy, max_ahead: int | None) -> Rule:
    """The rule for a policy; policies that depend on the order of arrival have none on Spark."""
    match policy:
        case Delay(length):
            return Rule(length, max_ahead, None)
        case External(column):
            return Rule(None, max_ahead, column)
        case Manual():
            return Rule(None, max_ahead, None)
    raise BadQuery(
        f"the punctuation {policy!r} is not available on Spark, where rows of a micro-batch have no order. "
        "Use delay(...), ordered(), external(column) or manual()."
    )


@dataclass(frozen=True)
class Progress:
    """How far the stream has come: its bound, its largest time, and what 'ahead' is measured from."""

    bound: int = NEVER
    high: int = NEVER
    anchor: int = NEVER

    def advanced(self, rule: Rule, cells: Ints, marked: int) -> Progress:
        """After a micro-batch whose tasks saw these cells and markers up to `marked` (NEVER: none)."""
        after = self._taken(rule, cells)
        bound = after.bound
        if rule.delay is not None and after.high > NEVER:
            bound = max(bound, after.high - rule.delay)
        return replace(after, bound=max(bound, marked))

    def _taken(self, rule: Rule, cells: Ints) -> Progress:
        if len(cells) == 0:
            return self
        cells = cells[np.argsort(cells[:, 0], kind="stable")]
        if rule.max_ahead is None:
            return replace(self, high=max(self.high, int(cells[:, 1].max())))
        anchor = self.anchor
        if anchor == NEVER:
            middle = int(np.searchsorted(np.cumsum(cells[:, 2]), (cells[:, 2].sum() + 1) // 2))
            anchor = int(cells[middle, 0])
        reach, high = max(anchor, self.high, self.bound), self.high
        for low, top, _ in cells:
            if low > reach + rule.max_ahead:
                break
            reach, high = max(reach, int(top)), max(high, int(top))
        return replace(self, high=high, anchor=anchor)

    def limit(self, rule: Rule, cells: Ints) -> int:
        """The smallest time that is too far ahead in this micro-batch; ALWAYS if none is."""
        if rule.max_ahead is None:
            return int(ALWAYS)
        return max(self._taken(rule, cells).high, self.bound, self.anchor) + 1

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"bound": self.bound, "high": self.high, "anchor": self.anchor}
