"""Run: a plan becomes a Spark DataFrame, streaming or batch."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

from windowpane.core.arrays import NEVER
from windowpane.core.results import flattened
from windowpane.plan.fingerprint import fingerprint, need_same
from windowpane.plan.nodes import Plan
from windowpane.query import RUNTIMES, Query, Source, together
from windowpane.spark.bucket import LATE, REJECTS, Bucket, Work
from windowpane.spark.control import by_clock, by_hand
from windowpane.spark.envelope import ENVELOPE_DDL, read_batches
from windowpane.spark.outputs import (
    FOR_ANOTHER,
    OVER_ANSWERS,
    TAGGED_DDL,
    Outputs,
    observed,
    observed_texts,
    output,
)
from windowpane.spark.pack import Packer, Reader
from windowpane.spark.parts import columns_of, one_part, parts_of
from windowpane.spark.plain import Plain, plain, plain_type
from windowpane.spark.processor import processor
from windowpane.spark.received import Received
from windowpane.spark.schemas import spark_schema
from windowpane.spark.seen import Seen, watch_of
from windowpane.spark.spill import SpillProgram
from windowpane.spark.stored import WINDOWS, Program
from windowpane.values.errors import BadQuery
from windowpane.values.punctuation import Heartbeat
from windowpane.values.sizes import Memory, budget_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

ANSWERS = "answers"


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a run: how many buckets, a control folder, and which outputs, of which query.

    `columns` are those of the frame that comes out: of tagged payloads, or of the one output that is `plain`.
    """

    buckets: int | None = None
    control: str | Path | None = None
    memory: Memory | None = None
    answers: bool = True
    strays: tuple[str, ...] = ()
    for_another: bool = False
    plain: Plain | None = None
    columns: StructType | str = TAGGED_DDL

    def __post_init__(self) -> None:
        need_buckets(self.buckets)


def need_buckets(given: object) -> None:
    """Fail unless it is a number of buckets, or none is given."""
    if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 1):
        raise BadQuery(f"buckets is {given!r}. Give a whole number above 0: into how many shares to cut.")


@dataclass(frozen=True)
class WindowProgram:
    """Windows of a plan in every bucket."""

    kind: ClassVar[str] = WINDOWS
    paged: ClassVar[bool] = False
    plan: Plan
    work: Work
    sharing: str

    def identity(self) -> dict[str, Any]:
        """What the state depends on."""
        return fingerprint(self.plan)

    def need_same(self, stored: dict[str, Any]) -> None:
        """Fail with the difference unless the stored plan is this one."""
        need_same(stored, self.plan)

    def bucket(self) -> Bucket:
        """A bucket that has seen nothing."""
        return Bucket(self.work)


def schema_of(frame: DataFrame) -> pa.Schema:
    """The Arrow schema of a Spark DataFrame, found without reading it."""
    empty = frame.sparkSession.createDataFrame([], frame.schema)
    return empty.limit(0).toArrow().schema  # with a limit, no Python worker is started for it


def named(frame: DataFrame, columns: Sequence[str]) -> list[str]:
    """Columns as Spark takes their names, which may hold dots; what is no column stays as it is."""
    known = set(frame.columns)
    return ["`" + name.replace("`", "``") + "`" if name in known else name for name in columns]


def by_place(frame: DataFrame) -> DataFrame:
    """The frame with columns named by their places: Spark's mapInArrow takes names with dots apart."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def selected(
    frame: DataFrame, columns: Sequence[str], computed: Mapping[str, Any]
) -> tuple[DataFrame, pa.Schema]:
    """Some columns of a frame and some computed from SQL texts or Columns; and the schema."""
    more = [(F.expr(e) if isinstance(e, str) else e).alias(name) for name, e in computed.items()]
    chosen = frame.select(*named(frame, columns), *more)
    return chosen, schema_of(chosen)


def to_spark(
    query: Query,
    what: str = ANSWERS,
    *,
    buckets: int | None = None,
    control: str | Path | None = None,
    memory: Memory | None = None,
) -> DataFrame:
    """The query's answers, its late rows or its rejects as an ordinary DataFrame: streaming or batch."""
    if what not in (ANSWERS, LATE, REJECTS):
        raise BadQuery(f"to_spark({what!r}): there is no such output. Use 'answers', 'late' or 'rejects'.")
    strays = () if what == ANSWERS else (what,)
    wanted = Wanted(buckets, control, memory, what == ANSWERS, strays)
    name = query.node.name if what == ANSWERS else what
    arrow = _arrow_schemas(query.plan, strays)[name]
    schema = spark_schema(_session_of(query.source), arrow)
    simple = plain(name, arrow)
    if simple is None:
        return output(tagged_frame(query.plan, query.source, wanted), name, schema)
    wanted = replace(wanted, plain=simple, columns=plain_type(schema))
    return simple.opened(tagged_frame(query.plan, query.source, wanted), schema)


def all_to_spark(
    queries: Sequence[Query],
    *,
    late: bool = False,
    rejects: bool = False,
    buckets: int | None = None,
    control: str | Path | None = None,
    memory: Memory | None = None,
) -> Outputs:
    """Several queries over one stream in one pass, with its late rows and rejects if wanted."""
    plan, source = together(queries)
    strays = (*((LATE,) if late else ()), *((REJECTS,) if rejects else ()))
    for query in plan.queries:
        if query.name in strays:
            raise BadQuery(f"a query has the name of the output {query.name!r}. Name it anew.")
    frame = tagged_frame(plan, source, Wanted(buckets, control, memory, strays=strays))
    schemas = _arrow_schemas(plan, strays)
    return Outputs(frame, {name: spark_schema(frame.sparkSession, kind) for name, kind in schemas.items()})


