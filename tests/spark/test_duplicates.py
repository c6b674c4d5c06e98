"""Duplicated input (row 33 of the fault matrix): with ids it has no effect, and state follows the bound."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from tests.property.harness import SCHEMA, Case, Seen, batch_of, drained_answers, rows_of, same
from tests.property.strategies import FEW_ORDERED, Shape, for_each, make_rows
from tests.reliability.test_local import WINDOWS
from tests.spark.harness import rows
from tests.spark.pump import STRAYS, Pump
from windowpane.core.arrays import NEVER
from windowpane.errors import BadQuery, BadState, Overflow, UnknownColumn, WrongType
from windowpane.jobs import load
from windowpane.spark.bucket import Counts
from windowpane.testing import latest

WANTED = {name: FEW_ORDERED[name] for name in ("count", "sum_i", "collect_i")}
ROWS = pa.schema({"t": pa.int64(), "k": pa.string(), "id": pa.int64(), "v": pa.int64(), "m": pa.bool_()})


def doubled(rng, found, files):
    """Every file twice, the second time after any of those that follow, with rows of before in between."""
    cuts = sorted(rng.randrange(len(found) + 1) for _ in range(files - 1))
    parts = [list(found[a:b]) for a, b in zip([0, *cuts], [*cuts, len(found)], strict=True)]
    order = sorted(
        [(i, i) for i in range(files)] + [(rng.randrange(i, files) + 0.5, i) for i in range(files)]
    )
    arrived = []
    for _, i in order:
        for row in parts[i]:
            arrived.append(row)
            if rng.random() < 0.05:
                arrived.append(rng.choice(arrived))
    return arrived


def expected(case, upto, tie):
    """The oracle's answers over the rows without duplicates, none of which is late."""
    return drained_answers(case, case.rows, upto, tie)


def stream_of(case, **options):
    how = {"time": "ts", "keys": case.keys, "delay": case.delay, "lateness": case.lateness, "ties": case.ties}
    return wp.stream(schema=SCHEMA, ids="seq", **how, **options)


def batches_of(rng, arrived):
    cuts = sorted(rng.randrange(len(arrived) + 1) for _ in range(rng.randrange(6)))
    return [batch_of(arrived[a:b]) for a, b in zip([0, *cuts], [*cuts, len(arrived)], strict=True)]


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_row_33_duplicates_change_no_answer(window):
    """In both runtimes, whatever the batches, tasks, buckets and restarts, with revisions and without."""
    for seed in range(8):
        rng = random.Random(seed)
        delay, lateness = rng.choice([0, 3, 8]), rng.choice([0, 0, 10])
        found = make_rows(seed, rng.choice([5, 25]), delay, Shape(odd=False))
        case = Case((window,), WANTED, found, delay=delay, lateness=lateness, ties=rng.choice(["seq", None]))
        arrived = doubled(rng, found, files=3)
        batches = batches_of(rng, arrived)
        here(case, batches, restart=seed % 2 == 0)
        there(case, batches, tasks=rng.randint(1, 3), buckets=rng.randint(1, 4), restart=seed % 2 == 0)


def here(case, batches, *, restart):
    query, seen = case.query(stream_of(case)), Seen()
    runner = query.start()
    for batch in batches:
        seen.take(rows_of(case, runner.answers(runner.push(batch))))
        if restart:
            runner = query.resume(runner.snapshot().to_bytes())
        remembers(runner.gate.ids, case, runner.bound)
    upto, tie = runner.bound, runner.operator.tie
    seen.take(rows_of(case, runner.answers(runner.close())))
    same(seen.view, expected(case, upto, None if case.ties else tie))
    counts = runner.counts
    assert (counts.kept, counts.input) == (len(case.rows), sum(batch.num_rows for batch in batches))
    assert counts.kept + counts.late + counts.duplicates == counts.input
    assert len(runner.gate.ids) == 0


