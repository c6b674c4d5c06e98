"""The nodes of a plan: a stream, and the windowed queries that read it in one pass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import pyarrow as pa

from windowpane.core.derivation import Derivation, Step
from windowpane.values.aggregates import Aggregate
from windowpane.values.errors import BadAggregate, BadQuery, unknown_column, wrong_type
from windowpane.values.punctuation import Delay, External, Heartbeat, Melded, Policy
from windowpane.values.user_aggregates import UserAggregate
from windowpane.values.windows import OWN_KEYS, ContextAwareWindow, Delimited, LastRows, PerRow, Rows, Window

Emit = Literal["final", "update"]
AnyAggregate = Aggregate | UserAggregate


@dataclass(frozen=True)
class Stream:
    """A progressing stream: its columns, the measure it progresses on, and its punctuation.

    `derived` says how rows and columns come from the source: texts of computed columns by their name, and of
    conditions with no name. They run before anything here does, but state depends on them. In this process
    `derivation` runs them; where there is none, Spark does. Rows with a null in a `required` column are
    rejected; of rows that are equal in the columns `ids` one is taken in.
    """

    types: tuple[tuple[str, pa.DataType], ...]
    time: str
    keys: tuple[str, ...]
    policy: Policy
    lateness: int
    max_ahead: int | None
    ties: str | None
    name: str = "stream"
    derived: tuple[tuple[str, str], ...] = ()
    required: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    derivation: Derivation | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _ in self.types)

    def type(self, column: str) -> pa.DataType:
        """The type of a column, or an error that names the nearest one."""
        self.require(column)
        return dict(self.types)[column]

    def require(self, *columns: str) -> None:
        """Fail if a column is missing."""
        for column in columns:
            if column not in self.columns:
                raise unknown_column(column, self.name, self.columns)

    def where(self, condition: str) -> Stream:
        """The stream of the rows that fulfil a condition, by its text."""
        return replace(self, derived=(*self.derived, ("", self._whole(condition))))

    def computing(self, columns: Mapping[str, str]) -> Stream:
        """The stream with columns that are computed, by these texts."""
        whole = [(name, self._whole(text)) for name, text in columns.items()]
        return replace(self, derived=(*(pair for pair in self.derived if pair[0] not in columns), *whole))

    def through(self, step: Step) -> Stream:
        """The stream whose rows go through one more step in this process."""
        derivation, types = (self.derivation or Derivation(self.types)).then(step)
        return replace(self, types=types, derivation=derivation)

    def _whole(self, text: str) -> str:
        """A text with those of the computed columns that it names."""
        used = [(c, t) for c, t in self.derived if c and re.search(rf"(?<!\w){re.escape(c)}(?!\w)", text)]
        return f"{text} with {', '.join(f'{c} = {t}' for c, t in used)}" if used else text

    @property
    def in_order(self) -> bool:
        """Whether the punctuation promises that times never fall."""
        return isinstance(self.policy, Delay) and self.policy.delay == 0 and self.lateness == 0

    def policy_columns(self) -> tuple[str, ...]:
        """The columns that the punctuation reads."""
        policy = self.policy.policy if isinstance(self.policy, Heartbeat) else self.policy
        found: tuple[str, ...] = ()
        if isinstance(policy, Melded):
            found, policy = (policy.source,), policy.policy
        return (*found, policy.column) if isinstance(policy, External) else found


@dataclass(frozen=True)
class WindowQuery:
    """Aggregates over windows, for each key: one result table."""

    name: str
    windows: tuple[Window, ...]
    aggregates: tuple[AnyAggregate, ...]
    keys: tuple[str, ...]
    emit: Emit = "final"

    def partition(self, window: Window) -> tuple[str, ...]:
        """The columns within which a window counts positions; none: the whole stream."""
        if not isinstance(window, Rows | PerRow | LastRows):
            return ()
        return self.keys if window.partition == OWN_KEYS else window.partition

    @cached_property
    def grouping(self) -> tuple[str, ...]:
        """The result's key columns: the keys, then partition columns that are not among them."""
        extra = [c for window in self.windows for c in self.partition(window) if c not in self.keys]
        return (*self.keys, *dict.fromkeys(extra))


