"""The Spark path without Spark: tasks pack or reduce, buckets answer; every split of the work agrees."""

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.harness import build, events, rows
from windowpane.spark.bucket import Bucket, Received
from windowpane.spark.pack import Packer
from windowpane.spark.progress import rule_of
from windowpane.spark.reduce import Reducer, reducible
from windowpane.spark.run import bucket_columns

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


def pump(plan, batches, tasks, buckets, *, reduce):
    """Micro-batches through tasks and buckets, as Spark would; the rows of each, and the counts."""
    rule = rule_of(plan.stream.policy, plan.stream.max_ahead)
    keys = bucket_columns(plan.queries)
    labels = tuple(range(buckets)) if keys else (0,)
    packer = Packer(plan.stream.time, keys, labels, rule)
    if reduce:
        packer = Reducer(plan.stream.time, keys, labels, rule, plan)
    state = {label: Bucket(plan, rule) for label in labels}
    seen = []
    for i, batch in enumerate([*batches, None]):
        parts = [] if batch is None else np.array_split(np.arange(len(batch)), tasks)
        sent = [
            envelope
            for part in parts
            for envelope in packer(batch.slice(int(part[0]), len(part)).to_batches() if len(part) else [])
        ]
        answers = []
        for label, bucket in state.items():
            received = Received()
            for envelope in sent:
                received.add(envelope.filter(pa.array(envelope["bucket"].to_numpy() == label)).to_pandas())
            answers.append(bucket.step(received, end=i == len(batches))["query"])
        seen.append(rows(pa.concat_tables(answers)))
    return seen, [bucket.counts for bucket in state.values()]


def local(plan_of, batches):
    runner = plan_of.start()
    steps = [*(runner.push(batch) for batch in batches), runner.close()]
    return [rows(step.tables["query"]) for step in steps]


@pytest.mark.parametrize("case", [*SLICED, *WHOLE])
def test_slices_are_reduced_where_the_answer_allows_it(case):
    window, aggregates = {**SLICED, **WHOLE}[case]
    assert reducible(build(None, window, aggregates).plan) == (case in SLICED)


@pytest.mark.parametrize("case", SLICED)
@pytest.mark.parametrize(("tasks", "buckets"), [(1, 1), (3, 2), (2, 9)])
def test_reduced_or_not_the_answers_are_those_of_the_same_pushes(case, tasks, buckets):
    window, aggregates = SLICED[case]
    table = events()
    batches = [table.slice(at, 600) for at in range(0, len(table), 600)]
    query = build(None, window, aggregates)
    expected = local(query, batches)
    reduced, counts = pump(query.plan, batches, tasks, buckets, reduce=True)
    assert reduced == expected
    assert sum(c.kept for c in counts) == len(table)


@pytest.mark.parametrize("case", WHOLE)
def test_rows_that_cannot_be_reduced_go_as_they_are(case):
    window, aggregates = WHOLE[case]
    table = events()
    batches = [table.slice(at, 800) for at in range(0, len(table), 800)]
    query = build(None, window, aggregates)
    assert pump(query.plan, batches, 2, 3, reduce=False)[0] == local(query, batches)


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
    _, counts = pump(plan, batches, 3, 2, reduce=reducible(plan))
    assert sum(c.late for c in counts) == 1
    rejects = {}
    for c in counts:
        for reason, n in c.rejects.items():
            rejects[reason] = rejects.get(reason, 0) + n
    assert rejects == {"too far ahead": 1, "null time": 2}
    assert sum(c.kept for c in counts) == len(table) - 4
