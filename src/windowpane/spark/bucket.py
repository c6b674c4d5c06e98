"""A bucket: one share of the keys. It takes a micro-batch's payloads in and gives its answers.

This is the whole of a processor but for Spark: the state comes and goes as named blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from windowpane.core.arrays import ALWAYS, NEVER, Ints
from windowpane.core.columns import read_time
from windowpane.core.emission import Moment
from windowpane.core.ids import Ids
from windowpane.core.lane_blocks import Blocks, Reader, Writer
from windowpane.core.operator import Operator
from windowpane.core.partials.counts import plain
from windowpane.core.required import first_null, null_in
from windowpane.core.rows import Rows
from windowpane.plan.nodes import Stream
from windowpane.spark.envelope import read_batches, tagged
from windowpane.spark.fold import read_slices
from windowpane.spark.parts import Part
from windowpane.spark.plain import Plain
from windowpane.spark.progress import Progress
from windowpane.spark.received import Beginning, Due, Received
from windowpane.spark.seen import Seen, flagged
from windowpane.values.punctuation import marker_of

LATE, REJECTS = "late", "rejects"
REASONS = ("", "too far ahead", "time out of range", "null time")


@dataclass
class Counts:
    """Rows of one micro-batch, exact; every row is counted by one bucket."""

    kept: int = 0
    late: int = 0
    markers: int = 0
    null_time: int = 0
    out_of_range: int = 0
    too_far_ahead: int = 0
    null_required: int = 0
    duplicates: int = 0

    def add(self, other: Counts) -> None:
        """Count the other's rows too."""
        for name, rows in asdict(other).items():
            setattr(self, name, getattr(self, name) + rows)


@dataclass(frozen=True)
class Work:
    """What a bucket does: its parts, and the outputs besides answers (LATE, REJECTS) that are wanted.

    `judge` is the part whose rule says which rows are late, where there are no parts. With `plain`, the rows
    of the only output are given as they are, and else all outputs as payloads.
    """

    stream: Stream
    parts: tuple[Part, ...]
    judge: Part
    strays: tuple[str, ...] = ()
    plain: Plain | None = None

    def given(
        self, tables: Mapping[str, list[pa.Table]], counts: Counts, *, state_bytes: int, bound: int, high: int
    ) -> pd.DataFrame:
        """The outputs of one bucket in one micro-batch as a frame, with notes in a row of their own."""
        answers = sum(len(table) for name in tables if name not in self.strays for table in tables[name])
        notes = {
            "answers": answers,
            **asdict(counts),
            "state_bytes": state_bytes,
            "bound": bound,
            "high": high,
        }
        return tagged(tables, notes) if self.plain is None else self.plain.frame(tables, notes)


