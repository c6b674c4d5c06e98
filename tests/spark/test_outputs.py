"""Several outputs of one pass, punctuation from outside, and chained queries: Spark against this process."""

import time
from itertools import chain, permutations

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spark.harness import events, rows, run, streaming, write_files
from windowpane.core.arrays import ALWAYS, NEVER
from windowpane.errors import BadQuery
from windowpane.spark import counts_of, finish, punctuate
from windowpane.spark.outputs import FOR_ANOTHER, OVER_ANSWERS
from windowpane.spark.run import Wanted

SECOND = 1_000_000


def stream_of(source, **options):
    how = {"schema": events(n=2).schema} if source is None else {}
    return wp.stream(source, time="ts", **{"keys": "k", "delay": "2 s", **how, **options})


def several(stream):
    """Slices by two groupings, sessions, positions and a grouping by nothing."""
    return [
        stream.window(wp.sliding("10 s", "5 s")).agg(wp.count(), wp.sum("v"), name="by_k"),
        stream.window(wp.tumbling("10 s"), keys="m").agg(wp.max("v"), name="by_m"),
        stream.window(wp.tumbling("30 s"), keys=()).agg(wp.count(), name="all"),
        stream.window(wp.session("200 ms")).agg(wp.count(), name="sessions"),
        stream.window(wp.rows(50)).agg(wp.sum("v"), name="positions"),
    ]


def counts_told(query):
    """The counts of all micro-batches of a streaming query, summed."""
    total = {}
    for progress in query.recentProgress:
        for name, value in counts_of(progress).items():
            total[name] = total.get(name, 0) + (value or 0)
    return total


def run_all(outputs, checkpoint):
    """Run to the end of what is there; the rows of each output, micro-batch by micro-batch."""
    found = {name: [] for name in outputs.schemas}

    def write(name, frame, _batch_id):
        found[name].append(rows(frame.toArrow()))

    writer = outputs.frame.writeStream.foreachBatch(outputs.foreach(write))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return found, query


def flat(batches):
    return list(chain.from_iterable(batches))


def test_several_groupings_and_late_rows_in_one_pass(spark, tmp_path):
    table = events()
    stamps = table["ts"].cast(pa.int64()).to_numpy().copy()
    stamps[2000] -= 50 * SECOND
    time_ = pa.array(stamps, mask=np.arange(len(table)) == 7).cast(pa.timestamp("us", "UTC"))
    table = table.set_column(0, "ts", time_)
    parts = write_files(tmp_path / "in", table)
    outputs = wp.to_spark(*several(stream_of(streaming(spark, tmp_path / "in"))), late=True, rejects=True)
    found, query = run_all(outputs, tmp_path / "checkpoint")

    runner = wp.start(*several(stream_of(None)))
    steps = [runner.push(part) for part in parts]
    for name in ("by_k", "by_m", "all", "sessions", "positions"):
        assert found[name] == [rows(step.tables[name]) for step in steps], name
    assert flat(found["late"]) == rows(table.slice(2000, 1))
    assert flat(found["rejects"]) == rows(table.slice(7, 1).append_column("reason", [["null time"]]))
    counts = [counts_of(progress) for progress in query.recentProgress]
    assert sum(c["kept"] for c in counts) == len(table) - 2
    assert (sum(c["late"] for c in counts), sum(c["null_time"] for c in counts)) == (1, 1)
    assert counts[-1]["bound"] == runner.bound
    assert counts[-1]["state_bytes"] > 0


def test_late_rows_and_rejects_are_frames_of_their_own_too(spark, tmp_path):
    table = events()
    stamps = table["ts"].cast(pa.int64()).to_numpy().copy()
    stamps[[2000, 2100]] -= 50 * SECOND
    stamps[100] = 8_000_000_000_000_000
    table = table.set_column(0, "ts", pa.array(stamps).cast(pa.timestamp("us", "UTC")))
    write_files(tmp_path / "in", table)
    query = stream_of(streaming(spark, tmp_path / "in")).window(wp.tumbling("10 s")).agg(wp.count())
    late = run(query.to_spark("late"), tmp_path / "late")
    assert flat(late) == rows(table.take([2000, 2100]))
    rejects = run(query.to_spark("rejects"), tmp_path / "rejects")
    assert flat(rejects) == rows(table.slice(100, 1).append_column("reason", [["too far ahead"]]))


