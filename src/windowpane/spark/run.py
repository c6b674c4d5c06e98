"""Run: a plan becomes a Spark DataFrame, streaming or batch."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses
from pyspark.sql.types import StructType

from windowpane.plan.nodes import Plan, Stream, WindowQuery
from windowpane.planner.compile import compile_plan
from windowpane.query import RUNTIMES, Query
from windowpane.spark.bucket import Bucket, Received, result_schema
from windowpane.spark.pack import ENVELOPE_DDL, Packer
from windowpane.spark.processor import WindowProcessor, flat_schema, to_frame
from windowpane.spark.progress import Rule, rule_of
from windowpane.spark.reduce import Reducer, reducible
from windowpane.values.windows import LastRows, PerRow, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def schema_of(frame: DataFrame) -> pa.Schema:
    """The Arrow schema of a Spark DataFrame, found without reading it."""
    empty = frame.sparkSession.createDataFrame([], frame.schema)
    return empty.toArrow().schema


def spark_schema(session: SparkSession, schema: pa.Schema) -> StructType:
    """The Spark schema of an Arrow schema."""
    return session.createDataFrame(schema.empty_table()).schema


def to_spark(query: Query, *, buckets: int | None = None) -> DataFrame:
    """The query's answers as an ordinary DataFrame: streaming if its source is, else batch."""
    source = query.source.foreign
    session = source.sparkSession
    plan = _pruned(query.plan)
    rule = rule_of(plan.stream.policy, plan.stream.max_ahead)
    keys = bucket_columns(plan.queries)
    count = buckets or int(session.conf.get("spark.sql.shuffle.partitions"))
    labels = bucket_labels(session, count) if keys else (0,)
    packer = Packer(plan.stream.time, keys, labels, rule)
    if reducible(plan):
        packer = Reducer(plan.stream.time, keys, labels, rule, plan)
    packed = source.select(*plan.stream.columns).mapInArrow(packer, ENVELOPE_DDL)
    operator = compile_plan(plan)[0]
    schema = flat_schema(result_schema(operator, plan.queries[0].name))
    grouped = packed.groupBy("bucket")
    if source.isStreaming:
        processor = WindowProcessor(plan, packer, uuid.uuid4().hex)
        answers = grouped.transformWithStateInPandas(
            processor, spark_schema(session, schema), "append", "none"
        )
    else:
        answers = grouped.applyInPandas(_whole(plan, rule), spark_schema(session, schema))
    return _with_window(answers, schema.names)


def _whole(plan: Plan, rule: Rule) -> Any:
    """The batch job: a bucket takes everything in at once and closes every window."""

    def run(frame: Any) -> Any:
        received = Received().add(frame)
        bucket = Bucket(plan, rule)
        return to_frame(next(iter(bucket.step(received, end=True).values())))

    return run


def _with_window(frame: DataFrame, names: Iterable[str]) -> DataFrame:
    def columns() -> Iterator[Any]:
        for name in names:
            if name == "window_start":
                yield F.struct(F.col("window_start").alias("start"), F.col("window_end").alias("end")).alias(
                    "window"
                )
            elif name != "window_end":
                yield F.col(name)

    return frame.select(*columns())


def bucket_columns(queries: Iterable[WindowQuery]) -> tuple[str, ...]:
    """The columns by which rows can be shared out so that no window is torn; none: one bucket takes all.

    A window that counts positions needs all rows of its partition; any other needs all rows of a key.
    """
    common: list[str] | None = None
    for query in queries:
        for window in query.windows:
            counts = isinstance(window, Rows | PerRow | LastRows)
            needs = query.partition(window) if counts else query.keys
            common = list(needs) if common is None else [c for c in common if c in needs]
    return tuple(sorted(common or ()))


def bucket_labels(session: SparkSession, n: int) -> tuple[int, ...]:
    """One integer for each residue of Spark's own hash, so that every shuffle partition gets exactly one."""
    found: dict[int, int] = {}
    size = 64 * n
    candidates = session.range(size).select(
        "id", F.pmod(F.hash(F.col("id").cast("int")), F.lit(n)).alias("p")
    )
    for row in candidates.collect():
        found.setdefault(row.p, row.id)
    return tuple(found[p] for p in range(n))


def _pruned(plan: Plan) -> Plan:
    """The plan with only the columns that are read, so that Catalyst reads no others."""
    operator = compile_plan(plan)[0]
    stream = plan.stream
    wanted = {
        stream.time,
        *stream.policy_columns(),
        *operator.columns,
        *([stream.ties] if stream.ties else []),
    }
    wanted |= {c for query in plan.queries for c in query.grouping}
    if operator.tie:
        wanted |= set(operator.tie)
    types = tuple((name, kind) for name, kind in stream.types if name in wanted)
    pruned: Stream = replace(stream, types=types)
    return replace(plan, stream=pruned)


RUNTIMES["to_spark"] = to_spark