def there(case, batches, **how):
    pump = Pump(case.query(stream_of(case)), strays=STRAYS, **how)
    for batch in batches:
        pump.push(batch)
        remembers(pump_ids(pump), case, pump.bound)
    upto, tie = pump.bound, pump.parts[0].operator().tie
    pump.end()
    found = [] if pump.table() is None else rows_of(case, latest(pump.table()))
    same(dict(found), expected(case, upto, None if case.ties else tie))
    counts = pump.counts
    late = 0 if pump.table("late") is None else len(pump.table("late"))
    assert counts == Counts(len(case.rows), late, duplicates=counts.duplicates)
    assert counts.kept + counts.late + counts.duplicates == sum(batch.num_rows for batch in batches)
    assert len(pump_ids(pump)) == 0


def pump_ids(pump):
    """The ids of all buckets, as one list."""
    return [at for bucket in pump.buckets.values() for ids in bucket.ids for at in range(len(ids))]


def remembers(ids, case, bound):
    """No more than twice the ids of rows that are at or above the bound, less the lateness."""
    live = sum(bound == NEVER or row["ts"] >= bound - case.lateness for row in case.rows)
    assert len(ids) <= 2 * live


@for_each
@given(st.integers(0, 2**32), st.sampled_from([wp.tumbling(7), wp.session(2)]), st.integers(1, 4))
def test_queries_of_several_keys_look_for_duplicates_each_for_itself(seed, window, buckets):
    rng = random.Random(seed)
    found = make_rows(seed, 30, 8, Shape(odd=False))
    arrived = doubled(rng, found, files=3)

    def queries(**options):
        stream = wp.stream(schema=SCHEMA, time="ts", delay=8, **options)
        groups = [("k",), ("g", "k"), ()]
        return [stream.window(window, keys=by).agg(wp.count(), name=f"q{i}") for i, by in enumerate(groups)]

    pump = Pump(*queries(ids=("seq", "ts")), buckets=buckets).run(batches_of(rng, arrived))
    plain = Pump(*queries(), buckets=buckets).run([batch_of(found)])
    for name in plain.found:
        assert rows(pump.table(name)) == rows(plain.table(name)), name
    assert (pump.counts.kept, plain.counts.kept) == (30, 30)
    assert pump.counts.kept + pump.counts.late + pump.counts.duplicates == len(arrived)
    batch_job = Pump(*queries(ids="seq"), buckets=buckets)
    batch_job.push(batch_of(arrived), end=True)
    assert batch_job.counts == Counts(kept=30, duplicates=len(arrived) - 30)


def table_of(*found):
    return pa.table([list(column) for column in zip(*found, strict=True)], schema=ROWS)


def ask(source=None, **options):
    schema = ROWS if source is None else None
    stream = wp.stream(source, schema=schema, **{"time": "t", "ids": "id", "delay": 10, **options})
    return stream.window(wp.tumbling(100)).agg(wp.count(), wp.sum("v"))


ODD = [
    (1, "a", 7, 1, False),
    (1, "a", None, 1, False),  # no id: no duplicate of anything
    (1, "a", None, 1, False),
    (None, "a", 7, 1, False),  # rejected, as often as it comes
    (10**9, "a", 8, 1, False),  # rejected, so its id is free
    (2, "a", 8, 1, False),
    (2, "a", 8, 1, False),
    (3, None, None, None, True),  # a marker has no id
    (3, None, None, None, True),
    (1, "a", 7, 1, False),  # late, and no duplicate: its id may be forgotten
]


def test_every_row_is_counted_once():
    how = {"punctuation": wp.external("m"), "delay": None, "max_ahead": 1000}
    runner = ask(**how).start()
    for at in range(len(ODD)):
        runner.push(table_of(ODD[at]))
    counts = runner.counts
    assert (counts.kept, counts.late, counts.duplicates, counts.markers) == (4, 1, 1, 2)
    assert counts.rejects == {"null time": 1, "too far ahead": 1}
    pump = Pump(ask(**how), strays=STRAYS)
    for at in range(len(ODD)):
        pump.push(table_of(ODD[at]))
    assert pump.counts == Counts(kept=4, late=1, duplicates=1, markers=2, null_time=1, too_far_ahead=1)
    assert len(pump.table("late")) == 1


