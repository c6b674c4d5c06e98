"""Latest: update queues on Spark. An expensive function is called for the keys that the budget allows.

Tasks send the newest row of each key (all rows where the policy keeps them) to the key's bucket. What is not
served waits in state and is overwritten by newer rows. A clock beside the data makes micro-batches while
none comes, so that the last updates are served too.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from windowpane.core.arrays import ALWAYS, Ints
from windowpane.core.beginning import far_apart
from windowpane.core.keys import KeyIndex
from windowpane.core.lane_blocks import Blocks
from windowpane.core.upstream.operators import last_of_key
from windowpane.plan.fingerprint import changes_of_stream, fingerprint_of
from windowpane.plan.nodes import Plan, Stream
from windowpane.query import RUNTIMES, STANDS_FOR, LatestQuery
from windowpane.spark.bucket import unsent
from windowpane.spark.budget import buckets_together, parallel_tasks, share_of
from windowpane.spark.control import by_clock, by_hand
from windowpane.spark.declared import declared
from windowpane.spark.envelope import ENVELOPE_DDL, tagged
from windowpane.spark.fresh import Fresh
from windowpane.spark.outputs import STALEST, Outputs, observed, output, stalest_column, tagged_ddl
from windowpane.spark.pack import Sender, announced, gathered
from windowpane.spark.parts import Part
from windowpane.spark.processor import processor
from windowpane.spark.progress import Progress
from windowpane.spark.queue_spec import MOST_STALE, Notes, QueueSpec, staleness_schema
from windowpane.spark.received import Received
from windowpane.spark.run import bucket_labels, by_place, named, need_buckets
from windowpane.spark.schemas import spark_schema
from windowpane.spark.seen import Seen, watch_of
from windowpane.spark.stored import QUEUES
from windowpane.spark.worker import settled
from windowpane.values.errors import BadQuery, BadState
from windowpane.values.freshness import Policy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_LARGEST = ("oldest_us",)
_OF_STREAM = ("markers", "null_time", "out_of_range", "too_far_ahead", "null_required")
"""Rows that no queue takes, counted once however many queues there are."""
_SUMMED = (
    *(f.name for f in fields(Notes) if f.name not in (*_LARGEST, *_OF_STREAM, STALEST)),
    *_OF_STREAM,
)
_DDL = f"{tagged_ddl((*_SUMMED, *_LARGEST))}, {STALEST} string"


@dataclass(frozen=True)
class LatestPacker:
    """What a task does: it sends each queue its rows."""

    stream: Stream
    specs: tuple[QueueSpec, ...]
    labels: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The body of `mapInArrow`."""
        seen, watch = Seen(), watch_of(self.stream)
        senders = [
            Sender(i, Part(Plan(self._sent(spec), ()), spec.keys, folded=False), self.labels)
            for i, spec in enumerate(self.specs)
        ]
        for batch in gathered(batches):
            rows, when, _ = watch.split(batch.rename_columns(list(self.stream.columns)), seen)
            for spec, sender in zip(self.specs, senders, strict=True):
                some, times = (rows, when) if spec.keeps_all else self._newest(spec, rows, when)
                yield from sender.take(some, times)
        yield announced(seen, self.labels)
        settled()

    def _sent(self, spec: QueueSpec) -> Stream:
        """The columns that a queue is sent."""
        more = () if spec.keeps_all else ((STANDS_FOR, pa.int64()),)
        return replace(self.stream, types=(*self.stream.types, *more))

    def _newest(self, spec: QueueSpec, rows: pa.RecordBatch, when: Ints) -> tuple[pa.RecordBatch, Ints]:
        """The newest row of each key, with the number of rows that it stands for.

        A bucket takes or rejects a run of times as a whole, so each run keeps its own newest: else a row that
        is too far ahead would take the place of a good one.
        """
        columns = [rows.column(name) for name in spec.keys]
        ids = KeyIndex(spec.keys, [column.type for column in columns]).encode(columns, rows.num_rows)
        groups = ids if len(ids) == 0 else ids * np.int64(len(ids)) + _runs(when, self.stream.max_ahead)
        at = last_of_key(groups, *spec.order(rows, when))
        counts = np.unique(groups, return_counts=True)[1]
        newest = rows.take(pa.array(at)).append_column(STANDS_FOR, pa.array(counts, pa.int64()))
        return newest, when[at]


