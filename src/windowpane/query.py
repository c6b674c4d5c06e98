"""The fluent API: a stream, its windows, its aggregates. It builds plan nodes; runtimes run them.

bids = wp.stream(batches, time="ts", keys=["symbol"], delay="2 s")
out = bids.window(wp.sliding("10 min", "1 s")).agg(wp.count(), vwap=wp.weighted_mean("price", "volume"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import FunctionType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.aggregates import bind
from windowpane.core.columns import to_batches, without_views
from windowpane.core.hashing import hashable
from windowpane.core.results import flat_schema, flattened
from windowpane.explain import explain_plan
from windowpane.plan.nodes import AnyAggregate, Emit, Plan, Stream, WindowQuery, check
from windowpane.planner.compile import compile_plan
from windowpane.planner.spill import explain_memory
from windowpane.values.durations import Duration, microseconds
from windowpane.values.errors import BadQuery, wrong_type
from windowpane.values.freshness import policy_of
from windowpane.values.punctuation import LONGEST, Policy, delay, manual, marker_of, need_policy, ordered
from windowpane.values.sizes import Memory, budget_of
from windowpane.values.windows import Rows, Window

RUNTIMES: dict[str, Callable[..., Any]] = {}
"""Filled by the runtimes when they are imported: how to run and to start queries."""
FOREIGN: dict[str, Callable[[], Any]] = {}
"""Packages whose frames another runtime runs, and how to load that runtime; filled by the package itself."""
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
        schema: the columns, where there is no source to read them from.
        name: what messages call the stream.
    """
    if delay is not None and punctuation is not None:
        raise BadQuery("both delay and punctuation are given. Give one: a delay is the policy delay(...).")
    if punctuation is not None:
        need_policy("punctuation", punctuation)
    if isinstance(source, Query):
        if delay is not None or punctuation is not None:
            raise BadQuery(
                "a stream of answers has the punctuation of its query. Leave delay and punctuation out."
            )
        return _chained(source, time, keys, ties, name)
    foreign = FOREIGN.get(type(source).__module__.split(".")[0])
    if foreign is not None:
        schema, batches = foreign().schema_of(source), None
    else:
        schema, batches = _read(source, schema)
    types = tuple((f.name, f.type) for f in without_views(schema))
    _check_names([column for column, _ in types])
    policy = punctuation or (ordered() if delay is None else _delay(delay))
    node = Stream(types, time, _names(keys), policy, _length("lateness", lateness), None, ties, name)
    check(Plan(node, ()))
    _check_types(node)
    ahead = (None if _is_measure(node) else A_YEAR) if max_ahead == _UNSET else max_ahead
    node = replace(node, max_ahead=None if ahead is None else _length("max_ahead", ahead))
    return StreamBuilder(node, Source(batches, None if foreign is None else source))


def _chained(
    upstream: Query, time: str, keys: str | Iterable[str], ties: str | None, name: str
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
    node = Stream(tuple((f.name, f.type) for f in schema), time, _names(keys), manual(), 0, None, ties, name)
    check(Plan(node, ()))
    _check_types(node)
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


def _check_names(columns: list[str]) -> None:
    for column in columns:
        if columns.count(column) > 1:
            raise BadQuery(f"the rows have two columns {column!r}. Rename one of them first.")


def _names(keys: str | Iterable[str]) -> tuple[str, ...]:
    if not isinstance(keys, Iterable):
        raise BadQuery(f"keys is {keys!r}. Give the name of a column or a list of names; none: keys=().")
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    for name in names:
        if names.count(name) > 1:
            raise BadQuery(f"keys names {name!r} twice. Name each key column once.")
    return names


def _length(name: str, duration: Duration) -> int:
    length = microseconds(duration)
    if not 0 <= length <= LONGEST:
        raise BadQuery(f"{name} is {length}. Give 0 to {LONGEST} microseconds.")
    return length


def _is_measure(node: Stream) -> bool:
    return bool(pa.types.is_integer(node.type(node.time)))


def _check_types(node: Stream) -> None:
    """The time must be a time, ties integers, punctuation markers booleans, keys plain values."""
    _check_time(node)
    marker = marker_of(node.policy)
    if marker is not None and not pa.types.is_boolean(node.type(marker)):
        remedy = "Compare it first, for example with pyarrow.compute.equal."
        raise wrong_type(marker, node.type(marker), "a boolean for external()", remedy)
    _check_keys(node, node.keys)
    if node.ties is not None and not pa.types.is_integer(node.type(node.ties)):
        remedy = "Cast the column, or leave `ties` out: then the content of tuples orders equal times."
        raise wrong_type(node.ties, node.type(node.ties), "an integer for ties", remedy)


def _check_keys(node: Stream, keys: tuple[str, ...]) -> None:
    for key in keys:
        if not hashable(node.type(key)):
            remedy = "Use one field of it as the key, or turn it into text first."
            raise wrong_type(key, node.type(key), "a key of plain values", remedy)


def _check_time(node: Stream) -> None:
    kind = node.type(node.time)
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind)):
        raise wrong_type(
            node.time,
            kind,
            "a time (timestamp, date or integer)",
            "Parse it first, for example with pyarrow.compute.strptime, or name another column.",
        )


