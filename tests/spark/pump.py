"""The Spark path without Spark: tasks pack rows, buckets answer, state can go through bytes in between."""

import json

import numpy as np
import pyarrow as pa

import windowpane as wp
from windowpane.query import together
from windowpane.spark.bucket import Bucket, Counts, Received, Work
from windowpane.spark.pack import Packer, announced
from windowpane.spark.parts import parts_of
from windowpane.spark.seen import Seen, watch_of

STRAYS = ("late", "rejects")


class Pump:
    """Micro-batches through `tasks` tasks to `buckets` buckets, as Spark drives them.

    With `restart`, every bucket is made anew from its stored header and blocks before each micro-batch.
    """

    def __init__(self, *queries, tasks=3, buckets=2, strays=(), restart=False):
        self.plan = together(queries)[0]
        self.tasks, self.restart = tasks, restart
        self.parts = parts_of(self.plan)
        self.labels = tuple(range(buckets))
        self.packer = Packer(self.parts, self.labels, watch_of(self.plan.stream), bool(strays))
        self.work = Work(self.plan.stream, self.parts, self.parts[0], strays)
        self.buckets = {label: Bucket(self.work) for label in self.labels}
        self.found = {query.name: [] for query in self.plan.queries} | {name: [] for name in strays}
        self.counts, self.envelopes, self.calls = Counts(), [], 0

    def push(self, batch=None, *, now=None, bound=None, end=False):
        """One micro-batch, with what the clock and the control folder tell; gives its tables."""
        sent = [] if batch is None else [e for share in self._shares(batch) for e in self.packer(share)]
        if now is not None or bound is not None:
            sent.append(announced(Seen(now=now, bound=bound), self.labels))
        self.envelopes.append(sum(envelope.num_rows for envelope in sent))
        fresh = {}
        for label in self.labels:
            received = Received()
            for envelope in sent:
                mine = envelope.filter(pa.array(envelope["bucket"].to_numpy() == label))
                received.add(mine["part"].to_pylist(), mine["payload"].to_pylist())
            tables, counts = self._bucket(label).step(received, end=end)
            self.calls += 1
            self.counts.add(counts)
            for name, some in tables.items():
                fresh.setdefault(name, []).extend(some)
                self.found[name].extend(some)
        return {name: pa.concat_tables(some) for name, some in fresh.items() if some}

    def end(self):
        """Close every window."""
        return self.push(end=True)

    def run(self, batches):
        """All micro-batches and the end; the pump itself."""
        for batch in batches:
            self.push(batch)
        self.end()
        return self

    def table(self, name="query"):
        """All that came out of an output so far."""
        return pa.concat_tables(self.found[name]) if self.found[name] else None

    @property
    def bound(self):
        """The bound, which all buckets share."""
        (bound,) = {bucket.progress.bound for bucket in self.buckets.values()}
        return bound

    @property
    def waits(self):
        """Whether the first row waits, which all buckets know alike."""
        (waits,) = {"first" in bucket.header() for bucket in self.buckets.values()}
        return waits

    def _bucket(self, label):
        if self.restart:
            old, fresh = self.buckets[label], Bucket(self.work)
            blocks = old.blocks()
            stored = {name: bytes(blocks[name]) for name in blocks}
            fresh.restore(json.loads(json.dumps(old.header())), stored)
            self.buckets[label] = fresh
        return self.buckets[label]

    def _shares(self, batch):
        table = pa.table(batch) if isinstance(batch, pa.RecordBatch) else batch
        for share in np.array_split(np.arange(table.num_rows), self.tasks):
            yield table.slice(int(share[0]), len(share)).to_batches() if len(share) else []


def pushed(table, window, *aggregates, batches=1, **options):
    """A query over a table without a source, and the table cut into micro-batches."""
    how = {name: options.pop(name) for name in list(options) if name not in ("tasks", "buckets", "restart")}
    query = wp.stream(schema=table.schema, **how).window(window).agg(*aggregates)
    pump = Pump(query, strays=STRAYS, **options)
    size = max(-(-table.num_rows // batches), 1)
    return pump.run(table.slice(at, size) for at in range(0, table.num_rows, size))
