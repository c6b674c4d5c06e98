"""Windows larger than memory in a bucket: blocks in a state store, few of them held, answers the same."""

import json
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from tests.property.strategies import for_each
from tests.spark.harness import events, rows, run, streaming, write_files
from windowpane.errors import BadQuery, BadState
from windowpane.spark import finish
from windowpane.spark.bucket import Received, Work
from windowpane.spark.pack import Packer
from windowpane.spark.parts import one_part
from windowpane.spark.seen import watch_of
from windowpane.spark.spill import SpillBucket, SpillProgram
from windowpane.values.sizes import Budget


class Pages:
    """A map of the state store."""

    def __init__(self):
        self.kept, self.reads = {}, 0

    def getValue(self, key):  # noqa: N802 - Spark's name
        self.reads += 1
        return self.kept.get(key)

    def updateValue(self, key, value):  # noqa: N802 - as above
        self.kept[key] = value

    def removeKey(self, key):  # noqa: N802 - as above
        del self.kept[key]


SUMS = (wp.count(), wp.sum("v"), wp.max("x"))
VALUES = (wp.count(), wp.median("v"), wp.quantile("x", [0.1, 0.99]), wp.distinct("v"), wp.top_k("k", 2))


def query_of(source, size, slide, aggregates=SUMS):
    return asked_of(source, wp.sliding(size, slide), aggregates)


def asked_of(source, window, aggregates):
    how = {"schema": events(n=2).schema} if source is None else {}
    stream = wp.stream(source, time="ts", keys="k", delay="2 s", **how)
    return stream.window(window).agg(*aggregates)


def work_of(part, strays=()):
    return Work(part.plan.stream, (part,), part, strays)


def again(bucket, part, budget, pages):
    """A bucket in another worker, from what the first one stored."""
    blocks = dict(bucket.blocks())
    other = SpillBucket(work_of(part), budget)
    other.attach(pages)
    other.restore(bucket.header(), blocks)
    return other


@given(
    restarts=st.sets(st.integers(0, 8)), technique=st.sampled_from(["1W", "2LA"]), cut=st.integers(100, 700)
)
def test_the_answers_are_those_in_memory_wherever_the_bucket_goes_on(restarts, technique, cut):
    follow(query_of(None, "20 s", "5 s"), Budget(400_000, 1024, 3, technique), restarts, cut)


@pytest.mark.parametrize(
    "window", [wp.sliding("20 s", "5 s"), wp.per_row("20 s"), wp.per_row("20 s").per()], ids=str
)
@for_each
@given(restarts=st.sets(st.integers(0, 8)), cut=st.integers(100, 700))
def test_values_go_on_with_the_bucket(window, restarts, cut):
    follow(asked_of(None, window, VALUES), Budget(400_000, 1024, 3), restarts, cut)


def follow(query, budget, restarts, cut):
    """Push events in micro-batches and restart the bucket after some; the answers are those in memory."""
    table = events()
    batches = [table.slice(at, cut) for at in range(0, len(table), cut)]
    part = one_part(query.plan)
    packer = Packer((part,), (0,), watch_of(query.plan.stream))
    pages, runner = Pages(), query.start()
    bucket = SpillBucket(work_of(part), budget)
    bucket.attach(pages)
    for i, batch in enumerate(batches):
        received = Received()
        for envelope in packer(batch.to_batches()):
            received.add(envelope["part"].to_pylist(), envelope["payload"].to_pylist())
        frame = bucket.answer(received)
        found = [pa.ipc.open_stream(p).read_all() for p in frame["payload"] if p is not None]
        expected = runner.push(batch).tables["query"]
        assert (rows(pa.concat_tables(found)) if found else []) == rows(expected)
        bucket.blocks()
        if i in restarts:
            bucket = again(bucket, part, budget, pages)


def pushed(bucket, query, part, table):
    """A micro-batch of one task."""
    received = Received()
    for envelope in Packer((part,), (0,), watch_of(query.plan.stream))(table.to_batches()):
        received.add(envelope["part"].to_pylist(), envelope["payload"].to_pylist())
    return bucket.answer(received)


