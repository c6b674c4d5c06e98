"""The Spark path without Spark: tasks pack or reduce, buckets answer; every split of the work agrees."""

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.harness import build, events, rows
from tests.spark.pump import STRAYS, Pump
from windowpane.spark.bucket import Bucket, Counts, Received, Work
from windowpane.spark.pack import Packer
from windowpane.spark.parts import parts_of
from windowpane.spark.seen import watch_of

SLICED = {
    "sliding": (wp.sliding("10 s", "3 s"), (wp.count(), wp.sum("v"), wp.min("v"), wp.median("x"))),
    "landmark": (wp.landmark("15 s"), (wp.count(), wp.arg_max("v", "x"))),
    "cumulative": (wp.cumulative("5 s", "20 s"), (wp.variance("x"), wp.last("v"))),
}
WHOLE = {
    "texts": (wp.tumbling("10 s"), (wp.first("k"),)),
    "sessions": (wp.session("300 ms"), (wp.count(),)),
    "order": (wp.tumbling("10 s"), (wp.collect("v"),)),
    "positions": (wp.rows(20), (wp.count(),)),
}


def pump(plan, batches, tasks, buckets, strays=()):
    """Micro-batches through tasks and buckets, as Spark would; the tables of each, and the counts."""
    parts = parts_of(plan)
    labels = tuple(range(buckets))
    packer = Packer(parts, labels, watch_of(plan.stream), bool(strays))
    work = Work(plan.stream, parts, parts[0], strays)
    state = {label: Bucket(work) for label in labels}
    seen, total = [], Counts()
    for i, batch in enumerate([*batches, None]):
        shares = [] if batch is None else np.array_split(np.arange(len(batch)), tasks)
        sent = [
            envelope
            for share in shares
            for envelope in packer(batch.slice(int(share[0]), len(share)).to_batches() if len(share) else [])
        ]
        answers = {}
        for label, bucket in state.items():
            received = Received()
            for envelope in sent:
                mine = envelope.filter(pa.array(envelope["bucket"].to_numpy() == label))
                received.add(mine["part"].to_pylist(), mine["payload"].to_pylist())
            tables, counts = bucket.step(received, end=i == len(batches))
            total.add(counts)
            for name, some in tables.items():
                answers.setdefault(name, []).extend(some)
        seen.append({name: rows(pa.concat_tables(some)) if some else [] for name, some in answers.items()})
    return seen, total


def answers(seen, name="query"):
    return [batch.get(name, []) for batch in seen]


def local(plan_of, batches):
    runner = plan_of.start()
    steps = [*(runner.push(batch) for batch in batches), runner.close()]
    return [rows(step.tables["query"]) for step in steps]


@pytest.mark.parametrize("case", [*SLICED, *WHOLE])
def test_slices_are_folded_where_the_answer_allows_it(case):
    window, aggregates = {**SLICED, **WHOLE}[case]
    assert parts_of(build(None, window, aggregates).plan)[0].folded == (case in SLICED)


@pytest.mark.parametrize("case", [*SLICED, *WHOLE])
@pytest.mark.parametrize(("tasks", "buckets"), [(1, 1), (3, 2), (2, 9)])
def test_any_split_into_tasks_and_buckets_has_the_answers_of_the_same_pushes(case, tasks, buckets):
    window, aggregates = {**SLICED, **WHOLE}[case]
    table = events()
    batches = [table.slice(at, 600) for at in range(0, len(table), 600)]
    query = build(None, window, aggregates)
    seen, counts = pump(query.plan, batches, tasks, buckets)
    assert answers(seen) == local(query, batches)
    assert counts.kept == len(table)


@pytest.mark.parametrize("case", ["sliding", "sessions"])
def test_every_row_is_kept_late_or_rejected_with_its_reason(case):
    window, aggregates = {**SLICED, **WHOLE}[case]
    table = events()
    time = table["ts"].cast(pa.int64()).to_numpy().copy()
    time[5] = 4_000_000_000_000_000 * 2
    time[2000] = time[0] - 50_000_000
    mask = np.zeros(len(time), np.bool_)
    mask[[7, 8]] = True
    odd = pa.array(time, pa.int64(), mask=mask).cast(pa.timestamp("us", "UTC"))
    table = table.set_column(0, "ts", odd)
    batches = [table.slice(at, 600) for at in range(0, len(table), 600)]
    plan = build(None, window, aggregates).plan
    seen, counts = pump(plan, batches, 3, 2, strays=("late", "rejects"))
    assert counts == Counts(kept=len(table) - 4, late=1, null_time=2, too_far_ahead=1)
    assert [row for batch in answers(seen, "late") for row in batch] == rows(table.slice(2000, 1))
    rejects = [row for batch in answers(seen, "rejects") for row in batch]
    reasons = table.take([5, 7, 8]).append_column("reason", [["too far ahead", "null time", "null time"]])
    assert sorted(rejects) == rows(reasons)