class Bucket:
    """An operator for each part, with the progress of the stream as this bucket knows it."""

    reusable = True

    def __init__(self, work: Work) -> None:
        self.stream, self.parts, self.strays, self._work = work.stream, work.parts, work.strays, work
        self.operators: list[Operator] = [part.operator() for part in self.parts]
        # of each part, since each has its rows in buckets of its own
        self.ids = [Ids(self.stream.ids) for _ in self.parts] if self.stream.ids else []
        self._written: dict[str, Any] = {}
        self.progress = Progress(self.stream)
        self.beginning = Beginning(self.progress)

    def leads_to(self, header: Mapping[str, Any]) -> bool:  # noqa: ARG002 - others can
        """A bucket cannot itself go on from what another stored."""
        return False

    def attach(self, pages: Any) -> None:
        """All state is held."""

    def restore(self, header: Mapping[str, Any], blocks: Mapping[str, bytes]) -> None:
        """Go on from stored state."""
        self.progress.restore(header["progress"])
        self.beginning.restore(header)
        for i, operator in enumerate(self.operators):
            operator.restore(_Prefixed(f"{i}:", blocks))
        for i, (part, ids) in enumerate(zip(self.parts, self.ids, strict=False)):
            ids.read(Reader(f"ids {i}", blocks, header["ids"]), part.cutoff(self.progress.bound))

    def header(self) -> dict[str, object]:
        """What is stored beside the blocks."""
        ids = {"ids": self._written} if self.ids else {}
        return {"progress": self.progress.to_json(), **self.beginning.to_json(), **ids}

    def blocks(self) -> Blocks:
        """The state of all parts, each block with the number of its part before its name."""
        found, ids = Blocks(), Blocks()
        for i, operator in enumerate(self.operators):
            found.include(f"{i}:", operator.blocks())
        parts: dict[str, list[str]] = {}
        for i, known in enumerate(self.ids):
            known.write(Writer(f"ids {i}", ids, parts))
        self._written = {"parts": parts, "digests": ids.digests}
        found.include("", ids)
        return found

    def answer(self, received: Received, *, end: bool = False) -> pd.DataFrame:
        """Take a micro-batch in; its outputs as a frame, with notes on rows, state and bound."""
        tables, counts = self.step(received, end=end)
        bound = int(ALWAYS) if end else self.progress.bound
        high = self.progress.high
        return self._work.given(tables, counts, state_bytes=self.nbytes, bound=bound, high=high)

    @property
    def nbytes(self) -> int:
        """Memory held by the state."""
        return sum(operator.nbytes for operator in self.operators) + sum(ids.nbytes for ids in self.ids)

    def step(self, received: Received, *, end: bool = False) -> tuple[dict[str, list[pa.Table]], Counts]:
        """Take a micro-batch in; `end` closes every window. Gives the tables of each output, and counts."""
        tables: dict[str, list[pa.Table]] = {}
        counts = Counts()
        *waited, last = self.beginning.due(received, end=end)
        for due in (*waited, last):
            found, counted = self._step(due, end=end and due is last)
            counts.add(counted)
            for name, some in found.items():
                tables.setdefault(name, []).extend(some)
        return tables, counts

    def _step(self, due: Due, *, end: bool) -> tuple[dict[str, list[pa.Table]], Counts]:
        received = due.received
        before = self.progress.bound
        limit = self.progress.take(Seen.merged(received.seen), due.start)
        bound = int(ALWAYS) if end else self.progress.bound
        counts = unsent(received.seen, limit)
        # Where slices are sent, a row is late by the slices of its part: here, if any part leaves it out.
        cutoff, judge = max(
            (part.cutoff(before), -i) for i, part in enumerate(self.parts or (self._work.judge,))
        )
        tables: dict[str, list[pa.Table]] = {}
        for i, (part, operator) in enumerate(zip(self.parts, self.operators, strict=True)):
            early = any(query.emit == "update" for query in part.plan.queries)
            moment = Moment(before, bound, self.stream.lateness, early, self.progress.high)
            found = Sorted(received.payloads.get(i, []), part, before, limit)
            ids = self.ids[i] if self.ids else None
            tables |= found.folded(operator, moment) if part.folded else found.whole(operator, moment, ids)
            if i == -judge:
                counts.add(found.counts)
        if self.strays:
            strays = received.payloads.get(len(self.parts), [])
            others, counted = sort_strays(self.stream, self.strays, strays, cutoff, limit)
            tables |= others
            if not self.parts:
                counts.add(counted)
        return tables, counts


