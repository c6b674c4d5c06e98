"""The fluent API: a stream, its windows, its aggregates. It builds plan nodes; runtimes run them.

bids = wp.stream(batches, time="ts", keys=["symbol"], delay="2 s")
out = bids.window(wp.sliding("10 min", "1 s")).agg(wp.count(), vwap=wp.weighted_mean("price", "volume"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import pyarrow as pa

from windowpane.core.columns import to_batches, without_views
from windowpane.explain import explain_plan
from windowpane.plan.nodes import AnyAggregate, Emit, Plan, Stream, WindowQuery, check
from windowpane.values.durations import Duration, microseconds
from windowpane.values.errors import BadQuery, wrong_type
from windowpane.values.punctuation import Policy, delay, ordered
from windowpane.values.windows import Window

RUNTIMES: dict[str, Callable[..., Any]] = {}
"""Filled by the runtimes when they are imported: how to run and to start queries."""
A_YEAR = microseconds("365 days")
_UNSET = "unset"


def stream(  # noqa: PLR0913 - keyword options, each with a default
    source: object = None,
    *,
    time: str,
    keys: str | Iterable[str] = (),
    delay: Duration | None = None,
    punctuation: Policy | None = None,
    lateness: Duration = 0,
    max_ahead: Duration | None = _UNSET,
    ties: str | None = None,
    schema: pa.Schema | None = None,
    name: str = "stream",
) -> StreamBuilder:
    """A progressing stream to put windows on.

    Args:
        source: pyarrow Tables or RecordBatches (or an iterable of them), pandas or Polars frames, or a dict of
            lists. Leave it out and give `schema` to push batches by hand.
        time: the column that the stream progresses on: timestamps, dates, or any integer measure.
        keys: the columns to group by, unless a query says otherwise.
        delay: how far tuples may be out of order: the punctuation follows the largest time by this much.
        punctuation: another policy than a delay (default: `ordered()`, times never fall).
        lateness: how long after the punctuation a tuple may still revise answers.
        max_ahead: tuples further ahead of the stream than this are rejected (default: 365 days for times, no
            limit for integer measures; None: no limit).
        ties: an integer column that orders tuples of equal time (default: their content does).
        schema: the columns, where there is no source to read them from.
        name: what messages call the stream.
    """
    if delay is not None and punctuation is not None:
        raise BadQuery("both delay and punctuation are given. Give one: a delay is the policy delay(...).")
    batches: Iterator[pa.RecordBatch] | None = None
    if source is not None:
        schema, batches = _peek(to_batches(source), schema)
    if schema is None:
        raise BadQuery("the stream has neither a source nor a schema. Give one of them.")
    types = tuple((f.name, f.type) for f in without_views(schema))
    columns = (keys,) if isinstance(keys, str) else tuple(keys)
    policy = punctuation or (ordered() if delay is None else _delay(delay))
    node = Stream(types, time, columns, policy, microseconds(lateness), None, ties, name)
    check(Plan(node, ()))
    _check_time(node)
    ahead = (None if _is_measure(node) else A_YEAR) if max_ahead == _UNSET else max_ahead
    node = replace(node, max_ahead=None if ahead is None else microseconds(ahead))
    return StreamBuilder(node, _Source(batches))


def _delay(length: Duration) -> Policy:
    return delay(length)


def _peek(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema | None
) -> tuple[pa.Schema | None, Iterator[pa.RecordBatch]]:
    """The schema of the first batch, and all batches."""
    first = next(batches, None)
    if first is None:
        return schema, iter(())
    return first.schema, chain([first], batches)


def _is_measure(node: Stream) -> bool:
    return bool(pa.types.is_integer(node.type(node.time)))


def _check_time(node: Stream) -> None:
    kind = node.type(node.time)
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind)):
        raise wrong_type(
            node.time,
            kind,
            "a time (timestamp, date or integer)",
            f"Parse it first, for example with pyarrow.compute.strptime, or name another column than {node.time!r}.",
        )


@dataclass
class _Source:
    """The batches of a stream; they can be read once."""

    batches: Iterator[pa.RecordBatch] | None
    read: bool = field(default=False)

    def take(self) -> Iterator[pa.RecordBatch]:
        if self.batches is None:
            raise BadQuery(
                "this stream was made from a schema, so there is nothing to run over. Use .start() and push."
            )
        if self.read:
            raise BadQuery(
                "this stream was read already. Make the stream anew, or run all its queries with wp.run(...)."
            )
        self.read = True
        return self.batches


@dataclass(frozen=True)
class StreamBuilder:
    """A stream that windows can be put on."""

    node: Stream
    source: _Source

    def window(self, *windows: Window, keys: str | Iterable[str] | None = None) -> Windowed:
        """Put one or several windows on the stream; `keys` replaces the stream's own grouping."""
        chosen = self.node.keys if keys is None else (keys,) if isinstance(keys, str) else tuple(keys)
        return Windowed(self, tuple(windows), chosen)


@dataclass(frozen=True)
class Windowed:
    """A stream with windows; `agg` makes it a query."""

    stream: StreamBuilder
    windows: tuple[Window, ...]
    keys: tuple[str, ...]

    def agg(
        self, *aggregates: AnyAggregate, name: str = "query", emit: Emit = "final", **named: AnyAggregate
    ) -> Query:
        """What to compute for each window and key. Keyword names become column names.

        `emit="update"` also gives provisional rows for open windows that changed, marked `final = false`.
        """
        all_ = (*aggregates, *(aggregate.named(output) for output, aggregate in named.items()))
        query = WindowQuery(name, self.windows, all_, self.keys, emit)
        return Query(check(Plan(self.stream.node, (query,))), self.stream.source)


@dataclass(frozen=True)
class Query:
    """A query that is ready to run, to push to, or to explain."""

    plan: Plan
    source: _Source

    @property
    def node(self) -> WindowQuery:
        """The query's node."""
        return self.plan.queries[0]

    def explain(self) -> str:
        """What will be done, and why."""
        return explain_plan(self.plan)

    def run(self) -> Any:
        """Run over the stream's source to its end and close every window."""
        return RUNTIMES["run"](self)

    def start(self) -> Any:
        """Start a run that batches and punctuation are pushed to by hand."""
        return RUNTIMES["start"](self)

    def resume(self, snapshot: Any) -> Any:
        """Go on with a run of this query where its snapshot (or the bytes of one) was taken."""
        return RUNTIMES["resume"](snapshot, self)


def together(queries: Sequence[Query]) -> tuple[Plan, _Source]:
    """One plan for several queries over the same stream; queries that share a name are numbered."""
    if not queries:
        raise BadQuery("there is no query to run. Give at least one.")
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