@pytest.mark.parametrize("fine_first", [True, False])
def test_a_row_that_any_query_leaves_out_is_late_whatever_their_order(fine_first):
    """Slices of 100 still take rows in that sessions, and slices of 10, leave out."""
    table = pa.table({"t": [0, 1, 100, 13, 12, 95, 108, 97], "k": list("aabababb")})
    stream = wp.stream(schema=table.schema, time="t", delay=5)
    queries = [
        stream.window(wp.session(2), keys="k").agg(wp.count(), name="sessions"),
        stream.window(wp.tumbling(10), keys="k").agg(wp.count(), name="tens"),
        stream.window(wp.tumbling(100), keys=()).agg(wp.count(), name="hundreds"),
    ]
    queries = queries if fine_first else queries[::-1]
    for some, late in ((queries, 2), ([q for q in queries if q.node.name != "sessions"], 2)):
        pump = Pump(*some, strays=STRAYS, buckets=3)
        for at, size in ((0, 3), (3, 5)):
            pump.push(table.slice(at, size))
        pump.end()
        assert pump.counts == Counts(kept=len(table) - late, late=late)
        assert sorted(pump.table("late")["t"].to_pylist()) == [12, 13]
        assert sum(pump.table("hundreds")["count"].to_pylist()) == len(table)
        assert sum(pump.table("tens")["count"].to_pylist()) == len(table) - late


@pytest.mark.parametrize("window", [wp.rows(20), wp.per_row("1 s"), wp.last_rows(3, "5 s")], ids=repr)
def test_a_column_that_orders_equal_times_spares_the_others(window):
    """Without it the content of rows orders them, so that all columns are read."""
    table = events().append_column("seq", [np.arange(2400)])
    read = {}
    for ties in ("seq", None):
        stream = wp.stream(schema=table.schema, time="ts", keys="k", delay="2 s", ties=ties)
        query = stream.window(window).agg(wp.count(), wp.last("v"))
        (part,) = parts_of(query.plan)
        read[ties] = set(part.plan.stream.columns)
        batches = [table.slice(at, 600) for at in range(0, 2400, 600)]
        seen, _ = pump(query.plan, batches, 3, 2)
        assert answers(seen) == local(query, batches)
    assert read == {"seq": {"ts", "k", "v", "seq"}, None: set(table.schema.names)}


class Range(wp.UserAggregate):
    """The largest value minus the smallest."""

    columns, algebra, type = ("v",), wp.Algebra("algebraic"), pa.int64()

    def lift(self, v):
        return v, v

    def combine(self, a, b):
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])

    def lower(self, partial):
        return partial[1] - partial[0]

    def identity(self):
        return np.iinfo(np.int64).max, np.iinfo(np.int64).min


@pytest.mark.parametrize(
    "window", [wp.sliding("10 s", "5 s"), wp.session("300 ms")], ids=["slices", "sessions"]
)
@pytest.mark.parametrize("again", [True, False])
def test_revisions_and_a_users_aggregate_are_those_of_the_same_pushes(window, again):
    """Rows up to ten seconds late revise answers that were given with no delay."""
    table = events().sort_by("ts")
    order = np.argsort(np.arange(2400) + np.random.default_rng(1).integers(0, 400, 2400), kind="stable")
    table = table.take(order)
    batches = [table.slice(at, 100).sort_by("ts") for at in range(0, 2400, 100)]
    query = wp.stream(schema=table.schema, time="ts", keys="k", lateness="20 s").window(window)
    query = query.agg(wp.count(), spread=Range())
    pump, runner = Pump(query, restart=again), query.start()
    revised = 0
    for batch in batches:
        expected = runner.push(batch).tables["query"]
        found = pump.push(batch).get("query")
        assert (rows(found) if found is not None else []) == rows(expected)
        revised += sum(revision != 0 for revision in expected["revision"].to_pylist())
    assert rows(pump.end()["query"]) == rows(runner.close().tables["query"])
    assert pump.counts == Counts(kept=2400)
    assert revised > 20


@pytest.mark.parametrize("window", [wp.session(20), wp.per_row(50, every=5).per(), wp.tumbling(50)], ids=str)
def test_what_a_micro_batch_writes_does_not_grow_with_the_answers_that_may_still_be_revised(window):
    """All answers may be, to the end; blocks that did not change are not written again."""
    schema, rng = pa.schema({"ts": pa.int64(), "k": pa.int64()}), np.random.default_rng(0)
    stream = wp.stream(schema=schema, time="ts", keys="k", lateness=10**9)
    run, n = Pump(stream.window(window).agg(wp.count()), tasks=1, buckets=1), 4000
    known, written = {}, []
    for step in range(40):
        times = np.sort(rng.integers(step * 1000, (step + 1) * 1000, n))
        run.push(pa.table([times, rng.integers(0, 100, n)], schema=schema))
        blocks = run.buckets[0].blocks()
        put, _ = blocks.changed(known)
        known = dict(blocks.digests)
        written.append(sum(map(len, put.values())))
    whole = sum(len(blocks[name]) for name in blocks)
    assert np.mean(written[-10:]) < whole / 3, (written, whole)
