"""Admission: which rows of a batch have a place in the stream, and why the others do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import NEVER, Bools, Ints
from windowpane.core.clock import Clock
from windowpane.core.columns import read_column, read_time
from windowpane.core.ids import Ids, Mark
from windowpane.core.keys import KeyIndex
from windowpane.core.lane_blocks import Blocks, Reader, Writer
from windowpane.core.required import first_null, null_in
from windowpane.core.snapshot import read_keys
from windowpane.local.first import First, read_first
from windowpane.local.results import Counts
from windowpane.plan.nodes import Stream
from windowpane.values.errors import BadQuery, unknown_column, wrong_type
from windowpane.values.punctuation import External, Heartbeat, Melded

NULL_TIME, BAD_TIME, AHEAD = "null time", "time out of range", "too far ahead"
KEPT, LATE, TOO_FAR, MARKER = range(4)


@dataclass(frozen=True)
class Admitted:
    """A batch taken apart."""

    kept: pa.RecordBatch
    time: Ints
    rising: bool
    late: pa.Table
    rejects: pa.Table
    counts: Counts


@dataclass(frozen=True)
class Place:
    """Where a stream stands, to go back to."""

    clock: Clock
    ids: Mark | None
    first: First | None


class Gate:
    """Judges the rows of a stream in arrival order; holds the stream's clock, and ids if rows have them.

    It also holds the first row as long as it is alone: nothing tells yet whether its time is absurd.
    """

    def __init__(self, stream: Stream) -> None:
        _need_runnable(stream)
        self.stream = stream
        self.clock = Clock(stream.policy, stream.max_ahead, stream.lateness)
        self.ids = Ids(stream.ids) if stream.ids else None
        self.first: First | None = None
        policy = stream.policy.policy if isinstance(stream.policy, Heartbeat) else stream.policy
        # kept, because making an empty table costs as much as folding ten thousand rows
        self._schema = pa.schema(list(stream.types))
        self._given = stream.types if stream.derivation is None else stream.derivation.types
        self._given_schema = pa.schema(list(self._given))
        self.no_rejects = rejects_table(self._schema, [])
        self.no_late = self._schema.empty_table()
        self._melded = policy if isinstance(policy, Melded) else None
        inner = policy.policy if isinstance(policy, Melded) else policy
        self._marker = inner.column if isinstance(inner, External) else None
        self._sources: KeyIndex | None = None
        if self._melded is not None:
            kind = stream.type(self._melded.source)
            self._sources = KeyIndex([self._melded.source], [kind])
            if self._melded.sources:
                self._sources.encode([pa.array(self._melded.sources, kind)])

    def snapshot(self, blocks: Blocks) -> dict[str, Any]:
        """The clock and the sources; what is large goes to the blocks."""
        parts: dict[str, list[str]] = {}
        if self._sources is not None:
            Writer("sources", blocks, parts).blocks("keys", self._sources.blocks())
        if self.ids is not None:
            self.ids.write(Writer("ids", blocks, parts))
        digests = {name: blocks.digests[name] for names in parts.values() for name in names}
        held = {} if self.first is None else {"first": self.first.to_json()}
        return {"clock": self.clock.snapshot(), "parts": parts, "digests": digests, **held}

    def restore(self, state: Mapping[str, Any], blocks: Mapping[str, bytes]) -> None:
        """Go on from a snapshot of a gate of the same stream."""
        self.clock.restore(state["clock"])
        if self._sources is not None:
            index = self._sources
            self._sources = read_keys(index.names, index.types, Reader("sources", blocks, state))
        if self.ids is not None:
            self.ids.read(Reader("ids", blocks, state), self._below)
        self.first = read_first(state["first"]) if "first" in state else None

    def mark(self) -> Place:
        """Where the stream stands, to go back to."""
        return Place(self.clock.copy(), None if self.ids is None else self.ids.mark, self.first)

    def rewind(self, mark: Place) -> None:
        """Go back."""
        self.clock, self.first = mark.clock, mark.first
        if self.ids is not None and mark.ids is not None:
            self.ids.rewind(mark.ids)

    def forget(self) -> None:
        """Forget the ids of rows that the bound passed."""
        if self.ids is not None:
            self.ids.forget(self._below)

    @property
    def nbytes(self) -> int:
        """Memory that ids take."""
        return 0 if self.ids is None else self.ids.nbytes

    @property
    def _below(self) -> int:
        """Rows below this are late."""
        bound = self.clock.bound
        return bound if bound == NEVER else bound - self.stream.lateness

    def fit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that rows are given with, in order.

        A missing or retyped column is an error, an added one left out.
        """
        names = batch.schema.names
        for name, kind in self._given:
            if name not in names:
                raise unknown_column(name, "the batch", names)
            if names.count(name) > 1:
                raise BadQuery(f"the batch has two columns {name!r}. Rename or drop one of them first.")
            found = batch.schema.field(name).type
            if found != kind and not _same_values(found, kind):
                raise wrong_type(
                    name, found, f"{kind}, as in the first batch,", "Cast the column before it is pushed."
                )
        if batch.schema.equals(self._given_schema):
            return batch
        wanted = batch.select(self._given_schema.names)
        return wanted if wanted.schema.equals(self._given_schema) else wanted.cast(self._given_schema)

    def derived(self, fitting: pa.RecordBatch) -> pa.RecordBatch:
        """The stream's rows of those that fit: after its conditions, with its computed columns."""
        derivation = self.stream.derivation
        return fitting if derivation is None else derivation.rows(fitting, self._schema, self.stream.name)

    def waited(self, batch: pa.RecordBatch) -> Admitted | None:
        """The first row, judged, if it waited and a batch that is about to be admitted tells what it is."""
        held = self.first
        if held is None:
            return None
        _, time, marker = self._places(batch)
        marks = self._markers(held.row)
        both = None if marker is None or marks is None else np.concatenate([marks, marker])
        lone = self.clock.begin(np.concatenate([[held.time], time]), both)
        if lone == 0:
            return None
        self.first = None
        admitted = self._judged(held.row, held.now)
        if lone is not None:
            self.clock.begin_anew()  # it was absurd, and the row that told it is alone itself
        return admitted

    def admit(self, batch: pa.RecordBatch, now: int | None = None) -> Admitted:
        """Sort rows into kept, late, rejected and duplicates; the clock moves on."""
        if self.first is None and not self.clock.begun:
            batch = self._held_back(batch, now)
        return self._judged(batch, now)

    def moved(self, move: Callable[[Clock], int], now: int | None = None) -> Admitted | None:
        """Move the bound by hand or by the caller's clock; gives the first row if it is placed by that."""
        if self.first is not None and self.first.now is None:
            self.first = replace(self.first, now=now)  # as of any tuple, the next tick tells when it came
        admitted = None
        if self.first is not None and self.clock.near(self.first.time, move(self.clock.copy())):
            # it came before, so that it is judged before: it is not late by this
            first, self.first = self.first, None
            admitted = self._judged(first.row, first.now)
        move(self.clock)
        self.forget()
        return admitted

    def _held_back(self, batch: pa.RecordBatch, now: int | None) -> pa.RecordBatch:
        """The rows to be judged now, without the first one if it is alone and has to wait."""
        at, time, marker = self._places(batch)
        lone = self.clock.begin(time, marker)
        if lone is None:
            return batch
        place = int(at[lone])
        row = batch.slice(place, 1)
        self._source_ids(row)  # one that is not listed is an error of the push that brought it
        if now is not None:
            self.clock.told(now)
        self.first = First(row, int(time[lone]), now)
        if batch.num_rows == 1:
            return batch.slice(0, 0)
        return batch.filter(pa.array(np.arange(batch.num_rows) != place))

    def _places(self, batch: pa.RecordBatch) -> tuple[Ints, Ints, Bools | None]:
        """Which rows have a place in time, with their times, and which of these are markers."""
        time, valid, bad = read_time(batch.column(self.stream.time), self.stream.time)
        placed = _placed(len(time), valid, bad, self._lacks(batch))
        at = np.arange(len(time)) if placed is None else np.nonzero(placed)[0]
        marker = self._markers(batch)
        return at, time[at], None if marker is None else marker[at]

    def _judged(self, batch: pa.RecordBatch, now: int | None) -> Admitted:
        time, valid, bad = read_time(batch.column(self.stream.time), self.stream.time)
        lacks = self._lacks(batch)
        placed = _placed(len(time), valid, bad, lacks)
        some = batch if placed is None else batch.filter(pa.array(placed))
        times = time if placed is None else time[placed]
        verdict = self.clock.admit(times, self._markers(some), self._source_ids(some), now)
        reasons: list[tuple[str, pa.RecordBatch]] = []
        if placed is not None:
            reasons += self._unplaced(batch, valid, bad, lacks)
        if verdict.all_kept:
            return self._done(batch, some, times, self.no_late, reasons, 0, rising=verdict.in_order)
        codes = verdict.codes
        reasons.append((AHEAD, some.filter(pa.array(codes == TOO_FAR))))
        late = pa.Table.from_batches([some.filter(pa.array(codes == LATE))])
        kept = codes == KEPT
        markers = int((codes == MARKER).sum())
        return self._done(
            batch, some.filter(pa.array(kept)), times[kept], late, reasons, markers, rising=False
        )

    def _lacks(self, batch: pa.RecordBatch) -> Ints | None:
        """Which required column each row lacks, by number from 1; markers need none."""
        lacks = first_null(batch, self.stream.required)
        marker = None if lacks is None else self._markers(batch)
        if lacks is not None and marker is not None:
            lacks[marker] = 0
        return lacks

    def _unplaced(
        self, batch: pa.RecordBatch, valid: Bools | None, bad: Bools | None, lacks: Ints | None
    ) -> list[tuple[str, pa.RecordBatch]]:
        """The rows without a place in time, or without a required column, by the first reason."""
        left: Bools = np.ones(batch.num_rows, np.bool_)
        tests = [(NULL_TIME, None if valid is None else ~valid), (BAD_TIME, bad)]
        if lacks is not None:
            tests += [(null_in(name), lacks == i) for i, name in enumerate(self.stream.required, 1)]
        found = []
        for reason, test in tests:
            if test is not None:
                found.append((reason, batch.filter(pa.array(test & left))))
                left &= ~test
        return found

    def _done(
        self,
        batch: pa.RecordBatch,
        kept: pa.RecordBatch,
        time: Ints,
        late: pa.Table,
        reasons: list[tuple[str, pa.RecordBatch]],
        markers: int,
        *,
        rising: bool,
    ) -> Admitted:
        some = [(r, b) for r, b in reasons if b.num_rows]
        rejects = rejects_table(self._schema, some) if some else self.no_rejects
        counted = {reason: rows.num_rows for reason, rows in reasons if rows.num_rows}
        placed = len(time)
        if self.ids is not None:
            kept, time = self.ids.once(kept, time)
            self.forget()
        counts = Counts(batch.num_rows, len(time), late.num_rows, markers, counted, placed - len(time))
        return Admitted(kept, time, rising, late, rejects, counts)

    def _markers(self, batch: pa.RecordBatch) -> Bools | None:
        if self._marker is None:
            return None
        column = read_column(batch.column(self._marker), self._marker)
        flag: Bools = column.values != 0
        return flag if column.valid is None else flag & column.valid

    def _source_ids(self, batch: pa.RecordBatch) -> Ints | None:
        if self._sources is None or self._melded is None:
            return None
        listed = len(self._melded.sources)
        ids = self._sources.encode([batch.column(self._melded.source)], batch.num_rows)
        if listed and len(self._sources) > listed:
            unknown = self._sources.values(np.array([listed]))[0][0].as_py()
            # it must not stand in the way of later batches
            self._sources.compact(np.arange(len(self._sources)) < listed)
            raise BadQuery(
                f"source {unknown!r} in column {self._melded.source!r} is not among the listed sources."
            )
        return ids


