"""Pack: the map side. Each task sends every bucket its share of the rows, and what it saw of their times.

It runs in Spark's Python workers on Arrow batches: rows cross to Python once and leave as payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Ints
from windowpane.spark.envelope import SEEN, envelopes, write_batch
from windowpane.spark.fold import Folder
from windowpane.spark.parts import Part
from windowpane.spark.seen import Seen, Watch
from windowpane.spark.worker import settled, this_task

_ROWS, _BYTES = 1 << 17, 1 << 26
"""Rows handled at once, and the bytes in them: Spark's own batches are gathered or cut to about this."""
Reader = Callable[[Iterable[pa.RecordBatch], Seen], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Packer:
    """What a task needs to know: the parts of the plan, the buckets' labels, and what to look for.

    With `strays`, every row is also sent as it is, to sort out those that are late or have no place.
    `read` turns what Spark hands over into the stream's rows, where it is not rows already.
    """

    parts: tuple[Part, ...]
    labels: tuple[int, ...]
    watch: Watch
    strays: bool = False
    read: Reader | None = None

    def sharing(self) -> str:
        """How rows are shared out, in words; state is only good for the same sharing."""
        by = "; ".join(", ".join(part.keys) or "nothing" for part in self.parts)
        return f"over {len(self.labels)} buckets by {by}"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The body of `mapInArrow`."""
        seen = Seen()
        senders = [
            (Folder if part.folded else Sender)(i, part, self.labels) for i, part in enumerate(self.parts)
        ]
        rows = batches if self.read is None else self.read(batches, seen)
        for i, batch in enumerate(gathered(rows), start=this_task()):
            data, time, unplaced = self.watch.split(batch, seen)
            for sender in senders:
                yield from sender.take(data, time)
            if self.strays:
                # any bucket knows the bound, so they take turns, in each task from another one on
                label = self.labels[i % len(self.labels)]
                yield envelopes([label] * 2, len(self.parts), [write_batch(data), write_batch(unplaced)])
        for sender in senders:
            yield from sender.end()
        yield announced(seen, self.labels)
        settled()


class Sender:
    """The rows of one part in one task, sent as they are."""

    def __init__(self, number: int, part: Part, labels: Sequence[int]) -> None:
        self._number, self._part = number, part
        self._labels = labels if part.keys else labels[:1]

    def take(self, batch: pa.RecordBatch, time: Ints) -> Iterator[pa.RecordBatch]:
        """Send rows to their buckets."""
        if len(time) == 0:
            return
        part, n = self._part, len(self._labels)
        rows = batch.select(part.plan.stream.columns)
        if n == 1:
            yield envelopes([self._labels[0]], self._number, [write_batch(rows)])
            return
        bucket = part.bucket_of({name: rows.column(name) for name in part.keys}, n)
        sorted_ = rows.take(pa.array(np.argsort(bucket, kind="stable")))
        ends = [0, *np.cumsum(np.bincount(bucket, minlength=n)).tolist()]
        some = [b for b in range(n) if ends[b] < ends[b + 1]]
        payloads = [write_batch(sorted_.slice(ends[b], ends[b + 1] - ends[b])) for b in some]
        yield envelopes([self._labels[b] for b in some], self._number, payloads)

    def end(self) -> Iterator[pa.RecordBatch]:
        """Nothing was held back."""
        return iter(())


def announced(seen: Seen, labels: Sequence[int]) -> pa.RecordBatch:
    """What a task saw, for every bucket; the first one counts the rows that no bucket gets."""
    others = [seen.elsewhere().to_bytes()] * (len(labels) - 1)
    return envelopes(list(labels), SEEN, [seen.to_bytes(), *others])


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches, or in smaller ones where rows are very long."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in (piece for whole in batches for piece in _pieces(whole)):
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield _joined(held)
            held, rows, size = [], 0, 0
    if held:
        yield _joined(held)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows of a batch, cut so that no payload has gigabytes: of these Arrow can hold two."""
    n = batch.num_rows
    step = max(n * _BYTES // max(batch.nbytes, 1), 1)
    yield from (batch.slice(at, step) for at in range(0, n, step))


def _joined(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    return held[0] if len(held) == 1 else pa.concat_batches(held)