class _Prefixed(Mapping[str, bytes]):
    """The blocks of one part, by the names that the part gave them."""

    def __init__(self, prefix: str, blocks: Mapping[str, bytes]) -> None:
        self._prefix, self._blocks = prefix, blocks

    def __getitem__(self, name: str) -> bytes:
        return self._blocks[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        mine = (name for name in self._blocks if name.startswith(self._prefix))
        return (name.removeprefix(self._prefix) for name in mine)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def sort_strays(
    stream: Stream, wanted: tuple[str, ...], payloads: list[bytes], cutoff: int, limit: int
) -> tuple[dict[str, list[pa.Table]], Counts]:
    """The late rows, and those that have no place, with the reason; and counts of the rows with a time."""
    tables: dict[str, list[pa.Table]] = {name: [] for name in wanted}
    reasons = pa.array([*REASONS, *(null_in(column) for column in stream.required)])
    counts = Counts()
    for batch in (b for payload in payloads for b in read_batches(payload) if b.num_rows):
        time, valid, bad = read_time(batch.column(stream.time), stream.time)
        data = ~flagged(batch, marker_of(stream.policy))
        reason = np.zeros(len(time), np.int64)
        reason[time >= limit] = 1
        lacks = first_null(batch, stream.required)
        if lacks is not None:
            reason = np.where((lacks > 0) & data, lacks + len(REASONS) - 1, reason)
        if bad is not None:
            reason[bad] = 2
        if valid is not None:
            reason[~valid] = 3
        late = (reason == 0) & (time < cutoff) & data
        rows = pa.Table.from_batches([batch])
        if LATE in tables:
            tables[LATE].append(rows.filter(pa.array(late)))
        if REJECTS in tables:
            some = rows.filter(pa.array(reason > 0))
            why = reasons.take(pa.array(reason[reason > 0]))
            tables[REJECTS].append(some.append_column("reason", why))
        ahead, kept = (reason == 1) & data, (reason == 0) & data & ~late
        counts.add(Counts(kept=int(kept.sum()), late=int(late.sum()), too_far_ahead=int(ahead.sum())))
    return {name: [table for table in found if len(table)] for name, found in tables.items()}, counts


def unsent(seen: Iterable[Seen], limit: int) -> Counts:
    """The rows that tasks counted themselves, since no part gets them."""
    counts = Counts()
    for some in seen:
        ahead = some.too_far_ahead(limit)
        counts.add(
            Counts(
                markers=some.markers - ahead,
                null_time=some.null_time,
                out_of_range=some.out_of_range,
                too_far_ahead=ahead,
                null_required=some.null_required,
            )
        )
    return counts


class Sorted:
    """The payloads of a part in one micro-batch: what has a place, and how many rows have none."""

    def __init__(self, payloads: list[bytes], part: Part, bound: int, limit: int) -> None:
        self._payloads, self._part, self._limit = payloads, part, limit
        self._cutoff = part.cutoff(bound)
        self.counts = Counts()

    def folded(self, operator: Operator, moment: Moment) -> dict[str, list[pa.Table]]:
        """Step over slices that tasks folded; their row counts say how many rows have no place."""
        if not self._payloads:
            return operator.step(_no_rows(self._part.plan.stream), np.empty(0, np.int64), moment)
        keys, rows = read_slices(self._payloads, self._part.slicing.layout)
        code = self._codes(rows.start, plain(rows.partials[-1], 0))
        kept = rows if code is None else rows.take(code == 0)
        return operator.step_rows(keys, Rows(kept.start, kept.key, kept.partials[:-1]), moment)

    def whole(self, operator: Operator, moment: Moment, ids: Ids | None) -> dict[str, list[pa.Table]]:
        """Step over rows; where they have ids, over those that are no duplicates."""
        batch, time = self.rows()
        if ids is not None:
            batch, time = ids.once(batch, time)
            ids.forget(self._part.cutoff(moment.bound))
            self.counts.duplicates = self.counts.kept - len(time)
            self.counts.kept = len(time)
        return operator.step(batch, time, moment)

    def rows(self) -> tuple[pa.RecordBatch, Ints]:
        """The rows that have a place, and their times."""
        stream = self._part.plan.stream
        batches = [batch for payload in self._payloads for batch in read_batches(payload)]
        if not batches:
            return _no_rows(stream), np.empty(0, np.int64)
        batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        time = read_time(batch.column(stream.time), stream.time)[0]
        code = self._codes(time, None)
        if code is None:
            return batch, time
        return batch.filter(pa.array(code == 0)), time[code == 0]

    def _codes(self, time: Ints, weight: Ints | None) -> Any:
        """1 where late, 2 where too far ahead, None if no row is either; rows are counted by weight."""
        code = np.zeros(len(time), np.int8)
        if self._cutoff > NEVER:
            code[time < self._cutoff] = 1
        code[time >= self._limit] = 2
        found = np.bincount(code, weights=weight, minlength=3).astype(np.int64)
        self.counts = Counts(kept=int(found[0]), late=int(found[1]), too_far_ahead=int(found[2]))
        return code if code.any() else None


def _no_rows(stream: Stream) -> pa.RecordBatch:
    schema = pa.schema(list(stream.types))
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
