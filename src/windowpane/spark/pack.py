"""Pack: the map side. Each task splits its rows by bucket and sends one Arrow payload to each.

It runs in Spark's Python workers on Arrow batches. After its rows a task sends every bucket a
punctuation row, so that all buckets of a micro-batch learn the same progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import NEVER, Bools, Ints
from windowpane.core.columns import read_column, read_time
from windowpane.core.hashing import hash_columns
from windowpane.spark.progress import Rule

ENVELOPE = pa.schema(
    [
        ("bucket", pa.int32()),
        ("kind", pa.string()),
        ("payload", pa.binary()),
        ("cells", pa.binary()),
        ("marked", pa.int64()),
    ]
)
ENVELOPE_DDL = "bucket int, kind string, payload binary, cells binary, marked bigint"


@dataclass(frozen=True)
class Packer:
    """What a task needs to know: where the time is, what decides the bucket, and the buckets' labels."""

    time: str
    keys: tuple[str, ...]
    labels: tuple[int, ...]
    rule: Rule

    def sharing(self) -> str:
        """How rows are shared out, in words; state is only good for the same sharing."""
        return f"over {len(self.labels)} buckets by {', '.join(self.keys) or 'nothing'}"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The body of `mapInArrow`."""
        cells: list[Ints] = []
        marked = NEVER
        for batch in batches:
            if batch.num_rows:
                time, placed = self.times(batch)
                markers = self.markers(batch, placed)
                marked = max(marked, int(time[markers].max(initial=NEVER)))
                cells.append(self.rule.cells(time[placed & ~markers]))
                yield self._payloads(batch.filter(pa.array(~markers)) if markers.any() else batch)
        yield self.punctuation(np.concatenate(cells) if cells else np.empty((0, 3), np.int64), marked)

    def times(self, batch: pa.RecordBatch) -> tuple[Ints, Bools]:
        """The times of a batch, and which of them have a place."""
        time, valid, bad = read_time(batch.column(self.time), self.time)
        placed = np.ones(len(time), np.bool_) if valid is None else valid.copy()
        return time, placed if bad is None else placed & ~bad

    def markers(self, batch: pa.RecordBatch, placed: Bools) -> Bools:
        """Which rows are punctuation and no data."""
        if self.rule.marker is None:
            return np.zeros(batch.num_rows, np.bool_)
        column = read_column(batch.column(self.rule.marker), self.rule.marker)
        flag: Bools = (column.values != 0) & placed
        return flag if column.valid is None else flag & column.valid

    def _payloads(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        n = len(self.labels)
        if n == 1 or not self.keys:
            return envelope([self.labels[0]], [write_batch(batch)], ["rows"])
        bucket = (hash_columns([batch.column(name) for name in self.keys])[0] % np.uint64(n)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        counts = np.bincount(bucket, minlength=n)
        sorted_ = batch.take(pa.array(order))
        ends = np.cumsum(counts)
        some = np.nonzero(counts)[0]
        payloads = [write_batch(sorted_.slice(int(ends[b] - counts[b]), int(counts[b]))) for b in some]
        return envelope([self.labels[b] for b in some], payloads, ["rows"] * len(some))

    def punctuation(self, cells: Ints, marked: int) -> pa.RecordBatch:
        """What a task saw, for every bucket."""
        n = len(self.labels)
        return pa.record_batch(
            [
                pa.array(self.labels, pa.int32()),
                pa.nulls(n, pa.string()),
                pa.nulls(n, pa.binary()),
                pa.array([cells.astype(np.int64).tobytes()] * n, pa.binary()),
                pa.array([None if marked == NEVER else marked] * n, pa.int64()),
            ],
            schema=ENVELOPE,
        )


def envelope(labels: list[int], payloads: list[bytes], kinds: list[str]) -> pa.RecordBatch:
    """Rows that carry payloads to buckets."""
    n = len(labels)
    columns = [
        pa.array(labels, pa.int32()),
        pa.array(kinds, pa.string()),
        pa.array(payloads, pa.binary()),
        pa.nulls(n, pa.binary()),
        pa.nulls(n, pa.int64()),
    ]
    return pa.record_batch(columns, schema=ENVELOPE)


def write_batch(batch: pa.RecordBatch) -> bytes:
    """One batch as Arrow bytes; the schema is known on the other side but costs little."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_batch(data: bytes) -> pa.RecordBatch:
    """The batch of a payload."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()


def read_cells(data: bytes) -> Ints:
    """The cells of a punctuation row."""
    return np.frombuffer(data, np.int64).reshape(-1, 3)
