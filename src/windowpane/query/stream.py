"""The fluent API: a stream, its windows, its aggregates. It builds plan nodes; runtimes run them.

bids = wp.stream(batches, time="ts", keys=["symbol"], delay="2 s")
out = bids.window(wp.sliding("10 min", "1 s")).agg(wp.count(), vwap=wp.weighted_mean("price", "volume"))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from types import FunctionType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.aggregates import bind
from windowpane.core.columns import to_batches, without_views
from windowpane.core.derivation import text_of
from windowpane.core.results import flat_schema
from windowpane.plan.nodes import AnyAggregate, Emit, Plan, Stream, WindowQuery, check
from windowpane.planner.compile import compile_plan
from windowpane.query.checks import check_keys, check_names, check_types, is_measure, length, names
from windowpane.query.latest import Latest, need_queue
from windowpane.query.query import Query
from windowpane.query.source import FOREIGN, Source
from windowpane.values.durations import Duration, microseconds
from windowpane.values.errors import BadQuery
from windowpane.values.freshness import SWITCH, policy_of
from windowpane.values.punctuation import Policy, delay, manual, need_policy, ordered
from windowpane.values.windows import Rows, Window

A_YEAR = microseconds("365 days")
RESERVED = ("window", "definition", "revision", "final")
"""Columns that a result has besides its keys and aggregates."""
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
    required: str | Iterable[str] = (),
    ids: str | Iterable[str] = (),
    schema: pa.Schema | None = None,
    name: str = "stream",
) -> StreamBuilder:
    """A progressing stream to put windows on.

    Args:
        source: pyarrow Tables or RecordBatches (or an iterable of them), pandas or Polars frames, a dict of
            lists, a Spark DataFrame, or a query, whose answers are then the stream. Leave it out and give
            `schema` to push batches by hand.
        time: the column that the stream progresses on: timestamps, dates, or any integer measure.
        keys: the columns to group by, unless a query says otherwise.
        delay: how far tuples may be out of order: the punctuation follows the largest time by this much.
        punctuation: another policy than a delay (default: `ordered()`, times never fall).
        lateness: how long after the punctuation a tuple may still revise answers.
        max_ahead: tuples further ahead of the stream than this are rejected (default: 365 days for times, no
            limit for integer measures; None: no limit).
        ties: an integer column that orders tuples of equal time (default: their content does).
        required: columns that must not be null: a row that lacks one is rejected, with the reason "null ...".
        ids: columns that tell rows apart: of rows that are equal in them the first counts, and the others are
            duplicates. Ids are remembered until the punctuation, less the lateness, passed their rows; a row
            with a null in one has no id and is no duplicate.
        schema: the columns, where there is no source to read them from.
        name: what messages call the stream.
    """
    if delay is not None and punctuation is not None:
        raise BadQuery("both delay and punctuation are given. Give one: a delay is the policy delay(...).")
    if punctuation is not None:
        need_policy("punctuation", punctuation)
    if isinstance(source, Query):
        own = {"delay": delay, "punctuation": punctuation, "lateness": lateness or None, "schema": schema}
        own |= {"max_ahead": None if max_ahead == _UNSET else max_ahead, "ids": ids or None}
        given = [option for option, value in own.items() if value is not None]
        if given:
            raise BadQuery(
                f"a stream of answers has the punctuation and the columns of its query, and no duplicates. "
                f"Leave {' and '.join(given)} out."
            )
        return _chained(source, time, keys, ties, name, names(required, "required"))
    foreign = FOREIGN.get(type(source).__module__.split(".")[0])
    if foreign is not None and schema is not None:
        raise BadQuery("a Spark DataFrame has its own schema. Leave schema out, or cast its columns first.")
    if foreign is not None:
        schema, batches = foreign().schema_of(source), None
    else:
        schema, batches = _read(source, schema)
    types = tuple((f.name, f.type) for f in without_views(schema))
    check_names([column for column, _ in types])
    policy = punctuation or (ordered() if delay is None else _delay(delay))
    node = Stream(types, time, names(keys), policy, length("lateness", lateness), None, ties, name)
    node = replace(node, required=names(required, "required"), ids=names(ids, "ids"))
    check(Plan(node, ()))
    check_types(node)
    ahead = (None if is_measure(node) else A_YEAR) if max_ahead == _UNSET else max_ahead
    node = replace(node, max_ahead=None if ahead is None else length("max_ahead", ahead))
    return StreamBuilder(node, Source(batches, None if foreign is None else source))


def _chained(
    upstream: Query,
    time: str,
    keys: str | Iterable[str],
    ties: str | None,
    name: str,
    required: tuple[str, ...],
) -> StreamBuilder:
    """The answers of a query as a stream, which progresses with the query's own punctuation."""
    query = upstream.node
    if time != "window_end":
        raise BadQuery(
            f"a stream of answers progresses on 'window_end', not on {time!r}. Give time='window_end'."
        )
    if isinstance(query.windows[0], Rows):
        raise BadQuery(
            f"the windows of {query.name!r} are measured in rows, so their ends are no time to go by."
        )
    if query.emit == "update" or upstream.plan.stream.lateness:
        raise BadQuery(
            f"query {query.name!r} gives provisional or revised answers, which would count twice here. "
            "Leave emit='update' and lateness out."
        )
    schema = flat_schema(compile_plan(upstream.plan)[0].schemas()[query.name])
    check_names(schema.names)
    types = tuple((f.name, f.type) for f in schema)
    node = Stream(types, time, names(keys), manual(), 0, None, ties, name, required=required)
    check(Plan(node, ()))
    check_types(node)
    return StreamBuilder(node, Source(None, upstream=upstream))


