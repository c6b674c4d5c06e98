"""Seen: what one task saw of a stream's times. It goes to every bucket, so that all find the same bound.

A task cannot know which rows are too far ahead, since that depends on the stream's progress. So it tells
its times as runs: rows whose times follow each other with no gap above `max_ahead`. So it does for markers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.arrays import Bools, Ints
from windowpane.core.beginning import far_apart
from windowpane.core.columns import read_column, read_time
from windowpane.core.required import first_null
from windowpane.plan.nodes import Stream
from windowpane.values.errors import BadQuery
from windowpane.values.punctuation import Heartbeat, Melded, Policy, Slack, marker_of

Run = tuple[str, int, int, int]
"""Rows that are near each other: their source, smallest and largest time, and how many they are."""
MOST_SLACK = 10_000
"""Tuples of slack on Spark: the largest times so far travel with every micro-batch."""


@dataclass
class Seen:
    """Times by source: runs of rows, runs of markers, and the largest times for a slack.

    `bound` and `now` come from upstream, by hand or from the clock. The counts are of rows that are not sent.
    """

    runs: list[Run] = field(default_factory=list)
    marked: list[Run] = field(default_factory=list)
    tops: list[tuple[str, list[int]]] = field(default_factory=list)
    bound: int | None = None
    now: int | None = None
    markers: int = 0
    null_time: int = 0
    out_of_range: int = 0
    null_required: int = 0

    def to_bytes(self) -> bytes:
        """As JSON."""
        return json.dumps(self.__dict__, separators=(",", ":")).encode()

    def elsewhere(self) -> Seen:
        """The same for a bucket that is not to count the rows too."""
        return Seen(self.runs, self.marked, self.tops, self.bound, self.now)

    def too_far_ahead(self, limit: int) -> int:
        """How many of the markers that are counted here are at or above the limit."""
        return sum(rows for _, low, _, rows in self.marked if low >= limit) if self.markers else 0

    @classmethod
    def from_bytes(cls, data: bytes) -> Seen:
        """What `to_bytes` gave."""
        return cls(**json.loads(data))

    @classmethod
    def merged(cls, parts: Iterable[Seen]) -> Seen:
        """What all tasks saw together."""
        whole = cls()
        for part in parts:
            whole.runs += part.runs
            whole.marked += part.marked
            whole.tops += part.tops
            whole.bound = _larger(whole.bound, part.bound)
            whole.now = _larger(whole.now, part.now)
            whole.markers += part.markers
            whole.null_time += part.null_time
            whole.out_of_range += part.out_of_range
            whole.null_required += part.null_required
        return whole


@dataclass(frozen=True)
class Watch:
    """What a task looks for in the rows of a stream."""

    time: str
    max_ahead: int | None
    marker: str | None
    source: str | None
    slack: int | None
    required: tuple[str, ...] = ()

    def split(self, batch: pa.RecordBatch, seen: Seen) -> tuple[pa.RecordBatch, Ints, pa.RecordBatch]:
        """The rows that are data, their times, and the rows that are not; what was seen is noted.

        Rows that are no data have no time or lack a required column, or they are markers.
        """
        time, valid, bad = read_time(batch.column(self.time), self.time)
        placed = np.ones(len(time), np.bool_) if valid is None else valid
        placed = placed if bad is None else placed & ~bad
        marker = flagged(batch, self.marker) & placed
        data = placed & ~marker
        lacks = first_null(batch, self.required)
        if lacks is not None:
            data &= lacks == 0
        if bool(data.all()):
            other = batch.slice(0, 0)
        else:
            null = 0 if valid is None else int((~valid).sum())
            seen.null_time += null
            seen.out_of_range += int((~placed).sum()) - null
            seen.markers += int(marker.sum())
            seen.null_required += int((placed & ~marker & ~data).sum())
            seen.marked += self._runs(batch.filter(pa.array(marker)), time[marker])[0]
            other = batch.filter(pa.array(~data))
            batch, time = batch.filter(pa.array(data)), time[data]
        runs, tops = self._runs(batch, time)
        seen.runs += runs
        seen.tops += tops
        return batch, time, other

    def _runs(self, batch: pa.RecordBatch, time: Ints) -> tuple[list[Run], list[tuple[str, list[int]]]]:
        """The runs of rows, and of each the times that a slack may need."""
        if len(time) == 0:
            return [], []
        low, top = int(time.min()), int(time.max())
        near = self.max_ahead is None or top - low <= self.max_ahead
        if self.source is None and self.slack is None and near:
            return [("", low, top, len(time))], []
        names, code = self._sources(batch)
        order = np.lexsort((time, code))
        sorted_, by = time[order], code[order]
        first = np.concatenate([[True], by[1:] != by[:-1]])
        if not near:
            first[1:] |= far_apart(sorted_, self.max_ahead or 0)
        heads = np.nonzero(first)[0]
        ends = np.append(heads[1:], len(time))
        of = [names[c] for c in by[heads].tolist()]
        lows, highs = sorted_[heads].tolist(), sorted_[ends - 1].tolist()
        runs = list(zip(of, lows, highs, (ends - heads).tolist(), strict=True))
        if self.slack is None:
            return runs, []
        # of each run, since those above the stream's progress will not count
        cuts = zip(of, np.maximum(heads, ends - self.slack - 1).tolist(), ends.tolist(), strict=True)
        return runs, [(name, sorted_[head:end].tolist()) for name, head, end in cuts]

    def _sources(self, batch: pa.RecordBatch) -> tuple[list[str], Ints]:
        """The names of the sources of a batch, and which one each row is of."""
        if self.source is None:
            return [""], np.zeros(batch.num_rows, np.int64)
        column = source_names(batch.column(self.source)).dictionary_encode()
        return column.dictionary.to_pylist(), column.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def flagged(batch: pa.RecordBatch, marker: str | None) -> Bools:
    """Which rows are markers."""
    if marker is None:
        return np.zeros(batch.num_rows, np.bool_)
    column = read_column(batch.column(marker), marker)
    flag: Bools = column.values != 0
    return flag if column.valid is None else flag & column.valid


def source_names(column: pa.Array) -> pa.Array:
    """Sources as texts; a null is a source of its own."""
    return pc.fill_null(column.cast(pa.string()), "null")


def watch_of(stream: Stream) -> Watch:
    """What the tasks of a stream look for."""
    policy: Policy = stream.policy
    policy = policy.policy if isinstance(policy, Heartbeat) else policy
    source = policy.source if isinstance(policy, Melded) else None
    inner = policy.policy if isinstance(policy, Melded) else policy
    slack = inner.rows if isinstance(inner, Slack) else None
    if slack is not None and slack > MOST_SLACK:
        raise BadQuery(
            f"a slack of {slack} rows is too much on Spark. Give at most {MOST_SLACK}, or a delay."
        )
    return Watch(stream.time, stream.max_ahead, marker_of(stream.policy), source, slack, stream.required)


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)
