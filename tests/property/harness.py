"""Runs rows through the in-process runtime and compares every answer with the oracle.

The oracle sees what the runtime kept. Where no `ties` column is named, it gets the content hash that the
runtime orders equal times by; strings in picks are ordered by their hash, as documented.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa

import windowpane as wp
from tests.oracle import OracleQuery, answer
from tests.oracle.aggregates import natural
from windowpane.core.arrays import NEVER
from windowpane.core.hashing import hash_columns
from windowpane.core.interner import Interner
from windowpane.values.windows import Landmark, LastRows, Rows, Window

Row = dict[str, Any]
Where = tuple[int, tuple[Any, ...], int | None, int]
"""Definition, key, start, end."""
SCHEMA = pa.schema(
    {
        "ts": pa.int64(),
        "k": pa.string(),
        "g": pa.int64(),
        "p": pa.int64(),
        "i": pa.int64(),
        "j": pa.int64(),
        "f": pa.float64(),
        "w": pa.float64(),
        "s": pa.string(),
        "up": pa.bool_(),
        "down": pa.bool_(),
        "seq": pa.int64(),
    }
)
PICKS = ("first", "last", "arg_min", "arg_max")


@dataclass(frozen=True, repr=False)
class Wanted:
    """An aggregate, the same for the oracle, and what to make of the oracle's value."""

    aggregate: Any
    spec: tuple[Any, ...]
    made: Callable[[Any], Any] = lambda value: value

    def __repr__(self) -> str:
        return f"Wanted({self.aggregate.name})"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(frozen=True, repr=False)
class Case:
    """One query over rows in order of arrival, cut into batches that end before the rows `cuts`."""

    windows: tuple[Window, ...]
    wanted: Mapping[str, Wanted]
    rows: Sequence[Row]
    keys: tuple[str, ...] = ("k",)
    delay: int = 0
    lateness: int = 0
    cuts: Sequence[int] = ()
    ties: str | None = "seq"
    emit: str = "final"
    policy: Any = None

    def __repr__(self) -> str:
        how = f"delay={self.delay} lateness={self.lateness} cuts={self.cuts} ties={self.ties}"
        head = f"{self.windows} keys={self.keys} {how}"
        return "\n".join([head, *(repr(list(row.values())) for row in self.rows)])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))

    @property
    def batches(self) -> list[Sequence[Row]]:
        """The rows of each push; some may be empty."""
        marks = [0, *sorted(self.cuts), len(self.rows)]
        return [self.rows[a:b] for a, b in pairwise(marks)]

    def query(self, stream: Any = None, **options: Any) -> Any:
        """The query, on its own stream or on a given one."""
        stream = self.stream() if stream is None else stream
        named = {name: wanted.aggregate for name, wanted in self.wanted.items()}
        return stream.window(*self.windows, keys=self.keys).agg(emit=self.emit, **options, **named)

    def stream(self) -> Any:
        """The stream without a source."""
        how = {"delay": self.delay} if self.policy is None else {"punctuation": self.policy}
        return wp.stream(
            time="ts", keys=self.keys, lateness=self.lateness, ties=self.ties, schema=SCHEMA, **how
        )


@dataclass
class Seen:
    """What came out up to now: the latest answer and the number of answers of each window."""

    latest: dict[Where, Row | None] = field(default_factory=dict)
    revisions: dict[Where, int] = field(default_factory=dict)

    def take(self, found: list[tuple[Where, Row]]) -> None:
        """Note final rows; revisions count from 0 and rise by one, negative where withdrawn."""
        for where, row in found:
            expected = self.revisions.get(where, -1) + 1
            assert abs(row["revision"]) == expected, f"{where}: revision {row['revision']}, not {expected}"
            self.revisions[where] = expected
            withdrawn = row["revision"] < 0
            assert not withdrawn or self.latest[where] is not None, f"{where} was withdrawn twice"
            self.latest[where] = None if withdrawn else row

    @property
    def view(self) -> dict[Where, Row]:
        """The answers that stand."""
        return {where: row for where, row in self.latest.items() if row is not None}


