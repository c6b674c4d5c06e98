"""Update queues: the newest row of each key for a function that cannot keep up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowpane.query.query import Query, need_spark
from windowpane.query.source import RUNTIMES
from windowpane.values.errors import BadQuery

if TYPE_CHECKING:
    from windowpane.query.stream import StreamBuilder


@dataclass(frozen=True)
class Latest:
    """An update queue; `apply` says what is done with the rows that it serves."""

    stream: StreamBuilder
    keys: tuple[str, ...]
    policy: str
    budget: int

    def apply(
        self, function: Callable[[Any], Any], schema: pa.Schema | str, *, name: str = "latest"
    ) -> LatestQuery:
        """Call `function` with pandas frames of newest rows, one per key; it returns a frame.

        `schema` has the columns that it returns: an Arrow schema, or text as Spark takes it.
        """
        if not callable(function):
            raise BadQuery(f"apply({function!r}): give a function that takes and returns a pandas DataFrame.")
        return LatestQuery(self.stream, self.keys, self.policy, self.budget, function, schema, name)


@dataclass(frozen=True)
class LatestQuery:
    """An update queue with the function behind it, ready to run on Spark."""

    stream: StreamBuilder
    keys: tuple[str, ...]
    policy: str
    budget: int
    function: Callable[[Any], Any]
    schema: pa.Schema | str
    name: str = "latest"

    def to_spark(self, what: str = "answers", **options: Any) -> Any:
        """What the function returned, or the `staleness` of keys that were served or wait, as a DataFrame.

        Each call makes a queue of its own, which calls the function: to have both outputs of one queue, use
        `wp.to_spark(queue)` and its `foreach`. In a `foreachBatch` of your own, persist a micro-batch that is
        used twice: each use would call the function anew. The options `buckets` and `control` are those of
        `Query.to_spark`; `windowpane.spark.finish` has everything served that still waits.
        """
        if self.stream.source.foreign is None:
            raise BadQuery("this stream is no Spark DataFrame. In one process use wp.UpdateQueue.")
        if what not in ("answers", "staleness"):
            raise BadQuery(f"to_spark({what!r}): there is no such output. Use 'answers' or 'staleness'.")
        return RUNTIMES["latest_to_spark"](self, what, **options)


def to_spark(*queries: Query | LatestQuery, late: bool = False, rejects: bool = False, **options: Any) -> Any:
    """Several queries over one Spark DataFrame in one pass, whatever their keys; or several update queues.

    Gives `windowpane.spark.Outputs`: one DataFrame of tagged payloads, and the way to split a micro-batch of
    it into a DataFrame for each query and, if wanted, for the `late` rows and the `rejects`. The options are
    those of `Query.to_spark`.
    """
    queues = [query for query in queries if isinstance(query, LatestQuery)]
    if queues:
        return _queues_to_spark(queues, len(queries), strays=late or rejects, **options)
    windows = [query for query in queries if isinstance(query, Query)]
    for query in queries:
        need_spark(query)
    return RUNTIMES["all_to_spark"](windows, late=late, rejects=rejects, **options)


def _queues_to_spark(queues: Sequence[LatestQuery], given: int, *, strays: bool, **options: Any) -> Any:
    if len(queues) < given or any(queue.stream != queues[0].stream for queue in queues) or strays:
        raise BadQuery(
            "update queues run together only with queues over the same stream; run the others apart."
        )
    _need_own_outputs(queues)
    return RUNTIMES["all_latest_to_spark"](queues, **options)


def _need_own_outputs(queues: Sequence[LatestQuery]) -> None:
    """Fail if two outputs have one name, or a queue's results would take the place of another's staleness."""
    outputs = Counter(name for queue in queues for name in (queue.name, f"{queue.name} staleness"))
    name, times = outputs.most_common(1)[0]
    if times > 1:
        raise BadQuery(
            f"two outputs are named {name!r}: a queue has one of its own name and one of its name and "
            "' staleness'. Give each queue another name: .apply(..., name='...')."
        )
