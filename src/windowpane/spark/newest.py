"""The newest row of each key: a result is never older than the one before it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from windowpane.core.arrays import NEVER, Bools, Ints, Values

Order = tuple[Ints, ...]
"""What tells the newer of two rows: their times and, where the stream has them, the ties of equal times."""

_PARTS = ("newest", "ties")


class Newest:
    """By key id, the order of the newest row that waits or was served; of equal ones the last counts.

    A key that is not known may have had results up to the time `floor`: it was forgotten.
    """

    def __init__(self, *, ties: bool) -> None:
        self.order: Order = tuple(np.empty(0, np.int64) for _ in range(1 + ties))
        self.floor = int(NEVER)

    def __len__(self) -> int:
        return len(self.time)

    @property
    def time(self) -> Ints:
        """The time of each key's newest row."""
        return self.order[0]

    def know(self, keys: int) -> None:
        """There are so many keys now."""
        new = keys - len(self)
        firsts = (self.floor, int(NEVER))
        self.order = tuple(
            np.append(known, np.full(new, first)) for known, first in zip(self.order, firsts, strict=False)
        )

    def older(self, ids: Ints, order: Order) -> Bools:
        """Which rows of these keys are older than the newest."""
        found, same = np.zeros(len(ids), np.bool_), np.ones(len(ids), np.bool_)
        for known, own in zip(self.order, order, strict=True):
            found |= same & (own < known[ids])
            same &= own == known[ids]
        return found

    def rise(self, ids: Ints, order: Order) -> None:
        """These rows came; those of a key are in rising order."""
        newer = ~self.older(ids, order)
        for known, own in zip(self.order, order, strict=True):
            known[ids[newer]] = own[newer]

    def parts(self) -> dict[str, Ints]:
        """The order by name, to be stored."""
        return dict(zip(_PARTS, self.order, strict=False))

    def take_over(self, floor: int, keys: int, ids: Ints, parts: Mapping[str, Values]) -> None:
        """Go on from what is stored of these of so many keys; a state of before has no ties."""
        self.floor = floor
        self.know(keys)
        for name, known in self.parts().items():
            if name in parts:
                known[ids] = parts[name]

    def keep(self, live: Bools) -> None:
        """Forget the keys that are not live, and number the others anew, in order."""
        self.floor = max(self.floor, int(self.time[~live].max()))
        self.order = tuple(known[live] for known in self.order)