def batch_of(rows: Sequence[Row], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    """Rows as Arrow, with the schema's columns only."""
    return pa.RecordBatch.from_pylist([{n: row[n] for n in schema.names} for row in rows], schema=schema)


def rows_of(case: Case, table: pa.Table) -> list[tuple[Where, Row]]:
    """The rows of a result, each with where it belongs."""
    names = [
        n for n in table.schema.names if n not in {"window", "definition", "revision", "final", *case.wanted}
    ]
    return [
        (
            (
                row.get("definition", 0),
                tuple(row[n] for n in names),
                row["window"]["start"],
                row["window"]["end"],
            ),
            {n: row[n] for n in (*case.wanted, "revision")},
        )
        for row in table.to_pylist()
    ]


def split_final(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Final and provisional rows."""
    if "final" not in table.schema.names:
        return table, table.slice(0, 0)
    final = table.column("final").to_pylist()
    at = [i for i, each in enumerate(final) if each]
    rest = [i for i, each in enumerate(final) if not each]
    return table.take(pa.array(at, pa.int64())), table.take(pa.array(rest, pa.int64()))


def check(case: Case, *, steps: bool = False) -> None:
    """Run a case to its end and compare; with `steps`, compare after every push too."""
    runner = case.query().start()
    tie = None if case.ties else runner.operator.tie
    seen, kept = Seen(), []
    for batch in case.batches:
        step = runner.push(batch_of(batch))
        fresh = kept_of(batch, step)
        kept += fresh
        table = runner.answers(step)
        table.validate(full=True)
        final, early = split_final(table)
        seen.take(rows_of(case, final))
        if steps:
            same(seen.view, closed_answers(case, kept, runner.bound, tie))
        if case.emit == "update":
            provisional(case, kept, fresh, runner.bound, rows_of(case, early), tie)
    counted = runner.counts
    assert counted.kept == len(kept)
    assert counted.kept + counted.late + counted.rejected + counted.markers == counted.input == len(case.rows)
    upto = runner.bound
    last = runner.close()
    final, early = split_final(runner.answers(last))
    assert early.num_rows == 0
    seen.take(rows_of(case, final))
    if case.lateness == 0:
        assert set(seen.revisions.values()) <= {0}
    same(seen.view, drained_answers(case, kept, upto, tie))


def kept_of(batch: Sequence[Row], step: Any) -> list[Row]:
    """The rows of a push that were neither late nor rejected."""
    out = {*step.late.column("seq").to_pylist(), *step.rejects.column("seq").to_pylist()}
    return [row for row in batch if row["seq"] not in out and not row.get("marker")]


def closed_answers(case: Case, kept: Sequence[Row], bound: int, tie: Any) -> dict[Where, Row]:
    """What the oracle says once the punctuation is at `bound`."""
    return oracle(case, kept, tie, closed_by=-(2**60) if bound == NEVER else bound)


def drained_answers(case: Case, kept: Sequence[Row], upto: int, tie: Any) -> dict[Where, Row]:
    """What the oracle says at the end of the stream, the last punctuation before it being `upto`."""
    return oracle(case, kept, tie, upto=None if upto == NEVER else upto)


def oracle(case: Case, kept: Sequence[Row], tie: Any, **when: int | None) -> dict[Where, Row]:
    """The answers of all windows of a case."""
    if not kept:
        return {}
    found: dict[Where, Row] = {}
    rows = [{**row, "$at": at} for at, row in enumerate(with_ties(case, kept, tie))]
    for number, window in enumerate(case.windows):
        for where, row in _one(case, window, rows, when).items():
            key, start, end = where
            found[number, key, start, end] = {n: w.made(row[n]) for n, w in case.wanted.items()}
    return found


def _one(case: Case, window: Window, rows: Sequence[Row], when: Mapping[str, Any]) -> dict[Any, Row]:
    # Picks of text go by its hash, all other ties by the value itself.
    picks = {n: w.spec for n, w in case.wanted.items() if w.spec[0] in PICKS}
    others = {n: w.spec for n, w in case.wanted.items() if n not in picks}
    found: dict[Any, Row] = {}
    for specs, order in ((picks, by_hash), (others, natural)):
        if specs:
            query = OracleQuery(
                window, {**specs, "$at": ("collect", "$at")}, case.keys, ties="tie", order=order
            )
            for where, row in answer(query, rows, **when).items():
                found.setdefault(where, {}).update(row)
    if isinstance(window, Rows) and window.order == "arrival":
        _by_arrival(others, rows, found)
    # every query of a run has the same key columns, whatever the window at hand adds
    return {(_widened(case, window, key), start, end): row for (key, start, end), row in found.items()}


def _by_arrival(specs: Mapping[str, tuple[Any, ...]], rows: Sequence[Row], found: dict[Any, Row]) -> None:
    """Windows that count arrivals, outside the law by name, also combine in order of arrival."""
    columns = {name: spec[1] for name, spec in specs.items() if spec[0] == "collect"}
    for row in found.values():
        held = [rows[at] for at in sorted(row["$at"])]
        for name, column in columns.items():
            row[name] = [each[column] for each in held if each[column] is not None]


def _widened(case: Case, window: Window, key: tuple[Any, ...]) -> tuple[Any, ...]:
    assert len(case.windows) == 1 or len(key) == len(case.keys), f"{window} adds keys of its own"
    return key


def with_ties(case: Case, rows: Sequence[Row], tie: Any) -> list[Row]:
    """The rows with the number that orders equal times."""
    if case.ties is not None:
        return [{**row, "tie": row[case.ties]} for row in rows]
    if not tie:
        return [{**row, "tie": 0} for row in rows]
    batch = batch_of(rows)
    hashes = hash_columns([batch.column(name) for name in tie])[0].view("int64").tolist()
    return [{**row, "tie": h} for row, h in zip(rows, hashes, strict=True)]


@cache
def _hash_of(text: str) -> int:
    return int(Interner(pa.string()).encode(pa.array([text]))[1][0])


def by_hash(value: Any) -> Any:
    """The order that picks use: the content hash of text, else the value."""
    return (1, _hash_of(value)) if isinstance(value, str) else natural(value)


def provisional(
    case: Case,
    kept: Sequence[Row],
    fresh: Sequence[Row],
    bound: int,
    found: list[tuple[Where, Row]],
    tie: Any,
) -> None:
    """Early rows are right, and no open window that this push reached is missing."""
    wheres = [where for where, _ in found]
    assert len(set(wheres)) == len(wheres), "an open window came twice in one step"
    closed = closed_answers(case, kept, bound, tie)
    drained = {w: row for w, row in drained_answers(case, kept, bound, tie).items() if w not in closed}
    early = dict(found)
    strange = set(early) - set(drained)
    assert not strange, f"{strange} are not open"
    same(early, {w: drained[w] for w in early})
    ids = {row["seq"] for row in fresh}
    holds = Case(**{**vars(case), "wanted": {"ids": Wanted(None, ("collect", "seq"))}})
    reached = {
        w
        for w, row in drained_answers(holds, kept, bound, tie).items()
        if w in drained and ids & set(row["ids"])
    }
    missing = {w for w in reached - set(early) if not _beyond(case, w, fresh)}
    assert not missing, f"{missing} got a row and did not come"


def _beyond(case: Case, where: Where, fresh: Sequence[Row]) -> bool:
    """Landmark and last-rows windows go on for ever; the first that has seen all that is new is enough."""
    window = case.windows[where[0]]
    every = window.slide if isinstance(window, Landmark) else getattr(window, "every", None)
    if not isinstance(window, Landmark | LastRows):
        return False
    return where[3] - every > max(row["ts"] for row in fresh)


def same(found: Mapping[Where, Row], expected: Mapping[Where, Row]) -> None:
    """Equal answers for equal windows, to rounding."""
    missing, extra = (
        sorted(set(expected) - set(found), key=repr),
        sorted(set(found) - set(expected), key=repr),
    )
    assert not missing, f"missing {missing[:5]}; extra {extra[:5]}"
    assert not extra, f"extra {extra[:5]}"
    for where, row in expected.items():
        for name, value in row.items():
            got = found[where][name]
            assert alike(got, value), f"{where} {name}: got {got!r}, the oracle says {value!r}"


def alike(a: Any, b: Any) -> bool:
    """Equal to rounding; NaN equals NaN."""
    if isinstance(a, float) or isinstance(b, float):
        if a is None or b is None:
            return a is b
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-7)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[n], b[n]) for n in a)
    return bool(a == b)
