"""Fold: a task's rows become slices before anything is shuffled.

A slice is whole or not at all below the punctuation, but for the one that holds it; the windows of that
one are all still open. So here a row counts as late if its slice ended before the punctuation.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Column, Ints, Tuples
from windowpane.core.blocks import read_rows, write_rows
from windowpane.core.columns import is_text, read_column
from windowpane.core.fold import fold
from windowpane.core.interner import Interner
from windowpane.core.keys import KeyIndex
from windowpane.core.rows import Layout, Rows, stack
from windowpane.core.slices import SliceTable
from windowpane.spark.envelope import envelopes, read_batches, write_batch
from windowpane.spark.parts import Part

_CUT = struct.Struct("<Q")


class Folder:
    """The slices of one part in one task."""

    def __init__(self, number: int, part: Part, labels: Sequence[int]) -> None:
        self._number, self._part, self._how = number, part, part.slicing
        self._labels = labels if part.keys else labels[:1]
        types = [part.plan.stream.type(name) for name in self._how.grouping]
        self._index = KeyIndex(self._how.grouping, types)
        self._table = SliceTable(self._how.layout)

    def take(self, batch: pa.RecordBatch, time: Ints) -> Iterator[pa.RecordBatch]:
        """Fold rows in; nothing is sent yet."""
        how = self._how
        key = self._index.encode([batch.column(name) for name in how.grouping], batch.num_rows)
        columns = {name: _read(batch.column(name), name) for name in how.columns}
        tuples = Tuples(time, key, columns)
        rows = fold(how.layout, tuples, time, how.edges, len(self._index), rising=False)
        self._table = self._table.insert(rows)
        return iter(())

    def end(self) -> Iterator[pa.RecordBatch]:
        """One payload per bucket: the keys' values, and rows that point to them."""
        if not self._table.segments:
            return
        rows = stack([segment.rows for segment in self._table.segments])
        n, known = len(self._labels), len(self._index)
        values = self._index.values(np.arange(known))
        bucket = np.zeros(known, np.int64)
        if n > 1:
            bucket = self._part.bucket_of(dict(zip(self._how.grouping, values, strict=True)), n)
        place = np.zeros(known, np.int64)
        payloads, labels = [], []
        for b in range(n):
            mine = np.nonzero(bucket == b)[0]
            place[mine] = np.arange(len(mine))
            some = rows if n == 1 else rows.take(bucket[rows.key] == b)
            if len(some):
                keys = [array.take(pa.array(mine)) for array in values]
                # the column of nulls keeps the number of keys where there are no key columns
                batch = pa.record_batch([*keys, pa.nulls(len(mine))], names=[*self._how.grouping, ""])
                names = write_batch(batch)
                block = write_rows(Rows(some.start, place[some.key], some.partials))
                payloads.append(b"".join((_CUT.pack(len(names)), names, block)))
                labels.append(self._labels[b])
        yield envelopes(labels, self._number, payloads)


def _read(array: pa.Array, name: str) -> Column:
    """A column for partials that hold no texts: of a text they need its hash or that it is there."""
    return read_column(array, name, Interner(array.type) if is_text(array.type) else None)


def read_slices(payloads: Sequence[bytes], layout: Layout) -> tuple[list[pa.Array], Rows]:
    """The key values and the rows of some payloads; `rows.key` points into the values."""
    keys: list[pa.RecordBatch] = []
    rows: list[Rows] = []
    offset = 0
    for payload in payloads:
        (cut,) = _CUT.unpack_from(payload)
        (names,) = read_batches(payload[_CUT.size : _CUT.size + cut])
        some = read_rows("slices of a task", payload[_CUT.size + cut :], layout)
        rows.append(Rows(some.start, some.key + offset, some.partials))
        offset += names.num_rows
        keys.append(names)
    table = pa.Table.from_batches(keys).combine_chunks()
    return [column.combine_chunks() for column in table.columns[:-1]], stack(rows)