def _runs(time: Ints, max_ahead: int | None) -> Ints:
    """The number of each row's run: rows whose times follow each other with no gap above `max_ahead`."""
    run = np.zeros(len(time), np.int64)
    if max_ahead is not None and int(time.max()) - int(time.min()) > max_ahead:
        order = np.argsort(time, kind="stable")
        run[order[1:]] = np.cumsum(far_apart(time[order], max_ahead))
    return run


class LatestBucket:
    """The queues of one bucket."""

    reusable = False

    def __init__(self, stream: Stream, specs: Sequence[QueueSpec]) -> None:
        self.queues = [Fresh(spec, stream.types) for spec in specs]
        self.progress, self._lateness = Progress(stream), stream.lateness
        self._headers: list[dict[str, Any]] = []

    def blocks(self) -> Blocks:
        """The state of all queues."""
        found = Blocks()
        self._headers = [queue.store(i, found) for i, queue in enumerate(self.queues)]
        return found

    def header(self) -> dict[str, Any]:
        """What is stored beside the blocks."""
        return {"queues": self._headers, "progress": self.progress.to_json()}

    def attach(self, pages: Any) -> None:
        """All state is held."""

    def restore(self, header: Mapping[str, Any], blocks: Mapping[str, bytes]) -> None:
        """Go on from stored state."""
        self.progress.restore(header["progress"])
        for i, (queue, own) in enumerate(zip(self.queues, header["queues"], strict=True)):
            queue.restore(i, own, blocks)

    def leads_to(self, header: Mapping[str, Any]) -> bool:
        """Whether this state is one that the stored one went on from."""
        return all(queue.leads_to(own) for queue, own in zip(self.queues, header["queues"], strict=True))

    def answer(self, received: Received, *, end: bool = False) -> pd.DataFrame:
        """Take a micro-batch in; its outputs as a tagged frame, with notes on what waits."""
        seen = Seen.merged(received.seen)
        drain = end or seen.bound == ALWAYS
        if seen.bound == ALWAYS:  # rows that come later are served too, so this says nothing of their times
            seen.bound = None
        # Keys are forgotten by what was promised before: these rows need not keep to a bound that they move.
        promised = self.progress.bound - self._lateness
        limit = self.progress.take(seen)
        tables: dict[str, list[pa.Table]] = {}
        notes = dict.fromkeys((*_SUMMED, *_LARGEST), 0)
        stalest: list[str] = []
        ahead = 0  # of the rows that were sent, to each queue the same
        for i, queue in enumerate(self.queues):
            rows = received.payloads.get(i, [])
            some, own = queue.step(rows, time.time, drain=drain, limit=limit, bound=promised)
            tables |= some
            ahead = own.too_far_ahead
            stalest += own.stalest
            for name, value in own.numbers().items():
                notes[name] = max(notes[name], value) if name in _LARGEST else notes[name] + value
        missed = asdict(unsent(received.seen, limit))
        notes |= {name: missed[name] for name in _OF_STREAM}
        notes["too_far_ahead"] += ahead
        frame = tagged(tables, notes)
        return frame.assign(**{STALEST: [*[None] * (len(frame) - 1), "\n".join(stalest) or None]})


@dataclass(frozen=True)
class LatestProgram:
    """Update queues in every bucket."""

    kind: ClassVar[str] = QUEUES
    paged: ClassVar[bool] = False
    stream: Stream
    specs: tuple[QueueSpec, ...]
    sharing: str

    def identity(self) -> dict[str, Any]:
        """What the state depends on: the stream and the keys; function, policy and budget may change.

        State is kept by the place of a queue and of a column, so that their order counts.
        """
        columns = [[name, str(kind)] for name, kind in self.stream.types]
        queues = [[spec.name, list(spec.keys)] for spec in self.specs]
        return {"columns": columns, "queues": queues, "stream": fingerprint_of(self.stream)}

    def need_same(self, stored: dict[str, Any]) -> None:
        """Fail with the difference unless the stored identity is this one."""
        known = self.identity()
        for what in ("columns", "queues"):
            if stored.get(what) != known[what]:
                raise BadState(
                    f"the state was written with {what} {stored.get(what)}, but now they are {known[what]}. "
                    "Restart with those of then, or with a new checkpoint."
                )
        # A state of before has nothing of the stream but its columns.
        changes = changes_of_stream(stored.get("stream", known["stream"]), known["stream"])
        if changes:
            raise BadState(
                f"the state was written by queues over another stream: {'; '.join(changes)}. "
                "Restart with the stream of then, or with a new checkpoint."
            )

    def bucket(self) -> LatestBucket:
        """A bucket that has seen nothing."""
        return LatestBucket(self.stream, self.specs)


