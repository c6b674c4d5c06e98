"""Progress: how far a stream has come, as every bucket finds it from what all tasks saw.

The rows of a micro-batch have no order. Its times are taken in rising order, so that the bound after it is
the one that the in-process clock has after the same rows in order of time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import ALWAYS, NEVER
from windowpane.core.beginning import beginning, markers_tell
from windowpane.core.clock import Clock
from windowpane.plan.nodes import Stream
from windowpane.spark.seen import Run, Seen, source_names
from windowpane.values.errors import BadQuery
from windowpane.values.punctuation import LONGEST, Heartbeat, Melded


class Progress:
    """The clock of a stream, moved by whole micro-batches."""

    def __init__(self, stream: Stream) -> None:
        # The clock is only asked for bounds: what is late or too far ahead is found by the bucket.
        self._clock = Clock(stream.policy, None, LONGEST)
        self._max_ahead, self._lateness = stream.max_ahead, stream.lateness
        self._anchor = NEVER
        self._sources: dict[str, int] = {}
        policy = stream.policy.policy if isinstance(stream.policy, Heartbeat) else stream.policy
        self._melded = isinstance(policy, Melded)
        self._listed = isinstance(policy, Melded) and bool(policy.sources)
        if isinstance(policy, Melded) and policy.sources:
            names = source_names(pa.array(policy.sources, stream.type(policy.source))).to_pylist()
            self._sources = {name: i for i, name in enumerate(names)}

    @property
    def bound(self) -> int:
        """No later row is below this."""
        return self._clock.bound

    @property
    def high(self) -> int:
        """The largest time that has a place, of all buckets; NEVER if there is none."""
        return self._clock.high

    @property
    def begun(self) -> bool:
        """Whether it is known where the stream begins, or there is no limit to how far ahead a row may be."""
        return self._max_ahead is None or self._anchor != NEVER

    @property
    def start(self) -> int:
        """Where the stream begins, as far as that is known."""
        return self._anchor

    def begin(self, runs: list[Run], marked: list[Run]) -> tuple[int, bool]:
        """Where the stream begins by its first rows, and whether only one has a place; see `first_tuples`."""
        low, top, rows = np.array([run[1:] for run in (*runs, *marked)], np.int64).T
        tell, data = rows.copy(), len(runs)
        tell[data:] *= markers_tell(int(rows[:data].sum()), int(rows[data:].sum()))
        start = beginning(low, top, tell, self._max_ahead or 0)
        return start, int(rows[top <= start].sum()) == 1

    def nears(self, time: int, seen: Seen) -> bool:
        """Whether a time is not too far ahead of the bound, which may come by hand or from the clock."""
        clock = self._clock.copy()
        bound = clock.bound if seen.bound is None else clock.punctuate(seen.bound)
        bound = bound if seen.now is None else clock.tick(seen.now)
        return bound != NEVER and time <= bound + (self._max_ahead or 0)

    def take(self, seen: Seen, start: int | None = None) -> int:
        """Move on; gives the smallest time that is too far ahead in this micro-batch (ALWAYS: none is).

        `start` is where the stream begins; if it is not given, the rows tell, though it be one alone. Rows
        that are late by the bound of the micro-batches before do not move it, as in one process.
        """
        if start is not None:
            self._anchor = start
        limit = self._limit(seen.runs, seen.marked)
        if seen.tops:
            points = [(time, source) for source, times in seen.tops for time in times if time < limit]
        else:
            points = [(time, run[0]) for run in seen.runs if run[1] < limit for time in run[1:3]]
        self._admit(sorted(points), markers=False)
        marks = [(top, source) for source, low, top, _ in seen.marked if low < limit]
        self._admit(sorted(marks), markers=True)
        if self._max_ahead is not None:  # they have a place, though other sources may hold the bound back
            self._anchor = max([self._anchor, *(top for top, _ in marks)])
        if seen.bound is not None:
            self._clock.punctuate(seen.bound)
        if seen.now is not None:
            self._clock.tick(seen.now)
        return limit

    def _limit(self, runs: list[Run], marked: list[Run]) -> int:
        """Runs are reached in rising order, each from those before it, until one is too far ahead."""
        all_ = sorted([*runs, *marked], key=_smallest)
        if self._max_ahead is None or not all_:
            return int(ALWAYS)
        if not self.begun:
            self._anchor = self.begin(runs, marked)[0]
        reach = max(self._anchor, self._clock.high, self.bound)
        for _, low, top, _ in all_:
            if low > reach + self._max_ahead:
                break
            reach = max(reach, top)
        return reach + 1

    def _admit(self, points: list[tuple[int, str]], *, markers: bool) -> None:
        if not points:
            return
        times = np.array([time for time, _ in points], np.int64)
        sources = np.array([self._source(name) for _, name in points], np.int64) if self._melded else None
        if not markers and self.bound != NEVER:
            counts = times >= self.bound - self._lateness
            times, sources = times[counts], None if sources is None else sources[counts]
        self._clock.admit(times, np.ones(len(times), np.bool_) if markers else None, sources)

    def need_listed(self, names: Iterable[str]) -> None:
        """An error if one of the sources is not among those that the policy lists, if it does."""
        for name in names:
            if self._listed and name not in self._sources:
                raise BadQuery(f"source {name!r} is not among the listed sources {', '.join(self._sources)}.")

    def _source(self, name: str) -> int:
        self.need_listed([name])
        return self._sources.setdefault(name, len(self._sources))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"clock": self._clock.snapshot(), "anchor": self._anchor, "sources": self._sources}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `to_json`."""
        self._clock.restore(state["clock"])
        self._anchor, self._sources = int(state["anchor"]), dict(state["sources"])


def _smallest(run: Run) -> int:
    return run[1]
