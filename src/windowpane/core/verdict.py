"""The verdict of the clock on the tuples of a batch."""

from __future__ import annotations

from dataclasses import dataclass

from windowpane.core.kernels.clock import KEPT, Codes


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a batch: a code per tuple, and the bound after it.

    Codes: 0 kept, 1 late, 2 too far ahead, 3 marker. `low` and `high` are the smallest and largest kept time
    of the batch (ALWAYS and NEVER if none); `in_order` says that kept times never fall and start at or
    above the largest kept before. `counts` has the rows of each code.
    """

    codes: Codes
    counts: tuple[int, int, int, int]
    in_order: bool
    low: int
    high: int
    bound: int

    @property
    def all_kept(self) -> bool:
        """Whether every tuple of the batch was kept."""
        return self.counts[KEPT] == len(self.codes)
