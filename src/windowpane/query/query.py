"""A query: a stream with windows and aggregates, ready to run, to push to, or to explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from windowpane.explain import explain_plan
from windowpane.plan.nodes import Plan, WindowQuery, check
from windowpane.planner.spill_text import explain_memory
from windowpane.query.source import RUNTIMES, Source
from windowpane.values.errors import BadQuery
from windowpane.values.sizes import Memory, budget_of


@dataclass(frozen=True)
class Query:
    """A query that is ready to run, to push to, or to explain."""

    plan: Plan
    source: Source

    @property
    def node(self) -> WindowQuery:
        """The query's node."""
        return self.plan.queries[0]

    def explain(self, memory: Memory | None = None, *, rate: float = 1000.0, groups: float = 100.0) -> str:
        """What will be done, and why.

        With `memory`, also how a run within it would keep its windows at `rate` tuples per second (per unit
        of another measure) and `groups` keys.
        """
        if memory is None:
            return explain_plan(self.plan)
        return explain_plan(self.plan) + explain_memory(self.plan, budget_of(memory), rate, groups)

    def run(self, memory: Memory | None = None, spill_dir: str | Path | None = None) -> Any:
        """Run over the stream's source to its end and close every window.

        With `memory` ("64 MB"), the state keeps to that: what does not fit goes to disk, into `spill_dir` or
        a temporary directory.
        """
        return RUNTIMES["run"](self, memory=memory, spill_dir=spill_dir)

    def to_spark(self, what: str = "answers", **options: Any) -> Any:
        """The answers as a Spark DataFrame, where the stream is one: streaming or batch as the source is.

        Args:
            what: "answers"; "late" for the rows that came too late; "rejects" for those without a place in
                time, with their reason.
            **options: `buckets`, how many shares the keys are cut into (default: Spark's shuffle
                partitions); `control`, a folder through which `windowpane.spark.punctuate` and `finish`
                reach the running stream; `memory` ("64 MB"), what the state of each bucket may take of its
                worker's memory: blocks that do not fit stay in Spark's state store.
        """
        need_spark(self)
        return RUNTIMES["to_spark"](self, what, **options)

    def start(self, memory: Memory | None = None, spill_dir: str | Path | None = None) -> Any:
        """Start a run that batches and punctuation are pushed to by hand; `memory` as for `run`."""
        return RUNTIMES["start"](self, memory=memory, spill_dir=spill_dir)

    def resume(self, snapshot: Any, memory: Memory | None = None) -> Any:
        """Go on with a run of this query where its snapshot (or the bytes of one) was taken.

        For a run within `memory`: give the `spill_dir` in which it wrote its checkpoint and, if it is to have
        another budget than before, `memory`.
        """
        return RUNTIMES["resume"](snapshot, self, memory=memory)


def need_query(given: object) -> None:
    """Fail unless it is a query."""
    if not isinstance(given, Query):
        raise BadQuery(f"{type(given).__name__} is no query. Give what .window(...).agg(...) returns.")


def need_spark(query: object) -> None:
    """Fail unless Spark runs the query."""
    need_query(query)
    assert isinstance(query, Query)
    if not query.source.on_spark:
        raise BadQuery("this stream is no Spark DataFrame. Use .run() or .start() instead.")


def together(queries: Sequence[Query]) -> tuple[Plan, Source]:
    """One plan for several queries over the same stream; queries that share a name are numbered."""
    if not queries:
        raise BadQuery("there is no query to run. Give at least one.")
    for query in queries:
        need_query(query)
    stream_, source = queries[0].plan.stream, queries[0].source
    for query in queries:
        if query.source is not source or query.plan.stream != stream_:
            raise BadQuery(
                "the queries read different streams. Build them from one wp.stream(...), or run them apart."
            )
    names = [query.node.name for query in queries]
    nodes = tuple(
        replace(q.node, name=f"{n}_{i + 1}") if names.count(n) > 1 else q.node
        for i, (q, n) in enumerate(zip(queries, names, strict=True))
    )
    return check(Plan(stream_, nodes)), source