def _delay(length: Duration) -> Policy:
    return delay(length)


def _read(source: object, schema: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch] | None]:
    """The schema, of the first batch where there is one, and all batches; None where there is no source."""
    if schema is not None and not isinstance(schema, pa.Schema):
        raise BadQuery(f"schema is a {type(schema).__name__}. Give a pyarrow Schema: pyarrow.schema(...).")
    batches = None if source is None else to_batches(source)
    first = None if batches is None else next(batches, None)
    if first is not None and batches is not None:
        return first.schema, chain([first], batches)
    if schema is None and source is None:
        raise BadQuery("the stream has neither a source nor a schema. Give one of them.")
    if schema is None:
        raise BadQuery("the source is empty, so its columns are not known. Give a schema too.")
    return schema, batches


@dataclass(frozen=True)
class StreamBuilder:
    """A stream that windows can be put on."""

    node: Stream
    source: Source

    def where(self, condition: Any) -> StreamBuilder:
        """Only the rows that fulfil a condition; they are dropped before anything looks at them.

        On Spark a SQL text or a Column, which Catalyst runs; in this process a `pyarrow.compute` expression,
        which all rows go through, those of a source and those that are pushed by hand.
        """
        if self.source.foreign is not None:
            filtered = Source(None, self.source.foreign.where(condition))
            return StreamBuilder(self.node.where(_sql(condition)), filtered)
        self._need_rows("where")
        if not isinstance(condition, pc.Expression):
            raise BadQuery(
                f"where({condition!r}): in this process give an expression: pyarrow.compute.field('x') > 0."
            )
        return replace(self, node=self.node.where(text_of(condition)).through(condition))

    def select(self, *columns: str, **computed: Any) -> StreamBuilder:
        """These columns, and computed ones by name; time, keys, ties, ids and required ones must be among.

        On Spark a computed column is a SQL text or a Column, which Catalyst runs; in this process it is a
        `pyarrow.compute` expression. Rows that are pushed by hand have the columns from before.
        """
        if self.source.foreign is not None:
            frame, schema = FOREIGN["pyspark"]().selected(self.source.foreign, columns, computed)
            check_names(schema.names)
            made = self.node.computing({name: _sql(expression) for name, expression in computed.items()})
            node = replace(made, types=tuple((f.name, f.type) for f in without_views(schema)))
            selected = StreamBuilder(node, Source(None, frame))
        else:
            self._need_rows("select")
            selected = replace(self, node=self._selected(columns, computed))
        check(Plan(selected.node, ()))
        check_types(selected.node)
        return selected

    def _selected(self, columns: tuple[str, ...], computed: dict[str, Any]) -> Stream:
        """The stream of these columns, and computed ones, in this process."""
        for name, expression in computed.items():
            if not isinstance(expression, pc.Expression):
                raise BadQuery(
                    f"select({name}={expression!r}): in this process give an expression: "
                    "pyarrow.compute.field('x') * 2."
                )
        self.node.require(*columns)
        made = self.node.computing({name: text_of(expression) for name, expression in computed.items()})
        return made.through(tuple(({name: pc.field(name) for name in columns} | computed).items()))

    def _need_rows(self, what: str) -> None:
        """Fail where the rows are answers that Spark gives: they never are a frame of their own."""
        if self.source.on_spark:
            raise BadQuery(
                f"{what}() cannot be put between two queries on Spark. Put it before the first query, or on "
                "the answers of the second."
            )

    def latest(
        self, key: str | Iterable[str] | None = None, *, policy: str = "freshest", budget: Duration = "1 s"
    ) -> Latest:
        """Only the newest row of each key, for a function that cannot keep up: an update queue.

        Args:
            key: what a row updates (default: the stream's keys).
            policy: which key is served next: `freshest`, `in_place`, `linecutting` or `fifo`; `append` and
                `shed` keep every row; `switch` keeps every row until the function falls behind.
            budget: the time that the function may take in each micro-batch; buckets that run one after the
                other share it.
        """
        keys = self.node.keys if key is None else names(key)
        need_queue(self.node, keys, self.source)
        allowed = length("budget", budget)
        if allowed == 0:
            raise BadQuery("latest(): the budget is 0, so nothing would ever be served. Give '800 ms', say.")
        if policy != SWITCH:
            policy_of(policy)
        return Latest(self, keys, policy, allowed)

    def window(self, *windows: Window, keys: str | Iterable[str] | None = None) -> Windowed:
        """Put one or several windows on the stream; `keys` replaces the stream's own grouping."""
        for window in windows:
            if not isinstance(window, Window):
                raise BadQuery(f"{_shown(window)} is no window. Give one such as tumbling('1 min').")
        chosen = self.node.keys if keys is None else names(keys)
        check_keys(self.node, chosen)
        return Windowed(self, tuple(windows), chosen)


def _sql(expression: object) -> str:
    """A SQL text, or a Column as Spark shows it, without the numbers that it gives to columns."""
    return expression if isinstance(expression, str) else re.sub(r"#\d+L?", "", str(expression))


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
        for aggregate in (*aggregates, *named.values()):
            if not isinstance(aggregate, AnyAggregate):
                raise BadQuery(
                    f"{_shown(aggregate)} is no aggregate. Give one such as count() or sum('price')."
                )
        all_ = (*aggregates, *(aggregate.named(output) for output, aggregate in named.items()))
        query = WindowQuery(name, self.windows, all_, self.keys, emit)
        plan = check(Plan(self.stream.node, (query,)))
        for key in query.grouping:
            if key in RESERVED:
                raise BadQuery(f"the key column {key!r} has the name of a result column. Rename it first.")
        for aggregate in all_:
            bind(aggregate, dict(plan.stream.types))  # a column of a wrong type is an error here already
        return Query(plan, self.stream.source)


def _shown(given: object) -> str:
    """A value as a user wrote it; a function or class by its name."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return f"the function {given.__name__}" if isinstance(given, FunctionType) else repr(given)