def test_few_blocks_are_held_and_expired_ones_are_removed():
    table, cut = events(n=60_000), 3000
    query = query_of(None, "20 s", "1 s")
    part, budget = one_part(query.plan), Budget(2_000_000, 4096, 3, "1W")
    pages = Pages()
    bucket = SpillBucket(work_of(part), budget)
    bucket.attach(pages)
    for at in range(0, len(table), cut):
        before = pages.reads
        pushed(bucket, query, part, table.slice(at, cut))
        bucket = again(bucket, part, budget, pages)
        assert bucket.nbytes < 2_000_000
        (lane,) = bucket._operator.lanes
        capacity = lane.store.layout.capacity
        # those that expired, and when it goes on elsewhere, the oldest and the newest
        assert pages.reads - before <= cut / capacity + 4
        # a third of a minute of a minute's rows is held by the windows; blocks before that are gone
        assert len(pages.kept) <= min(at + cut, len(table) * 21 / 60) / capacity + 4
        # an epoch for each restart since the oldest block
        assert len(lane.store.epochs) <= len(table) * 21 / 60 / cut + 3
    assert len(pages.kept) > len(table) * 19 / 60 / capacity
    newest = max(pages.kept)
    pages.kept = dict.fromkeys(pages.kept, (bytes(4096),))
    with pytest.raises(BadState, match=f"block .* of lane {newest[0]} in Spark's state"):
        again(bucket, part, budget, pages)


def test_restarts_without_rows_leave_nothing_behind():
    table, query = events(), query_of(None, "20 s", "5 s")
    part, budget, pages = one_part(query.plan), Budget(400_000, 1024, 3, "1W"), Pages()
    bucket = SpillBucket(work_of(part), budget)
    bucket.attach(pages)
    pushed(bucket, query, part, table.slice(0, 1500))
    bucket = again(bucket, part, budget, pages)
    bucket.blocks()
    size = len(json.dumps(bucket.header()))
    for _ in range(20):
        bucket = again(bucket, part, budget, pages)
    bucket.blocks()
    assert len(json.dumps(bucket.header())) <= size + 4  # the number of the epoch has more digits


def test_blocks_of_another_size_do_not_spoil_the_state():
    """The stores keep the size that they began with, and say so when they are stored again."""
    table, query = events(), query_of(None, "20 s", "5 s")
    part, pages, runner = one_part(query.plan), Pages(), query.start()
    bucket = SpillBucket(work_of(part), Budget(400_000, 1024, 3, "1W"))
    bucket.attach(pages)
    for i in range(6):
        some = table.slice(400 * i, 400)
        frame = pushed(bucket, query, part, some)
        found = [pa.ipc.open_stream(p).read_all() for p in frame["payload"] if p is not None]
        expected = runner.push(some).tables["query"]
        assert (rows(pa.concat_tables(found)) if found else []) == rows(expected)
        bucket = again(bucket, part, Budget(400_000, 2048, 3, "1W"), pages)