@dataclass(frozen=True)
class Plan:
    """All queries that read one stream."""

    stream: Stream
    queries: tuple[WindowQuery, ...]

    def with_query(self, query: WindowQuery) -> Plan:
        """The plan with one more query."""
        return check(replace(self, queries=(*self.queries, query)))

    def without_query(self, name: str) -> Plan:
        """The plan without a query."""
        if name not in [query.name for query in self.queries]:
            raise BadQuery(
                f"there is no query {name!r}; there are {', '.join(q.name for q in self.queries)}."
            )
        return replace(self, queries=tuple(q for q in self.queries if q.name != name))


def check(plan: Plan) -> Plan:
    """Fail with a clear error if the parts do not fit; gives the plan back."""
    stream = plan.stream
    stream.require(
        stream.time,
        *stream.keys,
        *stream.policy_columns(),
        *([stream.ties] if stream.ties else []),
        *stream.required,
        *stream.ids,
    )
    names = [query.name for query in plan.queries]
    for name in names:
        if names.count(name) > 1:
            raise BadQuery(f"two queries are named {name!r}. Give each its own name: .agg(..., name='...').")
    for query in plan.queries:
        _check_query(stream, query)
    return plan


def _check_query(stream: Stream, query: WindowQuery) -> None:
    if not query.windows:
        raise BadQuery(f"query {query.name!r} has no window. Give at least one: .window(tumbling('1 min')).")
    if not query.aggregates:
        raise BadQuery(f"query {query.name!r} has no aggregate. Give at least one: .agg(count()).")
    if query.emit not in ("final", "update"):
        raise BadQuery(f"emit is {query.emit!r}. Use 'final' or 'update'.")
    stream.require(*query.grouping)
    for window in query.windows:
        _check_window(stream, window)
    if len({isinstance(window, Rows) for window in query.windows}) > 1:
        raise BadQuery(
            f"query {query.name!r} mixes windows measured in rows with windows measured in {stream.time!r}, "
            "so its window column would have two types. Make two queries; they still share one pass."
        )
    taken = {*query.grouping, "window", "revision", "definition", "final"}
    for aggregate in query.aggregates:
        stream.require(*aggregate.columns)
        if not aggregate.algebra.associative:
            raise BadAggregate(
                f"{aggregate.name!r} is declared non-associative, but windowpane shares partials between "
                "windows, which needs (x + y) + z = x + (y + z). Carry more in the partial (a mean carries "
                "sum and count), or use collect() and compute from the list."
            )
        if aggregate.name in taken:
            raise BadQuery(
                f"the result would have two columns {aggregate.name!r}. "
                f"Name one of them anew: .agg(other={_call(aggregate)})."
            )
        taken.add(aggregate.name)


def _call(aggregate: AnyAggregate) -> str:
    """A call that makes the aggregate, as a user would write it."""
    if isinstance(aggregate, UserAggregate):
        return f"{type(aggregate).__name__}(...)"
    parts = [repr(column) for column in aggregate.columns]
    shown = () if aggregate.function == "median" else aggregate.parameters
    return f"wp.{aggregate.function}({', '.join([*parts, *(f'{name}={value!r}' for name, value in shown)])})"


def _check_window(stream: Stream, window: Window) -> None:
    on = getattr(window, "on", None)
    if on is not None and on != stream.time:
        stream.require(on)
        raise BadQuery(
            f"a window is on {on!r}, but the stream progresses on {stream.time!r}. "
            f"Read the data as a stream of its own: stream(..., time={on!r})."
        )
    if isinstance(window, Delimited):
        for column in (window.start, window.end):
            if column is not None and not pa.types.is_boolean(stream.type(column)):
                remedy = "Compare it first, for example with pyarrow.compute.equal."
                raise wrong_type(column, stream.type(column), "a boolean for delimited()", remedy)
    if isinstance(window, ContextAwareWindow):
        stream.require(*window.columns)