def tagged_frame(plan: Plan, source: Source, wanted: Wanted) -> DataFrame:
    """The outputs of one pass over the source, as tagged payloads or, of one that is plain, as rows."""
    rows, read = _rows_of(source, wanted)
    session = rows.sparkSession
    judge, *_ = parts = parts_of(plan) if wanted.memory is None else (one_part(plan),)
    work = Work(plan.stream, parts if wanted.answers else (), judge, wanted.strays, wanted.plain)
    count = wanted.buckets or int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    alone = not any(part.keys for part in parts)
    labels = bucket_labels(session, 1 if alone else count)
    packer = Packer(work.parts, labels, watch_of(plan.stream), bool(wanted.strays), read)
    # Late rows and rejects come whole; else Catalyst reads no column that no part does.
    columns = plan.stream.columns if wanted.strays else columns_of(parts)
    if read is None:
        rows, packer = _handed(rows, columns, packer)
    packed = rows.mapInArrow(packer, ENVELOPE_DDL)
    token = uuid.uuid4().hex
    if not rows.isStreaming:
        if wanted.memory is not None:
            raise BadQuery("memory= is for streams: a batch job takes each bucket's rows in at once.")
        return packed.groupBy("bucket").applyInPandas(_whole(work), wanted.columns)
    if isinstance(plan.stream.policy, Heartbeat):
        packed = packed.union(by_clock(session, labels))
    if wanted.control is not None and read is None:  # else it comes with the answers of the first query
        packed = packed.union(by_hand(session, wanted.control, labels))
    # State depends on what parts read, not on the outputs that are wanted: a restart may want others.
    read_by = columns_of(parts)
    types = tuple((name, kind) for name, kind in plan.stream.types if name in read_by)
    known = replace(plan, stream=replace(plan.stream, types=types))
    program: Program = WindowProgram(known, work, packer.sharing())
    if wanted.memory is not None and wanted.answers:
        program = SpillProgram(work, budget_of(wanted.memory), packer.sharing())
    run = processor(session, program, token)
    answers = packed.groupBy("bucket").transformWithStateInPandas(run, wanted.columns, "append", "none")
    place = OVER_ANSWERS * (read is not None) + FOR_ANOTHER * wanted.for_another
    return (observed if wanted.plain is None else observed_texts)(answers, token[:8] + place)


def _handed(rows: DataFrame, columns: Sequence[str], packer: Packer) -> tuple[DataFrame, Packer]:
    """The columns that tasks read, by other names where Spark would take theirs apart."""
    rows = rows.select(*named(rows, columns))
    if not any(set(name) & {".", "`"} for name in columns):
        return rows, packer

    def read(batches: Iterable[pa.RecordBatch], _: Seen) -> Iterator[pa.RecordBatch]:
        return (batch.rename_columns(list(columns)) for batch in batches)

    return by_place(rows), replace(packer, read=read)


def _rows_of(source: Source, wanted: Wanted) -> tuple[DataFrame, Reader | None]:
    """The source's rows, or the tagged answers of the query that the stream reads and how to open them."""
    if source.upstream is None:
        return source.foreign, None
    upstream: Query = source.upstream
    inner = Wanted(wanted.buckets, wanted.control, wanted.memory, for_another=True)
    frame = tagged_frame(upstream.plan, upstream.source, inner)
    return frame.select("output", "payload", "bound"), _opener(upstream.node.name)


def _opener(name: str) -> Reader:
    """How a task reads the answers of a query as rows; their punctuation is the query's own."""

    def read(batches: Iterable[pa.RecordBatch], seen: Seen) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            bounds = [bound for bound in batch.column(2).to_pylist() if bound not in (None, NEVER)]
            seen.bound = max([*bounds, *(() if seen.bound is None else (seen.bound,))], default=None)
            for tag, payload in zip(batch.column(0), batch.column(1), strict=True):
                if tag.as_py() == name:
                    for part in read_batches(payload.as_py()):
                        yield from flattened(pa.Table.from_batches([part])).to_batches()

    return read


def _whole(work: Work) -> Callable[[Any], Any]:
    """The batch job: a bucket takes everything in at once and closes every window."""

    def run(frame: Any) -> Any:
        return Bucket(work).answer(Received().add(frame["part"], frame["payload"]), end=True)

    return run


def _session_of(source: Source) -> SparkSession:
    """The session of the frame that a stream reads in the end."""
    while source.upstream is not None:
        source = source.upstream.source
    session: SparkSession = source.foreign.sparkSession
    return session


def _arrow_schemas(plan: Plan, strays: Sequence[str]) -> dict[str, pa.Schema]:
    """The columns of each output."""
    rows = pa.schema(list(plan.stream.types))
    other = {LATE: rows, REJECTS: rows.append(pa.field("reason", pa.string()))}
    arrow = {name: schema for part in parts_of(plan) for name, schema in part.operator().schemas().items()}
    return arrow | {name: other[name] for name in strays}


_labels: dict[int, tuple[int, ...]] = {}


def bucket_labels(session: SparkSession, n: int) -> tuple[int, ...]:
    """One integer for each residue of Spark's own hash, so that every shuffle partition gets exactly one."""
    if n not in _labels:
        residue = F.pmod(F.hash(F.col("id").cast("int")), F.lit(n)).alias("p")
        found: dict[int, int] = {}
        for row in session.range(64 * n).select("id", residue).collect():
            found.setdefault(row.p, row.id)
        _labels[n] = tuple(found[p] for p in range(n))
    return _labels[n]


RUNTIMES["to_spark"] = to_spark
RUNTIMES["all_to_spark"] = all_to_spark
