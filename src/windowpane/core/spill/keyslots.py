"""Keys and texts as numbers that blocks on disk can hold.

A number stays with its key, or text, until no row has it any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Bools, Ints
from windowpane.core.forgetting import SPARE
from windowpane.core.kernels.rolling import Small
from windowpane.core.keys import KeyIndex


class KeySlots:
    """A key index whose ids may be renumbered, and a number for each key that is not; a text is a key here.

    Numbers of forgotten keys are given to new keys, so they are at most as many as keys were in use at once.
    """

    def __init__(self, names: Sequence[str], types: Sequence[pa.DataType]) -> None:
        self.index = KeyIndex(names, types)
        self.slot_of: Small = np.zeros(0, np.int32)
        self.id_of: Ints = np.zeros(0, np.int64)
        self._free: list[int] = []
        self._in_use = 0

    def __len__(self) -> int:
        """One more than the largest number given so far."""
        return len(self.id_of)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self.index.nbytes + self.slot_of.nbytes + self.id_of.nbytes + 8 * len(self._free)

    def encode(self, arrays: Sequence[Any], rows: int) -> Small:
        """The number of each row's key."""
        ids = self.index.encode(arrays, rows)
        known = len(self.slot_of)
        if len(self.index) > known:
            fresh = np.arange(known, len(self.index))
            again = self._free[: len(fresh)]
            del self._free[: len(fresh)]
            more = np.arange(len(self.id_of), len(self.id_of) + len(fresh) - len(again))
            given = np.concatenate([np.array(again, np.int64), more])
            self.slot_of = np.concatenate([self.slot_of, given.astype(np.int32)])
            self.id_of = np.concatenate([self.id_of, np.full(len(more), -1, np.int64)])
            self.id_of[given] = fresh
        return self.slot_of[ids]

    def crowded(self, most_live: int) -> bool:
        """Whether to look which keys are in use: they doubled since, or at most so many can be: few."""
        return len(self.index) > 2 * min(self._in_use, most_live) + SPARE

    def forget(self, live: Bools) -> None:
        """Forget the keys whose numbers are not live, if they are most of all."""
        self._in_use = int(live.sum())
        if not self.index.names or 2 * self._in_use + SPARE >= len(self.index):
            return
        kept = live[self.slot_of]
        gone = self.slot_of[~kept]
        place = self.index.compact(kept)
        self.slot_of = self.slot_of[kept]
        self.id_of[gone] = -1
        stay = self.id_of >= 0
        self.id_of[stay] = place[self.id_of[stay]]
        # the largest numbers go for good if they are free, so that what has an entry for each can shrink
        in_use = np.flatnonzero(self.id_of >= 0)
        self.id_of = self.id_of[: int(in_use[-1]) + 1 if len(in_use) else 0].copy()
        self._free = np.flatnonzero(self.id_of < 0).tolist()

    def ids(self, slots: Small) -> Ints:
        """The index's ids of keys by their numbers."""
        return self.id_of[slots]

    def values(self, slots: Ints) -> pa.Array:
        """The values of the first key column, by numbers."""
        return self.index.values(self.id_of[slots])[0]

    def arrays(self) -> dict[str, Ints]:
        """The numbers, for a checkpoint."""
        return {"slot_of": self.slot_of.astype(np.int64), "id_of": self.id_of}

    def restore(self, arrays: Mapping[str, Any], index: KeyIndex) -> None:
        """Go on from a checkpoint."""
        self.index = index
        self.slot_of, self.id_of = arrays["slot_of"].astype(np.int32), arrays["id_of"].copy()
        self._free = np.flatnonzero(self.id_of < 0).tolist()