def test_a_bounded_run_drains_through_its_control_folder(spark, tmp_path):
    table = events()
    parts = write_files(tmp_path / "in", table)
    query = stream_of(streaming(spark, tmp_path / "in")).window(wp.session("300 ms")).agg(wp.count())
    frame = query.to_spark(control=tmp_path / "control")
    first = run(frame, tmp_path / "checkpoint")
    finish(tmp_path / "control")
    last = run(frame, tmp_path / "checkpoint")
    runner = stream_of(None).window(wp.session("300 ms")).agg(wp.count()).start()
    assert first == [rows(runner.push(part).tables["query"]) for part in parts]
    assert last == [rows(runner.close().tables["query"])]
    assert last != [[]]
    assert run(frame, tmp_path / "checkpoint") == []


def test_a_manual_stream_is_punctuated_by_hand(spark, tmp_path):
    parts = write_files(tmp_path / "in", events(), files=2)
    options = {"delay": None, "punctuation": wp.manual()}
    query = (
        stream_of(streaming(spark, tmp_path / "in"), **options).window(wp.tumbling("10 s")).agg(wp.count())
    )
    frame = query.to_spark(control=tmp_path / "control")
    assert run(frame, tmp_path / "checkpoint") == [[], []]
    bound = parts[1]["ts"][0].as_py()
    punctuate(tmp_path / "control", bound)
    runner = stream_of(None, **options).window(wp.tumbling("10 s")).agg(wp.count()).start()
    for part in parts:
        runner.push(part)
    assert run(frame, tmp_path / "checkpoint") == [rows(runner.punctuate(bound).tables["query"])]


def test_a_heartbeat_answers_when_no_data_comes(spark, tmp_path):
    table = events(n=300)
    write_files(tmp_path / "in", table, files=1)
    source = stream_of(
        streaming(spark, tmp_path / "in"), delay=None, punctuation=wp.heartbeat("1 s", delay="2 s")
    )
    frame = source.window(wp.tumbling("10 s")).agg(wp.count()).to_spark()
    found = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: found.extend(rows(batch.toArrow())))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    expected = rows(stream_of(table).window(wp.tumbling("10 s")).agg(wp.count()).run().table)
    try:
        deadline = time.monotonic() + 120
        while len(found) < len(expected) and time.monotonic() < deadline and query.isActive:
            query.awaitTermination(0.2)
    finally:
        query.stop()
    assert sorted(found) == expected


def chained(source):
    counts = stream_of(source).window(wp.tumbling("1 s")).agg(n=wp.count(), name="counts")
    return (
        wp.stream(counts, time="window_end", keys="k")
        .window(wp.sliding("20 s", "10 s"))
        .agg(most=wp.max("n"))
    )


def test_a_chained_query_answers_in_the_micro_batch_that_closes_its_window(spark, tmp_path):
    parts = write_files(tmp_path / "in", events())
    frame, batches = chained(streaming(spark, tmp_path / "in")).to_spark(), {}
    writer = frame.writeStream.foreachBatch(lambda some, i: batches.update({i: rows(some.toArrow())}))
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    running = query.start()
    running.awaitTermination()
    found = [batches[i] for i in sorted(batches)]
    counts = counts_told(running)
    assert (counts["kept"], counts["answers"]) == (len(events()), len(flat(found)))
    assert counts["chained_kept"] > counts["answers"]
    first = stream_of(None).window(wp.tumbling("1 s")).agg(n=wp.count(), name="counts").start()
    bounds = [first.push(part) and first.bound for part in parts]
    whole = chained(events()).run().table
    ends = np.array([row["end"].timestamp() * SECOND for row in whole["window"].to_pylist()])
    for before, bound, batch in zip([-np.inf, *bounds], bounds, found, strict=False):
        assert batch == rows(whole.filter(pa.array((ends > before) & (ends <= bound))))
    assert len(flat(found)) > 10


def test_chained_queries_count_the_rows_of_the_source_and_the_answers_of_the_last():
    reads = {"kept": 90, "late": 4, "null_time": 1, "answers": 20, "state_bytes": 7, "bound": 60, "high": 62}
    gives = {"kept": 19, "late": 1, "null_time": 0, "answers": 3, "state_bytes": 5, "bound": 50, "high": 59}
    both = {
        f"windowpane a{FOR_ANOTHER}": reads,
        f"windowpane b{OVER_ANSWERS}": gives,
        "job input": {"kept": 1},
    }
    for metrics in (both, dict(reversed(both.items()))):
        assert counts_of({"observedMetrics": metrics}) == {
            "kept": 90, "late": 4, "null_time": 1, "answers": 3, "state_bytes": 12, "bound": 50, "high": 59,
            "chained_kept": 19, "chained_late": 1, "chained_null_time": 0,
        }  # fmt: skip


