"""Windowed queries over streams, on Apache Spark and in-process, with one answer for both."""

from importlib import import_module

from windowpane import errors
from windowpane.core.algebra_check import check_algebra
from windowpane.local import (
    Freshness,
    Snapshot,
    UpdateQueue,
    Updates,
    UpdateWindows,
    WindowFreshness,
    resume,
    run,
    start,
)
from windowpane.query import FOREIGN, stream, to_spark
from windowpane.values.aggregates import (
    Algebra,
    approx_distinct,
    approx_quantile,
    arg_max,
    arg_min,
    collect,
    count,
    distinct,
    first,
    geometric_mean,
    heavy_hitters,
    last,
    m4,
    max,  # noqa: A004 - read as `wp.max`
    max_count,
    mean,
    median,
    min,  # noqa: A004 - as above
    min_count,
    quantile,
    stddev,
    sum,  # noqa: A004 - as above
    top_k,
    variance,
    weighted_mean,
)
from windowpane.values.punctuation import delay, external, heartbeat, manual, melded, ordered, slack
from windowpane.values.sizes import Budget
from windowpane.values.user_aggregates import UserAggregate
from windowpane.values.windows import (
    ContextAwareWindow,
    ContextFreeWindow,
    cumulative,
    delimited,
    landmark,
    last_rows,
    per_row,
    rows,
    session,
    sliding,
    tumbling,
)

# Spark is loaded only when a stream is a Spark DataFrame.
FOREIGN["pyspark"] = lambda: import_module("windowpane.spark")

__all__ = [
    "Algebra",
    "Budget",
    "ContextAwareWindow",
    "ContextFreeWindow",
    "Freshness",
    "Snapshot",
    "UpdateQueue",
    "UpdateWindows",
    "Updates",
    "UserAggregate",
    "WindowFreshness",
    "approx_distinct",
    "approx_quantile",
    "arg_max",
    "arg_min",
    "check_algebra",
    "collect",
    "count",
    "cumulative",
    "delay",
    "delimited",
    "distinct",
    "errors",
    "external",
    "first",
    "geometric_mean",
    "heartbeat",
    "heavy_hitters",
    "landmark",
    "last",
    "last_rows",
    "m4",
    "manual",
    "max",
    "max_count",
    "mean",
    "median",
    "melded",
    "min",
    "min_count",
    "ordered",
    "per_row",
    "quantile",
    "resume",
    "rows",
    "run",
    "session",
    "slack",
    "sliding",
    "start",
    "stddev",
    "stream",
    "sum",
    "to_spark",
    "top_k",
    "tumbling",
    "variance",
    "weighted_mean",
]