def test_an_id_may_be_used_again_once_the_bound_passed_its_row():
    for runner in (ask().start(), Pump(ask())):
        for t in (0, 9, 10, 11, 30, 35):
            runner.push(table_of((t, "a", t if t == 30 else 1, 1, False)))
        counted = runner.counts
        assert (counted.kept, counted.duplicates, counted.late) == (3, 3, 0)


def test_a_push_that_fails_remembers_nothing():
    runner = ask().start()
    runner.push(table_of((1, "a", 1, 2**62, False)))
    with pytest.raises(Overflow):
        runner.push(table_of((2, "a", 2, 2**62, False), (300, "a", 3, 1, False)))
    step = runner.push(table_of((1, "a", 1, 0, False), (2, "a", 2, 5, False)))
    assert (step.counts.kept, step.counts.duplicates) == (1, 1)
    assert runner.close().tables["query"]["sum_v"].to_pylist() == [2**62 + 5]


def test_the_state_of_ids_follows_the_bound_and_not_the_rows():
    n = 100_000
    table = pa.table({"t": np.arange(n), "id": np.arange(n)})
    query = (
        wp.stream(schema=table.schema, time="t", ids="id", delay=500).window(wp.tumbling(100)).agg(wp.count())
    )
    runner, pump, sizes = query.start(), Pump(query), []
    for at in range(0, n, 5_000):
        runner.push(table.slice(at, 5_000))
        pump.push(table.slice(at, 5_000))
        sizes.append((runner.state_bytes, sum(bucket.nbytes for bucket in pump.buckets.values())))
        assert 500 <= len(runner.gate.ids) <= 1_000
        assert 500 <= len(pump_ids(pump)) <= 1_000
    assert max(sizes[10:]) <= max(sizes[:10])


def test_explain_and_the_fingerprint_tell_of_ids():
    assert "out of order by up to 10 t, duplicates known by id\n" in ask().explain()
    snapshot = ask().start().snapshot()
    for other in (ask(ids=()), ask(ids=("id", "k"))):
        with pytest.raises(BadState, match=r"ids of the stream was \('id'\), is now"):
            other.resume(snapshot)


def test_ids_must_be_columns_of_plain_values_and_go_with_what_they_are_used_for():
    with pytest.raises(UnknownColumn, match="stream has no column 'idd'"):
        ask(ids="idd")
    with pytest.raises(BadQuery, match="ids names 'id' twice"):
        ask(ids=["id", "id"])
    nested = pa.schema({"t": pa.int64(), "id": pa.list_(pa.int64())})
    with pytest.raises(WrongType, match=r"column 'id' .* an id of plain values"):
        wp.stream(schema=nested, time="t", ids="id")
    for policy in (wp.slack(5), wp.melded("k", wp.slack(5))):
        with pytest.raises(BadQuery, match=r"slack\(5\) counts rows.*Use a delay"):
            ask(punctuation=policy, delay=None)
    with pytest.raises(BadQuery, match=r"memory= does not go with ids \(id\)"):
        ask().start(memory="1 MB")
    with pytest.raises(BadQuery, match=r"latest\(\) looks for no duplicates, but ids is id"):
        wp.stream(schema=ROWS, time="t", keys="k", ids="id").latest()
    with pytest.raises(BadQuery, match=r"no duplicates\. Leave ids out"):
        wp.stream(ask(table_of(ODD[0])), time="window_end", ids="count")


def test_a_job_may_name_ids(tmp_path):
    text = """\
source: {format: rate}
stream: {time: timestamp, ids: [value]}
query: {window: tumbling(1 s), aggregates: count()}
sink: {format: console}
"""
    (tmp_path / "job.yaml").write_text(text, "utf-8")
    assert load(tmp_path / "job.yaml").stream["ids"] == ("value",)
