"""Update queues: the newest row of each key for a function that cannot keep up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowpane.plan.nodes import Stream
from windowpane.query.checks import check_keys
from windowpane.query.query import Query, need_spark
from windowpane.query.source import FOREIGN, RUNTIMES, Source
from windowpane.values.errors import BadQuery

if TYPE_CHECKING:
    from windowpane.query.stream import StreamBuilder

STALENESS = ("queue_staleness", "application_staleness", "stale_for")
"""Columns that the staleness of a key has besides the key."""
STANDS_FOR, NUMBER = "windowpane rows", "windowpane number"
"""Columns of rows on their way to a queue, how many they stand for, and in its state, their number."""
_OPTIONS = ("buckets", "control")


@dataclass(frozen=True)
class Latest:
    """An update queue; `apply` says what is done with the rows that it serves."""

    stream: StreamBuilder
    keys: tuple[str, ...]
    policy: str
    budget: int

    def apply(
        self, function: Callable[[Any], Any], schema: Any = None, *, name: str = "latest"
    ) -> LatestQuery:
        """Call `function` with pandas frames of newest rows, one per key; it returns a frame.

        `schema` has the columns that it returns: an Arrow schema, a StructType, or text as Spark takes it; by
        default they are those of the stream. The output goes by `name`.
        """
        if not callable(function):
            raise BadQuery(f"apply({function!r}): give a function that takes and returns a pandas DataFrame.")
        _need_name(name)
        if schema is None:
            schema = pa.schema(self.stream.node.types)
        _need_schema(schema)
        return LatestQuery(self.stream, self.keys, self.policy, self.budget, function, schema, name)


@dataclass(frozen=True)
class LatestQuery:
    """An update queue with the function behind it, ready to run on Spark."""

    stream: StreamBuilder
    keys: tuple[str, ...]
    policy: str
    budget: int
    function: Callable[[Any], Any]
    schema: Any
    name: str = "latest"

    def to_spark(self, what: str = "answers", **options: Any) -> Any:
        """What the function returned, or the `staleness` of keys that were served or wait, as a DataFrame.

        Each call makes a queue of its own, which calls the function: to have both outputs of one queue, use
        `wp.to_spark(queue)` and its `foreach`. In a `foreachBatch` of your own, persist a micro-batch that is
        used twice: each use would call the function anew. The options `buckets` and `control` are those of
        `Query.to_spark`; `windowpane.spark.finish` has everything served that still waits.
        """
        _need_frame(self, options)
        if what not in ("answers", "staleness"):
            raise BadQuery(f"to_spark({what!r}): there is no such output. Use 'answers' or 'staleness'.")
        return RUNTIMES["latest_to_spark"](self, what, **options)


def to_spark(*queries: Query | LatestQuery, late: bool = False, rejects: bool = False, **options: Any) -> Any:
    """Several queries over one Spark DataFrame in one pass, whatever their keys; or several update queues.

    Gives `windowpane.spark.Outputs`: one DataFrame of tagged payloads, and the way to split a micro-batch of
    it into a DataFrame for each query and, if wanted, for the `late` rows and the `rejects`. The options are
    those of `Query.to_spark`; queues have `buckets` and `control`.
    """
    queues = [query for query in queries if isinstance(query, LatestQuery)]
    if queues:
        return _queues_to_spark(queues, len(queries), strays=late or rejects, **options)
    windows = [query for query in queries if isinstance(query, Query)]
    for query in queries:
        need_spark(query)
    return RUNTIMES["all_to_spark"](windows, late=late, rejects=rejects, **options)


def _queues_to_spark(queues: Sequence[LatestQuery], given: int, *, strays: bool, **options: Any) -> Any:
    if strays:
        raise BadQuery(
            "update queues have no late rows and no rejects to give: every row is served, overwritten, or "
            "counted (windowpane.spark.counts_of). Leave late= and rejects= out."
        )
    if len(queues) < given or any(queue.stream != queues[0].stream for queue in queues):
        raise BadQuery(
            "update queues run together only with queues over the same stream; run the others apart."
        )
    _need_own_outputs(queues)
    _need_frame(queues[0], options)
    return RUNTIMES["all_latest_to_spark"](queues, **options)


def need_queue(node: Stream, keys: tuple[str, ...], source: Source) -> None:
    """Fail unless a queue of these keys can be put on the stream."""
    if source.upstream is not None and source.on_spark:
        raise BadQuery(
            "latest() cannot be put on the answers of a query on Spark. Write the answers out, to files or "
            "a topic, and read those as a stream of their own."
        )
    if node.ids:
        raise BadQuery(
            f"latest() looks for no duplicates, but ids is {', '.join(node.ids)}. Leave ids out: a "
            "queue keeps the newest row of each key, and a duplicate of it changes nothing."
        )
    if not keys:
        raise BadQuery("latest() needs a key: the columns that say what a row updates.")
    node.require(*keys)
    check_keys(node, keys)
    for what, names, own in (("key column", keys, STALENESS), ("column", node.columns, (STANDS_FOR, NUMBER))):
        for name in names:
            if name in own:
                raise BadQuery(f"the {what} {name!r} has the name of a column of latest(). Rename it first.")


def need_columns(columns: Sequence[str]) -> None:
    """Fail unless a function can return a frame of these columns."""
    if not columns:
        raise BadQuery("apply(): the schema has no columns. Give those that the function returns.")
    for name in columns:
        if list(columns).count(name) > 1:
            raise BadQuery(f"apply(): the schema has two columns {name!r}. Rename one of them.")


def _need_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise BadQuery(f"apply(name={name!r}): give a text that is not empty; the output goes by it.")


def _need_schema(schema: object) -> None:
    """Fail unless it may be a schema; what only Spark can read, it reads when the query is made."""
    if isinstance(schema, pa.Schema):
        need_columns(schema.names)
    elif isinstance(schema, str) and not schema.strip():
        need_columns(())
    elif not isinstance(schema, str) and type(schema).__module__.split(".")[0] not in FOREIGN:
        raise BadQuery(
            f"apply(): the schema is {schema!r}. Give an Arrow schema, a StructType, or a text such as "
            "'key string, score double'."
        )


def _need_frame(queue: LatestQuery, options: Iterable[str]) -> None:
    """Fail unless the stream is a Spark DataFrame and all options are for queues."""
    if queue.stream.source.foreign is None:
        raise BadQuery("this stream is no Spark DataFrame. In one process use wp.UpdateQueue.")
    for name in options:
        if name not in _OPTIONS:
            raise BadQuery(
                f"to_spark({name}=...) is not for update queues, which have {' and '.join(_OPTIONS)}. "
                "Leave it out."
            )


def _need_own_outputs(queues: Sequence[LatestQuery]) -> None:
    """Fail if two outputs have one name, or a queue's results would take the place of another's staleness."""
    outputs = Counter(name for queue in queues for name in (queue.name, f"{queue.name} staleness"))
    name, times = outputs.most_common(1)[0]
    if times > 1:
        raise BadQuery(
            f"two outputs are named {name!r}: a queue has one of its own name and one of its name and "
            "' staleness'. Give each queue another name: .apply(..., name='...')."
        )
