"""A bucket: one share of the keys. It takes a micro-batch's payloads in and gives its answers.

This is the whole of a processor but for Spark: the state comes and goes as named blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import ALWAYS, NEVER, Ints
from windowpane.core.columns import read_time
from windowpane.core.emission import Moment
from windowpane.core.operator import Operator
from windowpane.core.results import Lowering
from windowpane.plan.nodes import Plan
from windowpane.planner.compile import compile_plan
from windowpane.spark.pack import read_batch, read_cells
from windowpane.spark.progress import Progress, Rule


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
    cells: list[Ints] = field(default_factory=list)
    marked: int = NEVER

    def add(self, payload: bytes | None, cells: bytes | None, marked: int | None) -> None:
        """Take one envelope row in."""
        if payload is not None:
            self.batches.append(read_batch(payload))
        if cells is not None:
            self.cells.append(read_cells(cells))
        if marked is not None:
            self.marked = max(self.marked, marked)


class Bucket:
    """An operator with the progress of the stream as this bucket knows it."""

    def __init__(self, plan: Plan, rule: Rule) -> None:
        self.plan, self.rule = plan, rule
        self.operator: Operator = compile_plan(plan)[0]
        self.progress = Progress()
        self.counts = Counts()
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
        tables = self.operator.step(kept, time, moment)
        return {
            query.name: self._table(query.name, tables.get(query.name, [])) for query in self.plan.queries
        }

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
            if rows:
                self.counts.rejects[reason] = self.counts.rejects.get(reason, 0) + int(rows)
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
