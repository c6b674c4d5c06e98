"""A bucket: one share of the keys. It takes a micro-batch's payloads in and gives its answers.

This is the whole of a processor but for Spark: the state comes and goes as named blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa

from windowpane.core.arrays import ALWAYS, NEVER, Ints
from windowpane.core.columns import read_time
from windowpane.core.emission import Moment
from windowpane.core.operator import Operator
from windowpane.core.partials.counts import plain
from windowpane.core.results import Lowering
from windowpane.core.rows import Rows, no_rows, stack
from windowpane.plan.nodes import Plan
from windowpane.planner.compile import compile_plan
from windowpane.spark.pack import read_batch, read_cells
from windowpane.spark.progress import Progress, Rule
from windowpane.spark.reduce import read_slices, reducible, slicing


@dataclass
class Counts:
    """Rows of a bucket, exact; rows without a place are counted by reason."""

    kept: int = 0
    late: int = 0
    rejects: dict[str, int] = field(default_factory=dict)


@dataclass
class Received:
    """What came for a bucket in one micro-batch."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    slices: list[tuple[bytes, str]] = field(default_factory=list)
    cells: list[Ints] = field(default_factory=list)
    marked: int = NEVER

    def add(self, frame: pd.DataFrame) -> Received:
        """Take envelope rows in."""
        columns = (frame["kind"], frame["payload"], frame["cells"], frame["marked"])
        for kind, payload, cells, marked in zip(*columns, strict=True):
            if payload is None:
                self.cells.append(read_cells(cells))
                self.marked = self.marked if pd.isna(marked) else max(self.marked, int(marked))
            elif kind == "rows":
                self.batches.append(read_batch(payload))
            else:
                self.slices.append((payload, kind))
        return self


class Bucket:
    """An operator with the progress of the stream as this bucket knows it."""

    def __init__(self, plan: Plan, rule: Rule) -> None:
        self.plan, self.rule = plan, rule
        self.operator: Operator = compile_plan(plan)[0]
        self.progress = Progress()
        self.counts = Counts()
        self._slicing = slicing(plan) if reducible(plan) else None
        self._early = any(query.emit == "update" for query in plan.queries)

    def restore(self, header: Mapping[str, object], blocks: Mapping[str, bytes]) -> None:
        """Go on from stored state."""
        progress, counts = header["progress"], header["counts"]
        assert isinstance(progress, dict)
        assert isinstance(counts, dict)
        self.operator.restore(blocks)
        self.progress, self.counts = Progress(**progress), Counts(**counts)

    def header(self) -> dict[str, object]:
        """What is stored beside the blocks."""
        counts = {"kept": self.counts.kept, "late": self.counts.late, "rejects": self.counts.rejects}
        return {"progress": self.progress.to_json(), "counts": counts}

    def step(self, received: Received, *, end: bool = False) -> dict[str, pa.Table]:
        """Take a micro-batch in; `end` closes every window."""
        cells = np.concatenate(received.cells) if received.cells else np.empty((0, 3), np.int64)
        before = self.progress
        limit = before.limit(self.rule, cells)
        self.progress = before.advanced(self.rule, cells, received.marked)
        bound = int(ALWAYS) if end else self.progress.bound
        batch = self._joined(received.batches)
        kept, time = self._admitted(batch, before.bound, limit)
        moment = Moment(before.bound, bound, self.plan.stream.lateness, self._early)
        if self._slicing is None:
            tables = self.operator.step(kept, time, moment)
        else:
            keys, rows = self._slices(received.slices, before.bound, limit)
            tables = self.operator.step_rows(keys, rows, moment)
        return {
            query.name: self._table(query.name, tables.get(query.name, [])) for query in self.plan.queries
        }

    def _slices(
        self, payloads: list[tuple[bytes, str]], bound: int, limit: int
    ) -> tuple[list[pa.Array], Rows]:
        """The slices that have a place, of all tasks; their row counts say how many rows have none."""
        assert self._slicing is not None
        layout = self._slicing.layout
        parts = [read_slices(payload, kind, layout) for payload, kind in payloads]
        if not parts:
            return [pa.array([], self.plan.stream.type(n)) for n in self._slicing.grouping], no_rows(
                layout[:-1]
            )
        offsets = np.cumsum([0, *(len(keys[0]) if keys else 1 for keys, _ in parts)])
        moved = [Rows(r.start, r.key + o, r.partials) for (_, r), o in zip(parts, offsets, strict=False)]
        rows = stack(moved)
        keys = [pa.concat_arrays([p[0][i] for p in parts]) for i in range(len(parts[0][0]))]
        counts = plain(rows.partials[-1], 0)
        code = np.zeros(len(rows), np.int8)
        if bound > NEVER:
            cutoff = self._slicing.edges.floor(np.array([bound - self.plan.stream.lateness]))[0]
            code[rows.start < cutoff] = 1
        code[rows.start >= limit] = 2
        self.counts.kept += int(counts[code == 0].sum())
        self.counts.late += int(counts[code == 1].sum())
        self._reject("too far ahead", int(counts[code == 2].sum()))
        kept = rows if not code.any() else rows.take(code == 0)
        return keys, Rows(kept.start, kept.key, kept.partials[:-1])

    def _reject(self, reason: str, rows: int) -> None:
        if rows:
            self.counts.rejects[reason] = self.counts.rejects.get(reason, 0) + rows

    def _joined(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        if len(batches) == 1:
            return batches[0]
        if not batches:
            schema = pa.schema(list(self.plan.stream.types))
            return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
        return pa.concat_batches(batches)

    def _admitted(self, batch: pa.RecordBatch, bound: int, limit: int) -> tuple[pa.RecordBatch, Ints]:
        """The rows that have a place; late is what was below the punctuation before this micro-batch."""
        time, valid, bad = read_time(batch.column(self.plan.stream.time), self.plan.stream.time)
        code = np.zeros(len(time), np.int8)
        if bound > NEVER:
            code[time < bound - self.plan.stream.lateness] = 1
        code[time >= limit] = 2
        if bad is not None:
            code[bad] = 3
        if valid is not None:
            code[~valid] = 4
        found = np.bincount(code, minlength=5)
        self.counts.kept += int(found[0])
        self.counts.late += int(found[1])
        for reason, rows in zip(("too far ahead", "time out of range", "null time"), found[2:], strict=True):
            self._reject(reason, int(rows))
        if found[0] == len(time):
            return batch, time
        return batch.filter(pa.array(code == 0)), time[code == 0]

    def _table(self, name: str, tables: list[pa.Table]) -> pa.Table:
        if tables:
            return pa.concat_tables(tables)
        return result_schema(self.operator, name).empty_table()


def result_schema(operator: Operator, name: str) -> pa.Schema:
    """The columns of a query's answers."""
    entry = next(query for query in operator.queries if query.name == name)
    lowering = Lowering((), entry.aggregates, entry.point, many=entry.many, early=entry.early)
    return lowering.schema(operator.key_types(entry.grouping))
