"""Layer 5: the fluent API. It builds plan nodes; runtimes run them."""

from windowpane.query.latest import NUMBER, STALENESS, STANDS_FOR, Latest, LatestQuery, need_columns, to_spark
from windowpane.query.query import Query, need_query, need_spark, together
from windowpane.query.source import FOREIGN, RUNTIMES, Source
from windowpane.query.stream import StreamBuilder, Windowed, stream

__all__ = [
    "FOREIGN",
    "NUMBER",
    "RUNTIMES",
    "STALENESS",
    "STANDS_FOR",
    "Latest",
    "LatestQuery",
    "Query",
    "Source",
    "StreamBuilder",
    "Windowed",
    "need_columns",
    "need_query",
    "need_spark",
    "stream",
    "to_spark",
    "together",
]
