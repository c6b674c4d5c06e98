"""Ids of kept tuples, by which duplicates are known; forgotten once the bound passed their tuples.

Runs are values: some thousand ids at most, sorted by the times of their tuples, each a block of the state.
New ids make small runs, which are merged while they are of like size, so that a batch rewrites few blocks.
Runs that the bound passed go, and of those that it passed by half the rest becomes a new one. A table finds
ids among all runs; it is made anew where it knows mostly what is forgotten, and where a push is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import NEVER, Bools, Ints, Values
from windowpane.core.blocks import plain, write_table
from windowpane.core.forgetting import SPARE
from windowpane.core.hashing import hash_columns
from windowpane.core.kernels.hashing import Words
from windowpane.core.keys import KeyTable
from windowpane.core.lane_blocks import CHUNK, Reader, Writer
from windowpane.core.required import first_null

_NONE: Words = np.empty(0, np.uint64)
_WIDTH = 24
"""Bytes of an id in a run."""


@dataclass(eq=False, slots=True)
class Run:
    """Ids by 128 bits of their content hash, in order of their tuples' times; the digest once it was written.

    An id of one column of 64 bits or less cannot be taken for another at all.
    """

    first: Words
    second: Words
    time: Ints
    digest: str | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def middle(self) -> int:
        """The time that half of the ids are not above."""
        return int(self.time[len(self.time) // 2])

    def take(self, at: Values) -> Run:
        """The ids at these positions (or under this mask)."""
        return Run(self.first[at], self.second[at], self.time[at])

    def block(self) -> bytes:
        """As columns."""
        return write_table({"first": self.first, "second": self.second, "time": self.time})


Mark = tuple[tuple[Run, ...], int]
"""All that is remembered, and the time below which ids are forgotten."""


class Ids:
    """The ids of a stream's kept tuples at or above the bound (less the allowed lateness)."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self._runs: tuple[Run, ...] = ()
        self._below = int(NEVER)
        self._table, self._time = KeyTable(), np.empty(0, np.int64)

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._table.nbytes + self._time.nbytes + _WIDTH * len(self)

    def once(self, batch: pa.RecordBatch, time: Ints) -> tuple[pa.RecordBatch, Ints]:
        """Tuples that have a place, without duplicates: of each id the first, and all with a null in it."""
        if len(time) == 0:
            return batch, time
        fresh = self._fresh(batch, time)
        return (batch, time) if fresh is None else (batch.filter(pa.array(fresh)), time[fresh])

    def forget(self, below: int) -> None:
        """Tuples below this are late from now on, duplicates or not."""
        if below <= self._below:
            return
        self._below = below
        passed = [run for run in self._runs if run.middle < below]
        if passed:
            self._runs = tuple(run for run in self._runs if run.middle >= below)
            self._add(self._live(passed))
        if len(self._table) > 2 * len(self) + SPARE:
            self.rewind(self.mark)

    @property
    def mark(self) -> Mark:
        """What is remembered now, to go back to."""
        return self._runs, self._below

    def rewind(self, mark: Mark) -> None:
        """Remember what was remembered then."""
        self._runs, self._below = mark
        live = self._live(self._runs)
        self._table, self._time = KeyTable(), live.time
        self._table.encode(live.first, live.second)

    def write(self, writer: Writer) -> None:
        """Put a block for each run; those of runs that were put before are as they were."""
        for run in self._runs:
            run.digest = writer.lasting("runs", run.digest, run.block)

    def read(self, reader: Reader, below: int) -> None:
        """Go on from blocks that were written when tuples below this time were late."""
        found = (
            Run(plain(table, "first"), plain(table, "second"), plain(table, "time"), digest)
            for table, digest in reader.tables("runs")
        )
        self.rewind((tuple(found), below))

    def _fresh(self, batch: pa.RecordBatch, time: Ints) -> Bools | None:
        """Which tuples are no duplicates, None if all; their ids are noted."""
        lacks = first_null(batch, self.columns)
        at = np.arange(len(time)) if lacks is None else np.flatnonzero(lacks == 0)
        some = batch.select(self.columns)
        some = some if lacks is None else some.take(pa.array(at))
        first, second = hash_columns(some.columns, self.columns)
        new = self._new(first, second, time[at])
        self._add(Run(first[new], second[new], time[at[new]]))
        if len(new) == len(at):
            return None
        fresh = np.ones(len(time), np.bool_)
        fresh[at] = False
        fresh[at[new]] = True
        return fresh

    def _new(self, first: Words, second: Words, time: Ints) -> Ints:
        """Where ids come that are not known, or whose tuples the bound passed: these may be used again."""
        known = len(self._table)
        ids, new = self._table.encode(first, second)
        if len(self._table) > len(self._time):
            self._time = np.concatenate([self._time, np.empty(max(len(new), known), np.int64)])
        self._time[known : known + len(new)] = time[new]
        again = np.flatnonzero(self._time[ids] < self._below)
        if len(again) == 0:
            return new
        again = again[np.unique(ids[again], return_index=True)[1]]
        self._time[ids[again]] = time[again]
        return np.concatenate([new, again])

    def _add(self, run: Run) -> None:
        """Cut the ids into runs, and merge those at the end that are small."""
        runs, order = list(self._runs), np.argsort(run.time, kind="stable")
        for low in range(0, len(run), CHUNK):
            runs.append(run.take(order[low : low + CHUNK]))
            while len(runs) > 1 and _alike(runs[-2], runs[-1]):
                both = _stacked(runs[-2:])
                runs[-2:] = [both.take(np.argsort(both.time, kind="stable"))]
        self._runs = tuple(runs)

    def _live(self, runs: Iterable[Run]) -> Run:
        """The ids of some runs that are not forgotten."""
        whole = _stacked(list(runs))
        return whole.take(whole.time >= self._below)


def _alike(a: Run, b: Run) -> bool:
    return len(a) < 2 * len(b) and len(a) + len(b) <= CHUNK


def _stacked(runs: Sequence[Run]) -> Run:
    none = Run(_NONE, _NONE, np.empty(0, np.int64))
    parts = [(run.first, run.second, run.time) for run in (none, *runs)]
    first, second, time = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Run(first, second, time)