def _need_runnable(stream: Stream) -> None:
    """Fail where rows would pass by conditions and computed columns that are texts for Spark."""
    if stream.derived and stream.derivation is None:
        column, text = stream.derived[0]
        what = f"column {column!r} from {text!r}" if column else f"the condition {text!r}"
        raise BadQuery(
            f"only Spark can run {what} of {stream.name!r}, and rows that are pushed here would pass it by. "
            "Use .to_spark(), or build the stream from a schema and pyarrow.compute expressions."
        )


def _same_values(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column can be had in the wanted type without a change: only nulls, or the same texts."""
    if pa.types.is_null(found):
        return True
    texts = {pa.string(): 0, pa.large_string(): 0, pa.binary(): 1, pa.large_binary(): 1}
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (found, wanted)]
    return all(kind in texts for kind in plain) and texts[plain[0]] == texts[plain[1]]


def rejects_table(schema: pa.Schema, reasons: list[tuple[str, pa.RecordBatch]]) -> pa.Table:
    """Rejected rows with a `reason` column."""
    full = schema.append(pa.field("reason", pa.string()))
    parts = [
        pa.Table.from_arrays([*rows.columns, pa.array([reason] * rows.num_rows, pa.string())], schema=full)
        for reason, rows in reasons
    ]
    return pa.concat_tables(parts) if parts else full.empty_table()


def _placed(n: int, valid: Bools | None, bad: Bools | None, lacks: Ints | None) -> Bools | None:
    if valid is None and bad is None and lacks is None:
        return None
    placed = np.ones(n, np.bool_) if valid is None else valid.copy()
    placed = placed if bad is None else placed & ~bad
    return placed if lacks is None else placed & (lacks == 0)
