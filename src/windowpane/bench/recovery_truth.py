"""What a run that `bench recovery` kills should publish, from the definitions alone, without the engine.

The rows of an output are compared with it by micro-batch: how many are missing, how many should not be there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np
import numpy.typing as npt

SECOND = 1_000_000
SIZE, SLIDE, GAP = 5 * SECOND, SECOND, 150_000
Numbers = npt.NDArray[np.int64]
Row = tuple[int, ...]
Rows = list[Row]


class Truth(Protocol):
    """What an output should hold."""

    def compare(self, batches: Sequence[Rows], /) -> tuple[int, int]:
        """How many rows are missing, and how many are there that should not be."""


@dataclass(frozen=True)
class Answers:
    """Rows that come so often each, in whichever micro-batch."""

    rows: Counter[Row]

    def compare(self, batches: Sequence[Rows]) -> tuple[int, int]:
        """Rows too few and too many."""
        found = Counter(chain.from_iterable(batches))
        return (self.rows - found).total(), (found - self.rows).total()


@dataclass(frozen=True)
class Updates:
    """Some rows of every key (key, time, value), once each, in order of time, and its newest in the end."""

    rows: Counter[Row]

    def compare(self, batches: Sequence[Rows]) -> tuple[int, int]:
        """Keys whose newest row did not come; rows that are none of theirs, came before or came too late."""
        left, newest, extra = self.rows.copy(), dict[int, int](), 0
        for row in chain.from_iterable(batches):
            key, time, _ = row
            extra += not left[row] or time < newest.get(key, time)
            left[row] -= 1
            newest[key] = max(time, newest.get(key, time))
        last: dict[int, int] = {}
        for key, time, _ in self.rows:
            last[key] = max(time, last.get(key, time))
        return sum(newest.get(key) != time for key, time in last.items()), extra


def sliding(time: Numbers, key: Numbers, value: Numbers) -> Answers:
    """Key, start, end, sum and count of every window `[start, start + SIZE)` that holds a row."""
    newest = time // SLIDE * SLIDE
    starts = np.concatenate([newest - i * SLIDE for i in range(SIZE // SLIDE)])
    pairs = np.stack([np.tile(key, SIZE // SLIDE), starts])
    found, group = np.unique(pairs, axis=1, return_inverse=True)
    n = np.bincount(group.ravel())
    total = np.bincount(group.ravel(), weights=np.tile(value, SIZE // SLIDE)).astype(np.int64)
    return Answers(_counted(found[0], found[1], found[1] + SIZE, total, n))


def sessions(time: Numbers, key: Numbers, value: Numbers) -> Answers:
    """Key, start, end, sum and count of every session: a gap of more than GAP ends it."""
    order = np.lexsort((time, key))
    time, key, value = time[order], key[order], value[order]
    first = np.concatenate([[True], (key[1:] != key[:-1]) | (np.diff(time) > GAP)])
    head = np.nonzero(first)[0]
    last = np.append(head[1:], len(time)) - 1
    total = np.add.reduceat(value, head)
    return Answers(_counted(key[head], time[head], time[last] + GAP, total, last - head + 1))


def updates(time: Numbers, key: Numbers, value: Numbers) -> Updates:
    """Key, time and twice the value of rows behind an update queue."""
    return Updates(_counted(key, time, 2 * value))


OF: dict[str, Callable[[Numbers, Numbers, Numbers], Truth]] = {
    "sliding": sliding,
    "sessions": sessions,
    "latest": updates,
}
"""The truth of each output, from the times, keys and values of the rows."""


def _counted(*columns: Numbers) -> Counter[Row]:
    return Counter(zip(*(column.tolist() for column in columns), strict=True))
