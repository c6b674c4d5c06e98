"""Reduce: the map side for slices. Each task folds its rows to slices before anything is shuffled.

A slice is whole or not at all below the punctuation, but for the one that holds it; the windows of that
one are all still open. So on this path a row counts as late if its slice ended before the punctuation.
Sessions, texts in partials, and windows that need order are not reduced: their rows go as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import NEVER, Bools, Ints, Tuples
from windowpane.core.blocks import read_rows, write_rows
from windowpane.core.columns import read_column
from windowpane.core.edges import Edges
from windowpane.core.fold import fold
from windowpane.core.hashing import hash_columns
from windowpane.core.keys import KeyIndex
from windowpane.core.partials.counts import RowCount
from windowpane.core.rows import Layout, Rows
from windowpane.core.slice_lane import SliceLane
from windowpane.core.slices import SliceTable
from windowpane.plan.nodes import Plan
from windowpane.planner.compile import compile_plan
from windowpane.spark.pack import Packer, envelope, read_batch, write_batch
from windowpane.spark.progress import CELLS


def reducible(plan: Plan) -> bool:
    """Whether the plan's rows can be folded to slices on the map side."""
    lanes = compile_plan(plan)[0].lanes
    if len(lanes) != 1 or not isinstance(lanes[0].lane, SliceLane):
        return False
    spec = lanes[0].lane.spec
    return not spec.sessions and not any(partial.id_columns() for partial in spec.layout)


@dataclass(frozen=True)
class Slicing:
    """How rows are folded: the lane's layout with a row count, and its edges cut at cells of time too."""

    layout: Layout
    edges: Edges
    grouping: tuple[str, ...]
    columns: tuple[str, ...]


def slicing(plan: Plan) -> Slicing:
    """The folding of a reducible plan; cells keep rows that are too far ahead in slices of their own."""
    entry = compile_plan(plan)[0].lanes[0]
    if not isinstance(entry.lane, SliceLane):
        raise TypeError("only slices can be folded on the map side")
    edges = entry.lane.spec.fold_edges
    if plan.stream.max_ahead is not None:
        width = max(plan.stream.max_ahead // CELLS, 1)
        edges = replace(edges, phase=np.append(edges.phase, 0), period=np.append(edges.period, width))
    return Slicing((*entry.lane.spec.layout, RowCount()), edges, entry.grouping, entry.columns)


@dataclass(frozen=True)
class Reducer(Packer):
    """A packer that sends slices instead of rows."""

    plan: Plan | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The body of `mapInArrow`."""
        assert self.plan is not None
        how = slicing(self.plan)
        index = KeyIndex(how.grouping, [self.plan.stream.type(name) for name in how.grouping])
        table, cells, marked = SliceTable(how.layout), [], NEVER
        unplaced: list[pa.RecordBatch] = []
        for batch in batches:
            time, placed = self.times(batch)
            markers = self.markers(batch, placed)
            marked = max(marked, int(time[markers].max(initial=NEVER)))
            wanted = placed & ~markers
            if not bool(placed.all()):
                unplaced.append(batch.filter(pa.array(~placed)))
            if bool(wanted.any()):
                cells.append(self.rule.cells(time[wanted]))
                table = table.insert(self._fold(how, index, batch, time, wanted))
        yield from self._slices(how, index, table)
        for batch in unplaced:
            yield envelope([self.labels[0]], [write_batch(batch)], ["rows"])
        yield self.punctuation(np.concatenate(cells) if cells else np.empty((0, 3), np.int64), marked)

    def _fold(self, how: Slicing, index: KeyIndex, batch: pa.RecordBatch, time: Ints, wanted: Bools) -> Rows:
        if not bool(wanted.all()):
            batch, time = batch.filter(pa.array(wanted)), time[wanted]
        key = index.encode([batch.column(name) for name in how.grouping], batch.num_rows)
        columns = {name: read_column(batch.column(name), name) for name in how.columns}
        return fold(how.layout, Tuples(time, key, columns), time, how.edges, len(index), rising=False)

    def _slices(self, how: Slicing, index: KeyIndex, table: SliceTable) -> Iterator[pa.RecordBatch]:
        """One payload per bucket: the keys' values, and rows that point to them."""
        n = len(self.labels)
        values = index.values(np.arange(len(index)))
        named = dict(zip(how.grouping, values, strict=True))
        bucket = np.zeros(len(index), np.int64)
        if n > 1 and self.keys:
            hashes = hash_columns([named[name] for name in self.keys])[0]
            bucket = (hashes % np.uint64(n)).astype(np.int64)
        for b in range(n if self.keys else 1):
            mine = np.nonzero(bucket == b)[0]
            place = np.zeros(len(index), np.int64)
            place[mine] = np.arange(len(mine))
            keys = [array.take(pa.array(mine)) for array in values]
            # the column of nulls keeps the number of keys where there are no key columns
            names = write_batch(pa.record_batch([*keys, pa.nulls(len(mine))], names=[*how.grouping, ""]))
            for segment in table.segments:
                rows = segment.rows.take(bucket[segment.rows.key] == b)
                if len(rows):
                    block = write_rows(Rows(rows.start, place[rows.key], rows.partials))
                    yield envelope([self.labels[b]], [names + block], [f"slices {len(names)}"])


def read_slices(payload: bytes, kind: str, layout: Layout) -> tuple[list[pa.Array], Rows]:
    """The key values and the rows of a payload."""
    cut = int(kind.split()[1])
    keys = read_batch(payload[:cut])
    return list(keys.columns)[:-1], read_rows("slices of a task", payload[cut:], layout)