@dataclass
class Source:
    """Where rows come from: batches, which can be read once, another runtime's frame, or a query."""

    batches: Iterator[pa.RecordBatch] | None
    foreign: Any = None
    upstream: Query | None = None
    read: bool = field(default=False)

    @property
    def on_spark(self) -> bool:
        """Whether Spark runs it."""
        return self.foreign is not None if self.upstream is None else self.upstream.source.on_spark

    def take(self) -> Iterator[pa.RecordBatch]:
        """The batches, to run over in this process."""
        if self.on_spark:
            raise BadQuery("this stream is a Spark DataFrame, so Spark runs it. Use .to_spark().")
        if self.upstream is not None:
            return iter(flattened(self.upstream.run().table).to_batches())
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
    source: Source

    def where(self, condition: Any) -> StreamBuilder:
        """Only the rows that fulfil a condition; they are dropped before anything looks at them.

        On Spark a SQL text or a Column, which Catalyst runs; in this process a `pyarrow.compute` expression.
        """
        if self.source.foreign is not None:
            return replace(self, source=Source(None, self.source.foreign.where(condition)))
        if not isinstance(condition, pc.Expression):
            raise BadQuery(
                f"where({condition!r}): in this process give an expression: pyarrow.compute.field('x') > 0."
            )
        source = self._plain_source()
        return replace(self, source=Source(batch.filter(condition) for batch in source))

    def select(self, *columns: str, **computed: Any) -> StreamBuilder:
        """These columns, and computed ones by name; the time, keys and ties must be among them.

        On Spark a computed column is a SQL text or a Column, which Catalyst runs; in this process it is a
        `pyarrow.compute` expression.
        """
        if self.source.foreign is not None:
            frame, schema = FOREIGN["pyspark"]().selected(self.source.foreign, columns, computed)
            source = Source(None, frame)
        else:
            for name, expression in computed.items():
                if not isinstance(expression, pc.Expression):
                    raise BadQuery(
                        f"select({name}={expression!r}): in this process give an expression: "
                        "pyarrow.compute.field('x') * 2."
                    )
            self.node.require(*columns)
            wanted = {**{name: pc.field(name) for name in columns}, **computed}
            none = pa.schema(list(self.node.types)).empty_table()
            schema = _projected(none, wanted).schema
            batches = self._plain_source()
            source = Source(b for batch in batches for b in _projected(batch, wanted).to_batches())
        node = replace(self.node, types=tuple((f.name, f.type) for f in without_views(schema)))
        check(Plan(node, ()))
        _check_types(node)
        return StreamBuilder(node, source)

    def _plain_source(self) -> Iterator[pa.RecordBatch]:
        """The batches, read when the run reads them."""

        def lazily() -> Iterator[pa.RecordBatch]:
            yield from self.source.take()

        return lazily()

    def latest(
        self, key: str | Iterable[str] | None = None, *, policy: str = "freshest", budget: Duration = "1 s"
    ) -> Latest:
        """Only the newest row of each key, for a function that cannot keep up: an update queue.

        Args:
            key: what a row updates (default: the stream's keys).
            policy: which key is served next: `freshest`, `in_place`, `linecutting` or `fifo`; `append` and
                `shed` keep every row; `switch` keeps every row until the function falls behind.
            budget: the time that the function may take in each bucket and micro-batch.
        """
        keys = self.node.keys if key is None else _names(key)
        if not keys:
            raise BadQuery("latest() needs a key: the columns that say what a row updates.")
        self.node.require(*keys)
        _check_keys(self.node, keys)
        length = _length("budget", budget)
        if length == 0:
            raise BadQuery("latest(): the budget is 0, so nothing would ever be served. Give '800 ms', say.")
        if policy != "switch":
            policy_of(policy)
        return Latest(self, keys, policy, length)

    def window(self, *windows: Window, keys: str | Iterable[str] | None = None) -> Windowed:
        """Put one or several windows on the stream; `keys` replaces the stream's own grouping."""
        for window in windows:
            if not isinstance(window, Window):
                raise BadQuery(f"{_shown(window)} is no window. Give one such as tumbling('1 min').")
        chosen = self.node.keys if keys is None else _names(keys)
        _check_keys(self.node, chosen)
        return Windowed(self, tuple(windows), chosen)


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
        """What the function returned, or the `staleness` of the keys that were served, as a DataFrame.

        The options `buckets` and `control` are those of `Query.to_spark`; `windowpane.spark.finish` has
        everything served that still waits.
        """
        if self.stream.source.foreign is None:
            raise BadQuery("this stream is no Spark DataFrame. In one process use wp.UpdateQueue.")
        if what not in ("answers", "staleness"):
            raise BadQuery(f"to_spark({what!r}): there is no such output. Use 'answers' or 'staleness'.")
        return RUNTIMES["latest_to_spark"](self, what, **options)


def _projected(rows: pa.RecordBatch | pa.Table, wanted: dict[str, pc.Expression]) -> pa.Table:
    """Columns computed from a batch."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    # loads pandas, which takes a second and 46 MB: only where it is used
    from pyarrow.dataset import dataset  # noqa: PLC0415

    return dataset(table).to_table(columns=wanted)


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

    def resume(self, snapshot: Any) -> Any:
        """Go on with a run of this query where its snapshot (or the bytes of one) was taken.

        For a run within `memory`: give the `spill_dir` in which it wrote its checkpoint.
        """
        return RUNTIMES["resume"](snapshot, self)


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
    names = [queue.name for queue in queues]
    if len(queues) < given or any(queue.stream != queues[0].stream for queue in queues) or strays:
        raise BadQuery(
            "update queues run together only with queues over the same stream; run the others apart."
        )
    if len(set(names)) < len(names):
        raise BadQuery("two queues have one name. Give each its own: .apply(..., name='...').")
    return RUNTIMES["all_latest_to_spark"](queues, **options)


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