def test_of_several_frames_the_bound_is_the_smallest_and_the_high_the_largest():
    """Of a bound one may say that all windows below it were answered."""
    ahead, behind = {"answers": 1, "bound": 60, "high": 62}, {"answers": 2, "bound": 50, "high": 51}
    silent, ended = {"bound": int(NEVER), "high": int(NEVER)}, {"bound": int(ALWAYS), "high": 70}
    nothing = {"bound": None, "high": None}
    for frames, bound, high in (
        ((ahead, behind), 50, 62),
        ((ahead, silent), None, 62),
        ((ahead, ended), 60, 70),
        ((ended,), None, 70),
        ((ahead, nothing), 60, 62),
        ((nothing,), None, None),
    ):
        for some in permutations(frames):
            told = counts_of({"observedMetrics": {f"windowpane {i}": each for i, each in enumerate(some)}})
            assert (told["bound"], told["high"]) == (bound, high)


def test_a_chained_query_over_a_static_frame(spark, tmp_path):
    write_files(tmp_path / "in", events())
    frame = chained(spark.read.parquet(str(tmp_path / "in"))).to_spark()
    assert rows(frame.toArrow()) == rows(chained(events()).run().table)


def test_conditions_and_computed_columns_run_in_catalyst(spark, tmp_path):
    import pyarrow.compute as pc

    table = events()
    write_files(tmp_path / "in", table)
    window = wp.tumbling("10 s")
    there = stream_of(spark.read.parquet(str(tmp_path / "in"))).where("v > 50").select("ts", "k", d="v * 2")
    here = stream_of(table).where(pc.field("v") > 50).select("ts", "k", d=pc.field("v") * 2)
    frame = there.window(window).agg(wp.sum("d")).to_spark()
    assert rows(frame.toArrow()) == rows(here.window(window).agg(wp.sum("d")).run().table)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda q: wp.stream(q, time="window_start"), "progresses on 'window_end'"),
        (lambda q: wp.stream(q, time="window_end", delay="1 s"), "has the punctuation and the columns"),
        (lambda q: wp.stream(q, time="window_end", lateness=5, max_ahead=7), "Leave lateness and max_ahead"),
        (lambda q: wp.stream(q, time="window_end", schema=events(n=2).schema), "Leave schema out"),
        (lambda q: q.to_spark(), "no Spark DataFrame"),
    ],
)
def test_what_cannot_be_is_an_error(build, message):
    query = stream_of(None).window(wp.tumbling("1 s")).agg(wp.count())
    with pytest.raises(BadQuery, match=message):
        build(query)


@pytest.mark.parametrize("buckets", [0, -1, 2.0, True, "2"])
def test_a_number_of_buckets_that_is_none_is_an_error(buckets):
    with pytest.raises(BadQuery, match=f"buckets is {buckets!r}. Give a whole number above 0"):
        Wanted(buckets=buckets)


def test_conditions_between_two_queries_on_spark_are_refused(spark):
    frame = spark.createDataFrame([], "ts timestamp, k string")
    query = wp.stream(frame, time="ts", keys="k").window(wp.tumbling("1 s")).agg(n=wp.count())
    answers = wp.stream(query, time="window_end")
    for change in (lambda: answers.where("n > 5"), lambda: answers.select("window_end", m="n * 2")):
        with pytest.raises(BadQuery, match="cannot be put between two queries on Spark"):
            change()
    with pytest.raises(BadQuery, match="a Spark DataFrame has its own schema"):
        wp.stream(frame, time="ts", schema=events(n=2).schema)


def test_revised_and_counted_answers_are_no_stream():
    for options, window in (({"lateness": "1 s"}, wp.tumbling("1 s")), ({}, wp.rows(5))):
        query = stream_of(None, **options).window(window).agg(wp.count())
        with pytest.raises(BadQuery, match=r"count twice|measured in rows"):
            wp.stream(query, time="window_end")


def test_answers_with_two_columns_of_one_name_are_no_stream():
    query = stream_of(None).window(wp.tumbling("1 s")).agg(window_end=wp.count())
    with pytest.raises(BadQuery, match="two columns 'window_end'"):
        wp.stream(query, time="window_end")


def test_names_of_columns_may_hold_dots_and_quotes(spark):
    table = events(n=300).rename_columns(["a.ts", "k`1", "v", "x.y", "m"])

    def query(source, twice):
        stream = wp.stream(source, time="a.ts", keys="k`1", delay="1 day").select(
            "a.ts", "k`1", "x.y", d=twice
        )
        return stream.window(wp.tumbling("10 s")).agg(wp.sum("d"), largest=wp.max("x.y"))

    import pyarrow.compute as pc

    frame = query(spark.createDataFrame(table), "v * 2").to_spark()
    assert rows(frame.toArrow()) == rows(query(table, pc.field("v") * 2).run().table)
