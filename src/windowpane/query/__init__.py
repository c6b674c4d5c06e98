"""Layer 5: the fluent API. It builds plan nodes; runtimes run them."""

from windowpane.query.latest import Latest, LatestQuery, to_spark
from windowpane.query.query import Query, need_query, need_spark, together
from windowpane.query.source import FOREIGN, RUNTIMES, Source
from windowpane.query.stream import StreamBuilder, Windowed, stream

__all__ = [
    "FOREIGN",
    "RUNTIMES",
    "Latest",
    "LatestQuery",
    "Query",
    "Source",
    "StreamBuilder",
    "Windowed",
    "need_query",
    "need_spark",
    "stream",
    "to_spark",
    "together",
]