def latest_to_spark(
    queries: Sequence[LatestQuery], *, buckets: int | None = None, control: str | Path | None = None
) -> Outputs:
    """Queues over one stream as one tagged frame; each has an output of its name and one of its staleness."""
    stream, frame = queries[0].stream.node, queries[0].stream.source.foreign
    session = frame.sparkSession
    need_buckets(buckets)
    if control is not None and not frame.isStreaming:
        raise BadQuery("control= reaches a running stream, but this frame is static. Leave it out.")
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    labels = bucket_labels(session, buckets or partitions)
    together, tasks = buckets_together(session, labels, partitions), parallel_tasks(session)
    share = share_of(1.0, together=together, tasks=tasks, queues=len(queries))
    specs = tuple(_spec(session, query, share) for query in queries)
    if not frame.isStreaming:  # all is served, so that nobody falls behind
        specs = tuple(replace(spec, policy=Policy.APPEND) if spec.keeps_all else spec for spec in specs)
    rows = by_place(frame.select(*named(frame, stream.columns)))
    packed = rows.mapInArrow(LatestPacker(stream, without_functions(specs), labels), ENVELOPE_DDL)
    schemas: dict[str, StructType] = {}
    for spec in specs:
        stale = staleness_schema(spec, KeyIndex(spec.keys, [stream.type(name) for name in spec.keys]))
        schemas[spec.name] = spark_schema(session, spec.schema)
        schemas[f"{spec.name} staleness"] = spark_schema(session, stale)
    if not frame.isStreaming:
        return Outputs(packed.groupBy("bucket").applyInPandas(_whole(stream, specs), _DDL), schemas)
    packed = packed.union(by_clock(session, labels))
    if control is not None:
        packed = packed.union(by_hand(session, control, labels))
    token = uuid.uuid4().hex
    program = LatestProgram(stream, specs, f"over {len(labels)} buckets by {specs[0].keys}")
    answers = packed.groupBy("bucket").transformWithStateInPandas(
        processor(session, program, token), _DDL, "append", "none"
    )
    return Outputs(observed(answers, token[:8], _SUMMED, _LARGEST, stalest_column(MOST_STALE)), schemas)


def without_functions(specs: Sequence[QueueSpec]) -> tuple[QueueSpec, ...]:
    """The queues as tasks have them that send rows, which would load the functions in every micro-batch."""
    return tuple(replace(spec, function=_none) for spec in specs)


def _none(rows: Any) -> Any:
    return rows


def _whole(stream: Stream, specs: tuple[QueueSpec, ...]) -> Any:
    """The batch job: every key's newest row is served, or all rows of a policy that keeps them."""

    def run(frame: Any) -> Any:
        received = Received().add(frame["part"], frame["payload"])
        return LatestBucket(stream, specs).answer(received, end=True)

    return run


def _spec(session: SparkSession, query: LatestQuery, share: float) -> QueueSpec:
    node = query.stream.node
    budget = query.budget / 1_000_000
    return QueueSpec(
        query.name,
        query.keys,
        node.time,
        query.policy,
        budget * share,
        query.function,
        declared(session, query.schema),
        node.ties,
        node.required,
        str(session.conf.get("spark.sql.session.timeZone")),
    )


def one_latest(query: LatestQuery, what: str, **options: Any) -> DataFrame:
    """One output of one queue as a DataFrame."""
    outputs = latest_to_spark([query], **options)
    name = query.name if what == "answers" else f"{query.name} staleness"
    return output(outputs.frame, name, outputs.schemas[name])


RUNTIMES["latest_to_spark"] = one_latest
RUNTIMES["all_latest_to_spark"] = latest_to_spark
