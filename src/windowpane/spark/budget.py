"""What of the budget of a micro-batch a queue has in one bucket, by how Spark runs the buckets."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses


def share_of(budget: float, *, together: Iterable[int], tasks: int, queues: int) -> float:
    """The seconds that a queue has in one bucket, of a budget for the whole micro-batch.

    `together` has for each shuffle partition how many buckets fell into it: these run one after the other,
    and so do a bucket's queues. As many partitions run at once as there are tasks, in order.
    """
    busy = [0] * max(tasks, 1)
    for buckets in together:
        heapq.heapreplace(busy, busy[0] + buckets)
    return budget / (max(*busy, 1) * queues)


_together: dict[tuple[tuple[int, ...], int], tuple[int, ...]] = {}


def buckets_together(session: SparkSession, labels: Sequence[int], partitions: int) -> tuple[int, ...]:
    """How many buckets Spark's hash puts into each shuffle partition that has any.

    Labels are distinct for as many partitions as there are buckets; where there are more, some may meet.
    """
    if len(labels) == partitions:
        return (1,) * partitions
    known = tuple(labels), partitions
    if known not in _together:
        rows = session.range(max(labels) + 1).where(F.col("id").isin(list(labels)))
        places = rows.select(F.pmod(F.hash(F.col("id").cast("int")), F.lit(partitions)).alias("place"))
        counts = Counter(row.place for row in places.collect())
        _together[known] = tuple(counts[place] for place in sorted(counts))
    return _together[known]


def parallel_tasks(session: SparkSession) -> int:
    """How many tasks run at once, as Spark counts its cores now."""
    try:
        return int(session.sparkContext.defaultParallelism)
    except PySparkException:  # there is no context over Spark Connect; a range has as many partitions
        places = session.range(1 << 16).select(F.spark_partition_id().alias("place"))
        return int(places.agg(F.max("place").alias("last")).collect()[0]["last"]) + 1
