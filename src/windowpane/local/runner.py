"""The runner: push batches and punctuation by hand, get the answers that they close."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import NEVER
from windowpane.core.blocks import FORMAT
from windowpane.core.clock import Clock
from windowpane.core.columns import to_batches
from windowpane.core.emission import Moment
from windowpane.core.measure import as_measure, whole
from windowpane.core.results import Lowering
from windowpane.explain import explain_plan
from windowpane.local.admission import Admitted, Gate
from windowpane.local.results import Counts, Step
from windowpane.local.snapshot import Snapshot, check_format
from windowpane.plan.fingerprint import fingerprint, need_same
from windowpane.plan.nodes import Plan
from windowpane.planner.change import change
from windowpane.planner.compile import assemble, compile_plan, place
from windowpane.query import Query, need_query
from windowpane.values.errors import BadQuery, BadState

if TYPE_CHECKING:
    from windowpane.core.operator import QueryEntry

_MOST_ROWS = 1 << 20
"""Rows taken in at once: larger batches only use more memory."""


class Runner:
    """A run of one or more queries over one stream.

    `push` returns the answers of that push; nothing is kept but the state that open windows need.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.operator, self._placed = compile_plan(plan)
        self.gate = Gate(plan.stream)
        self.counts = Counts()
        self.closed = False
        self._empty: dict[str, pa.Table] = {}
        self._held: list[Step] = []

    def push(self, data: object, *, now: int | None = None) -> Step:
        """Take rows in, in the order given; `now` is the caller's clock in microseconds, for heartbeats.

        Rows that fail leave the run as it was, so that they can be pushed again once they are mended. Where
        several tables or batches are given, in a list or by a reader, those before the one that fails are
        taken in: the error has a note of how many rows these are, and their answers come with the next step.
        """
        self._check_open()
        if now is not None:
            now = _clock(now)
        steps: list[tuple[int, Step]] = []
        try:
            for whole in _wholes(data):
                self._take(whole, now, steps)
        except BaseException as error:
            taken = sum(given for given, _ in steps)
            if taken:
                error.add_note(
                    f"{taken:,} rows of this push were taken in before it failed: push those after them. "
                    "Their answers come with the next step."
                )
            self._held += [step for _, step in steps]
            raise
        return self._delivered(self._joined([step for _, step in steps]))

    def _take(self, whole: object, now: int | None, steps: list[tuple[int, Step]]) -> None:
        """Take a table or batch in, piece by piece: all of it, or nothing and an error."""
        with self._or_nothing():
            taken = []
            for given, piece in self._pieces(whole):
                taken += self._waited(piece)
                taken.append((given, self._push(piece, now)))
            steps += taken

    def _pieces(self, whole: object) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The stream's rows, and how many were given for them: a condition may have dropped some."""
        for batch in to_batches(whole):
            fitting = self.gate.fit(batch)
            for low in range(0, max(fitting.num_rows, 1), _MOST_ROWS):
                given = fitting.slice(low, _MOST_ROWS)
                yield given.num_rows, self.gate.derived(given)

    def punctuate(self, bound: int | datetime | date) -> Step:
        """Promise that no later row is below `bound`."""
        self._check_open()
        measure = as_measure(bound, repr(self.plan.stream.time))
        with self._or_nothing():
            return self._delivered(self._moved(lambda clock: clock.punctuate(measure)))

    def tick(self, now: int) -> Step:
        """Tell the caller's clock, in microseconds, so that heartbeats can move the punctuation."""
        self._check_open()
        now = _clock(now)
        with self._or_nothing():
            return self._delivered(self._moved(lambda clock: clock.tick(now), now))

    def close(self) -> Step:
        """End the stream: every window that holds a row comes out."""
        self._check_open()
        with self._or_nothing():
            step = self._delivered(self._moved(lambda clock: clock.end()))
        self.closed = True
        return step

    def discard(self) -> None:
        """Let go of what the run holds without ending the stream; `with` does so at its end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def explain(self) -> str:
        """What is done, and why."""
        return explain_plan(self.plan)

    def snapshot(self) -> Snapshot:
        """The state as it is now; a run that goes on from it gives the same answers as this one will."""
        if self._held:
            raise BadQuery("answers of a push that failed have not been taken yet. Push or punctuate first.")
        blocks = self.operator.blocks()
        first: dict[str, list[int]] = {}
        for placed in self._placed:
            first.setdefault(placed.query.name, [placed.number, int(placed.since)])
        header = {
            "format": FORMAT,
            "plan": fingerprint(self.plan),
            "windows": first,
            "gate": self.gate.snapshot(blocks),
            "counts": asdict(self.counts),
            "closed": self.closed,
        }
        return Snapshot(header, blocks)

    @classmethod
    def restore(cls, plan: Plan, snapshot: Snapshot | bytes) -> Self:
        """A run that goes on where the snapshot was taken; the plan must be the one that was running."""
        if isinstance(snapshot, bytes):
            snapshot = Snapshot.from_bytes(snapshot)
        if not isinstance(snapshot, Snapshot):
            found = type(snapshot).__name__
            raise BadState(f"{found} is no snapshot. Give what runner.snapshot() returned, or its bytes.")
        header = snapshot.header
        check_format(header)
        need_same(header["plan"], plan)
        runner = cls(plan)
        runner._placed = [
            p for query in plan.queries for p in place(plan, query, *header["windows"][query.name])
        ]
        runner.operator = assemble(plan, runner._placed)
        runner.operator.restore(snapshot.blocks)
        runner.gate.restore(header["gate"], snapshot.blocks)
        runner.counts, runner.closed = Counts(**header["counts"]), header["closed"]
        return runner

    def add(self, query: Query) -> None:
        """Add a query; it answers for the rows above the largest time seen so far, as if started on them."""
        self._check_open()
        need_query(query)
        if query.plan.stream != self.plan.stream:
            raise BadQuery(
                f"query {query.node.name!r} reads another stream than this run. "
                "Build it from the stream that the run was started on, or start a run of its own."
            )
        high = self.gate.clock.high
        self._change(self.plan.with_query(query.node), high if high == NEVER else high + 1)

    def remove(self, name: str) -> None:
        """Remove a query; what only it needed is forgotten."""
        self._check_open()
        self._change(self.plan.without_query(name), NEVER)

    def _change(self, plan: Plan, since: int) -> None:
        self.operator, self._placed = change(plan, (self.operator, self._placed), since)
        self.plan, self._empty = plan, {}

    @property
    def bound(self) -> int:
        """The punctuation: no row is expected below this."""
        return self.gate.clock.bound

    @property
    def state_bytes(self) -> int:
        """Memory that the state of open windows takes, and the ids that are remembered."""
        return self.operator.nbytes + self.gate.nbytes

    def _push(self, batch: pa.RecordBatch, now: int | None) -> Step:
        before = self.gate.clock.bound
        return self._taken(self.gate.admit(batch, now), before)

    def _waited(self, batch: pa.RecordBatch) -> list[tuple[int, Step]]:
        """The step of the first row, which was given before, if it waited and a batch tells what it is."""
        before = self.gate.clock.bound
        admitted = self.gate.waited(batch)
        return [] if admitted is None else [(0, self._taken(admitted, before))]

    def _moved(self, move: Callable[[Clock], int], now: int | None = None) -> Step:
        """Move the bound; the first row, which may have waited, can have its place by that."""
        before = self.gate.clock.bound
        admitted = self.gate.moved(move, now)
        return self._advance(before) if admitted is None else self._taken(admitted, before)

    def _taken(self, admitted: Admitted, before: int) -> Step:
        tables = self.operator.step(
            admitted.kept, admitted.time, self._moment(before), rising=admitted.rising
        )
        self.counts += admitted.counts
        return Step(self._tables(tables), admitted.late, admitted.rejects, admitted.counts)

    @contextmanager
    def _or_nothing(self) -> Iterator[None]:
        """Undo a step that fails, such as by an overflow: its rows and the windows it closed are not lost.

        Lanes are values. Keys and texts that the step brought stay known, until they are forgotten as others.
        """
        mark, lanes, counts = self.gate.mark(), list(self.operator.lanes), self.counts
        try:
            yield
        except BaseException:
            self.gate.rewind(mark)
            self.operator.lanes, self.counts = lanes, counts
            raise

    def _delivered(self, step: Step) -> Step:
        """The step, with answers that a failed push could not give."""
        if not self._held:
            return step
        held, self._held = self._held, []
        known = [
            replace(h, tables={n: h.tables.get(n, t.slice(0, 0)) for n, t in step.tables.items()})
            for h in held
        ]
        return joined([*known, step])

    def _advance(self, before: int) -> Step:
        empty = self._schema.empty_table().to_batches() or [_empty(self._schema)]
        tables = self.operator.step(empty[0], np.empty(0, np.int64), self._moment(before))
        return Step(self._tables(tables), self.gate.no_late, self.gate.no_rejects, Counts())

    def _moment(self, before: int) -> Moment:
        early = any(query.emit == "update" for query in self.plan.queries)
        clock = self.gate.clock
        return Moment(before, clock.bound, self.plan.stream.lateness, early, clock.high)

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema(list(self.plan.stream.types))

    def _tables(self, tables: dict[str, list[pa.Table]]) -> dict[str, pa.Table]:
        return {q.name: self._table(q, tables.get(q.name, [])) for q in self.operator.queries}

    def _table(self, query: QueryEntry, tables: list[pa.Table]) -> pa.Table:
        if tables:
            return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        if query.name not in self._empty:
            lowering = Lowering((), query.aggregates, query.point, many=query.many, early=query.early)
            self._empty[query.name] = lowering.schema(self.operator.key_types(query.grouping)).empty_table()
        return self._empty[query.name]

    def _joined(self, steps: list[Step]) -> Step:
        if len(steps) == 1:
            return steps[0]
        if not steps:
            return self._advance(self.gate.clock.bound)
        return joined(steps)

    def _check_open(self) -> None:
        if self.closed:
            raise BadQuery("this run is closed: its stream has ended. Start a new one with .start().")


class QueryRunner(Runner):
    """A run of a single query, whose answers come as one table."""

    def answers(self, step: Step) -> pa.Table:
        """The answers of a step."""
        if not step.tables:
            raise BadQuery("there are no answers: the query was removed from this run.")
        return next(iter(step.tables.values()))


def joined(steps: list[Step]) -> Step:
    """Several steps as one."""
    names = steps[0].tables
    total = Counts()
    for step in steps:
        total += step.counts
    return Step(
        {name: pa.concat_tables([step.tables[name] for step in steps]) for name in names},
        pa.concat_tables([step.late for step in steps]),
        pa.concat_tables([step.rejects for step in steps]),
        total,
    )


def _wholes(data: object) -> Iterator[object]:
    """What is taken in or refused as one: the elements of a list or reader, or else all that is given."""
    if isinstance(data, list | tuple | Iterator | pa.RecordBatchReader):
        for part in data:
            yield from _wholes(part)
    else:
        yield data


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _clock(now: object) -> int:
    found = whole(now)
    if found is None:
        raise BadQuery(f"now is {now!r}. Give the clock in whole microseconds: time.time_ns() // 1000.")
    return found
