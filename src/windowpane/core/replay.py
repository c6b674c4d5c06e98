"""Answers that are read one after the other from counts of values: a result for every tuple."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.kernels.replay import replay_distinct, replay_frequent, replay_quantiles
from windowpane.core.kernels.rolling import Small
from windowpane.core.partials.base import Ranged


@dataclass(frozen=True)
class Replay:
    """The values of a step by key, how often each is there before it, its changes, and who answers when.

    `kernels/replay.py` says what the arrays mean. Each aggregate replays the changes for itself, in memory of
    16 bytes for each value: its values cost once for a step, changes and answers a logarithm of them each.
    """

    offsets: Ints
    codes: Ints
    held: Ints
    changes: Ints
    of: Small
    key: Small
    upto: Ints

    def reordered(self, ranks: Ints) -> Replay:
        """The same with each key's values in the order of these ranks, one for each place."""
        owner = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        order = np.lexsort((ranks, owner))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        comes = self.changes >= 0
        at = place[np.where(comes, self.changes, ~self.changes)]
        return replace(self, codes=self.codes[order], held=self.held[order], changes=np.where(comes, at, ~at))

    def distinct(self) -> Ints:
        """The number of distinct values of each answer."""
        return replay_distinct(self.offsets, self.held, self.changes, self.of, self.key, self.upto)

    def quantiles(self, shares: Floats) -> tuple[Ints, Ints, Floats]:
        """For each answer and share: the places on either side (-1: no value), and how far between."""
        return replay_quantiles(self.offsets, self.held, self.changes, self.of, self.key, self.upto, shares)

    def frequent(self, most: int, share: float) -> tuple[Ints, Ints, Ints, Ints, Bools]:
        """For each answer where its list begins and its length; places and counts; which have no value."""
        return replay_frequent(
            self.offsets, self.held, self.changes, self.of, self.key, self.upto, most, share
        )


@dataclass(frozen=True)
class Replayed(Ranged):
    """Answers of a replay in the place of ranges of rows: one for each range."""

    replay: Replay