def test_late_rows_and_rejects_come_from_the_same_pass():
    """Judged row by row, as a run within memory does it, not by slices."""
    query = query_of(None, "20 s", "5 s")
    part, table = one_part(query.plan), events()
    stamps = table["ts"].cast(pa.int64()).to_numpy().copy()
    stamps[[1601, 2000]] -= [3_000_000, 50_000_000]
    stamps[100] = 8_000_000_000_000_000
    table = table.set_column(0, "ts", pa.array(stamps).cast(pa.timestamp("us", "UTC")))
    strays = ("late", "rejects")
    bucket = SpillBucket(Work(query.plan.stream, (part,), part, strays), Budget(400_000, 1024, 3, "1W"))
    bucket.attach(Pages())
    found = {name: [] for name in ("query", *strays)}
    bounds, notes = [None], []
    for at in range(0, len(table), 400):
        received, some = Received(), table.slice(at, 400)
        for envelope in Packer((part,), (0,), watch_of(query.plan.stream), strays=True)(some.to_batches()):
            received.add(envelope["part"].to_pylist(), envelope["payload"].to_pylist())
        frame = bucket.answer(received)
        for name, payload in zip(frame["output"], frame["payload"], strict=True):
            if payload is not None:
                found[name].append(pa.ipc.open_stream(payload).read_all())
        notes.append(frame.iloc[-1])
        bounds.append(int(notes[-1]["bound"]))
    late = [i for i, t in enumerate(stamps) if bounds[i // 400] is not None and t < bounds[i // 400]]
    assert rows(pa.concat_tables(found["late"])) == rows(table.take(late))
    assert {1601, 2000} <= set(late)
    rejects = table.take([100]).append_column("reason", [["too far ahead"]])
    assert rows(pa.concat_tables(found["rejects"])) == rows(rejects)
    totals = {name: sum(int(note[name]) for note in notes) for name in ("kept", "late", "too_far_ahead")}
    assert totals == {"kept": len(table) - len(late) - 1, "late": len(late), "too_far_ahead": 1}
    assert sum(int(note["answers"]) for note in notes) == sum(map(len, found["query"]))


def test_a_stream_within_memory_on_spark(spark, tmp_path):
    parts = write_files(tmp_path / "in", events(n=20_000), files=5)
    query = query_of(streaming(spark, tmp_path / "in"), "30 s", "5 s")
    budget = Budget(600_000, 4096, 3, "1W")
    frame = query.to_spark(memory=budget, buckets=2)
    runner = query_of(None, "30 s", "5 s").start()
    expected = [rows(runner.push(part).tables["query"]) for part in parts]
    assert run(frame, tmp_path / "checkpoint") == expected


def chained(source, first=None, **how):
    """The busiest second of each minute."""
    stream = wp.stream(source, time="ts", keys="k", delay="2 s", **how)
    counts = stream.window(first or wp.tumbling("1 s")).agg(n=wp.count(), name="counts")
    again = wp.stream(counts, time="window_end", keys="k")
    return again.window(wp.sliding("20 s", "10 s")).agg(most=wp.max("n"))


def test_every_query_of_a_chain_keeps_to_the_memory_on_spark(spark, tmp_path):
    write_files(tmp_path / "in", events(), files=2)
    source, budget = streaming(spark, tmp_path / "in"), Budget(600_000, 4096, 3)
    with pytest.raises(
        BadQuery, match="query 'counts' has Session"
    ):  # the first query cannot be kept in blocks
        chained(source, wp.session("1 s")).to_spark(memory=budget)
    frame = chained(source).to_spark(memory=budget, buckets=2, control=tmp_path / "control")
    found = run(frame, tmp_path / "checkpoint")
    finish(tmp_path / "control")
    found += run(frame, tmp_path / "checkpoint")
    assert sorted(chain.from_iterable(found)) == rows(chained(events()).run().table)


CHANGES = {
    "added": (None, "64 MB", r"written by windows without memory=, but is now to be read by windows within"),
    "removed": (
        "64 MB",
        None,
        r"written by windows within memory=, but is now to be read by windows without",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_restart_with_or_without_memory_is_refused_and_says_so(spark, tmp_path, change):
    from pyspark.errors import StreamingQueryException

    then, now, told = CHANGES[change]
    write_files(tmp_path / "in", events(), files=2)
    query = query_of(streaming(spark, tmp_path / "in"), "20 s", "5 s")
    run(query.to_spark(memory=then, buckets=2), tmp_path / "checkpoint")
    write_files(tmp_path / "in", events(1), files=3)
    with pytest.raises(StreamingQueryException, match=rf"(?s)errors\.BadState: the state was {told}"):
        run(query.to_spark(memory=now, buckets=2), tmp_path / "checkpoint")


def test_a_median_for_every_tuple_within_memory_on_spark(spark, tmp_path):
    parts = write_files(tmp_path / "in", events(n=5_000), files=3)
    window, budget = wp.per_row("20 s").per(), Budget(600_000, 4096, 3)
    query = asked_of(streaming(spark, tmp_path / "in"), window, VALUES)
    runner = asked_of(None, window, VALUES).start()
    expected = [rows(runner.push(part).tables["query"]) for part in parts]
    assert sum(map(len, expected)) > 2_000
    assert run(query.to_spark(memory=budget, buckets=2), tmp_path / "checkpoint") == expected


def test_slices_cannot_hold_values():
    part = one_part(query_of(None, "20 s", "5 s", VALUES).plan)
    with pytest.raises(BadQuery, match=r"need all values\. Use technique='1W'"):
        SpillProgram(work_of(part), Budget(400_000, technique="2LA"), "")


def test_what_cannot_be_kept_in_blocks_is_an_error(spark, tmp_path):
    write_files(tmp_path / "in", events(n=100), files=1)
    stream = wp.stream(streaming(spark, tmp_path / "in"), time="ts", keys="k", delay="2 s")
    with pytest.raises(BadQuery):
        stream.window(wp.session("1 s")).agg(wp.count()).to_spark(memory="1 MB")
    static = wp.stream(spark.read.parquet(str(tmp_path / "in")), time="ts", keys="k", delay="2 s")
    with pytest.raises(BadQuery, match="memory= is for streams"):
        static.window(wp.tumbling("1 s")).agg(wp.count()).to_spark(memory="1 MB")
