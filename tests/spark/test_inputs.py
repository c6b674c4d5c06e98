"""Rows 24 to 36 of the reliability matrix on Spark itself; most cases run without it in test_inputs_pump."""

import math
import threading
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windowpane as wp
from tests.reliability.test_local import data, micros
from tests.spark.harness import events, plain, rows, run, streaming, write_files
from tests.spark.pump import STRAYS, Pump
from windowpane.jobs.files import Publisher
from windowpane.spark import counts_of, finish, schema_of
from windowpane.spark.outputs import COUNTS

SECOND = 1_000_000
ZONES = ["America/New_York", "Asia/Kolkata", "UTC"]


def run_outputs(outputs, checkpoint):
    """Run over what is there; the rows of each output, summed counts, and the calls of each micro-batch."""
    found, calls = {name: [] for name in outputs.schemas}, []

    def each(batch, number):
        calls.append(batch.where("output is null").count())  # each call of a processor notes its counts once
        outputs.foreach(lambda name, frame, _: found[name].append(frame.toArrow()))(batch, number)

    writer = outputs.frame.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    told = [counts_of(progress) for progress in query.recentProgress]
    counts = {name: sum(each.get(name) or 0 for each in told) for name in COUNTS}
    return {name: pa.concat_tables(tables) for name, tables in found.items()}, counts, calls


def run_told(frame, checkpoint):
    """The rows of each micro-batch, and what Spark reports of each."""
    batches = {}

    def sink(result, number):
        batches[number] = rows(result.toArrow())

    query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    query = query.trigger(availableNow=True).start()
    query.awaitTermination()
    return [batches[n] for n in sorted(batches)], query.recentProgress


def failure(frame, checkpoint):
    """What Spark says when a run fails."""
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException) as raised:
        run(frame, checkpoint)
    return str(raised.value)


def test_row_24_rows_beyond_the_bound_are_counted_one_by_one(spark, tmp_path):
    table = data("zeek_ssl").select(["seq", "ts", "orig_h"])
    parts = write_files(tmp_path / "in", table, files=5)

    def query(source, **how):
        stream = wp.stream(source, time="ts", keys="orig_h", delay="10 s", **how)
        return stream.window(wp.tumbling("1 min")).agg(wp.count())

    outputs = wp.to_spark(query(streaming(spark, tmp_path / "in")), late=True)
    found, counts, _ = run_outputs(outputs, tmp_path / "checkpoint")
    pump = Pump(query(None, schema=table.schema), strays=STRAYS)
    for part in parts:
        pump.push(part)
    expected = pump.table("late")["seq"].to_pylist()
    assert sorted(found["late"]["seq"].to_pylist()) == sorted(expected)
    assert counts["late"] == len(expected) > 300
    assert counts["kept"] + counts["late"] == len(table)


def test_row_25_rows_with_a_null_time_are_rejected(spark, tmp_path):
    table = data("nyc_flights").select(["seq", "dep", "carrier"])
    write_files(tmp_path / "in", table, files=2)
    outputs = wp.to_spark(by_day(streaming(spark, tmp_path / "in")), rejects=True)
    found, counts, _ = run_outputs(outputs, tmp_path / "checkpoint")
    assert (counts["null_time"], counts["kept"]) == (8255, len(table) - 8255)
    assert found["rejects"]["reason"].to_pylist() == ["null time"] * 8255
    assert found["rejects"]["dep"].null_count == 8255


def by_day(source):
    """Windows that another time zone would move."""
    stream = wp.stream(source, time="dep", keys="carrier", delay="12 h")
    return stream.window(wp.tumbling("1 day")).agg(wp.count(), wp.sum("seq"), wp.max("dep"))


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_row_30_no_time_zone_changes_a_byte_of_the_output(spark, tmp_path, form):
    table = data("nyc_flights").select(["seq", "dep", "carrier"])
    write_files(tmp_path / "in", table, files=2)
    written = []
    for zone in ZONES:
        folder = tmp_path / zone.replace("/", "-")
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            publish(by_day(streaming(spark, tmp_path / "in")), folder, form)
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
        files = sorted(folder.glob(f"answers/batch=*/*.{form}"))
        written.append(sorted((file.parent.name, file.read_bytes()) for file in files))
    assert written[0] == written[1] == written[2]
    assert len(written[0]) > 2
    if form == "parquet":
        answers = pa.concat_tables(pa.table(pq.read_table(pa.BufferReader(data_))) for _, data_ in written[0])
        assert in_micros(answers) == in_micros(by_day(table).run().table)


def publish(query, folder, form):
    """Run over what is there to the end, and publish the answers as jobs do."""
    folder.mkdir()
    frame = query.to_spark(buckets=2, control=folder / "control")
    sink = Publisher(form, folder / "answers")
    sink.prepare(schema_of(frame))
    writer = frame.writeStream.foreachBatch(lambda batch, number: sink.write(batch, number, "test"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer.start().awaitTermination()
    finish(folder / "control")
    writer.start().awaitTermination()


def in_micros(table):
    """Rows with their instants as microseconds, whatever the time zone that they are shown in."""
    window = table["window"].combine_chunks()
    edges = [window.field(name).cast(pa.int64()) for name in ("start", "end")]
    rest = table.drop_columns("window").append_column("start", edges[0]).append_column("end", edges[1])
    return rows(rest)


def test_rows_26_and_27_absurd_and_ancient_times(spark, tmp_path):
    times = micros(2024, 1, 1) + np.arange(5_000) * SECOND
    times[1234] = micros(9999, 1, 1)
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "seq": np.arange(5_000)})
    write_files(tmp_path / "in", table, files=3)
    stream = wp.stream(streaming(spark, tmp_path / "in"), time="ts", delay="10 s")
    outputs = wp.to_spark(stream.window(wp.tumbling("1 min")).agg(wp.count()), late=True, rejects=True)
    found, counts, _ = run_outputs(outputs, tmp_path / "checkpoint")
    rejects = found["rejects"].select(["seq", "reason"]).to_pylist()
    assert rejects == [{"seq": 1234, "reason": "too far ahead"}]
    assert (counts["kept"], counts["late"], counts["too_far_ahead"]) == (4_999, 0, 1)

    old = [micros(1, 1, 1), micros(1, 1, 1, 0, 0, 59), micros(1582, 10, 10), micros(1969, 12, 31, 23, 59, 59)]
    ancient = pa.table({"ts": pa.array(old, pa.timestamp("us", "UTC"))})
    write_files(tmp_path / "old", ancient, files=1)

    def query(source):
        return wp.stream(source, time="ts", max_ahead=None).window(wp.tumbling("1 min")).agg(wp.count())

    answers = query(spark.read.parquet(str(tmp_path / "old"))).to_spark().toArrow()
    assert in_micros(answers) == in_micros(query(ancient).run().table)
    assert sum(answers["count"].to_pylist()) == 4


@pytest.mark.parametrize("memory", [None, "8 MB"])
def test_row_26_the_first_micro_batch_has_but_one_row_and_it_is_absurd(spark, tmp_path, memory):
    times = micros(2024, 1, 1) + np.arange(3_000) * SECOND
    times[0] = micros(2262, 1, 1)
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "seq": np.arange(3_000)})

    def query(source):
        return wp.stream(source, time="ts", delay="10 s").window(wp.tumbling("1 min")).agg(wp.count())

    write_files(tmp_path / "in", table.slice(0, 1), files=1)
    how = {"control": tmp_path / "control", "memory": memory}
    outputs = wp.to_spark(query(streaming(spark, tmp_path / "in")), late=True, rejects=True, **how)
    answers = []
    for i, some in enumerate((None, table.slice(1, 1), table.slice(2))):
        if some is not None:
            pq.write_table(some, tmp_path / "in" / f"more {i}.parquet")
        found, counts, _ = run_outputs(outputs, tmp_path / "checkpoint")  # each goes on from the last one
        answers.append(found["query"])
        rejects = found["rejects"].select(["seq", "reason"]).to_pylist()
        assert rejects == ([{"seq": 0, "reason": "too far ahead"}] if i == 1 else [])
        expected = [(0, 0, 0), (0, 0, 1), (2_999, 0, 0)][i]
        assert (counts["kept"], counts["late"], counts["too_far_ahead"]) == expected
    finish(tmp_path / "control")
    answers.append(run_outputs(outputs, tmp_path / "checkpoint")[0]["query"])
    assert in_micros(pa.concat_tables(answers)) == in_micros(query(table.slice(1)).run().table)


def test_row_32_the_end_of_a_bounded_run_closes_every_window_of_every_kind(spark, tmp_path):
    table = events()
    write_files(tmp_path / "in", table, files=2)

    def queries(source):
        stream = wp.stream(source, time="ts", keys="k", delay="2 s")
        kinds = {
            "sliding": wp.sliding("10 s", "3 s"),
            "landmark": wp.landmark("7 s"),
            "rows": wp.rows(50, 20),
            "marks": wp.delimited(start="m"),
            "last": wp.last_rows(7, "5 s").per(),
        }
        return [stream.window(window).agg(wp.count(), name=name) for name, window in kinds.items()]

    outputs = wp.to_spark(*queries(streaming(spark, tmp_path / "in")), control=tmp_path / "control")
    first, _, _ = run_outputs(outputs, tmp_path / "checkpoint")
    finish(tmp_path / "control")
    last, _, _ = run_outputs(outputs, tmp_path / "checkpoint")
    whole = wp.run(*queries(table))
    for name in first:
        assert rows(pa.concat_tables([first[name], last[name]])) == rows(whole.tables[name]), name
        assert last[name].num_rows, name


def test_row_32_the_end_of_a_chain_closes_the_windows_of_its_first_query_too(spark, tmp_path):
    """The second must not answer before the rest of the first has come: regression."""
    table = events()
    write_files(tmp_path / "in", table, files=2)

    def query(source):
        counts = wp.stream(source, time="ts", keys="k", delay="2 s").window(wp.tumbling("1 s"))
        again = wp.stream(counts.agg(n=wp.count(), name="counts"), time="window_end", keys="k")
        return again.window(wp.sliding("20 s", "10 s")).agg(most=wp.max("n"), total=wp.sum("n"))

    frame = query(streaming(spark, tmp_path / "in")).to_spark(buckets=3, control=tmp_path / "control")
    found = run(frame, tmp_path / "checkpoint")
    finish(tmp_path / "control")
    found += run(frame, tmp_path / "checkpoint")
    assert sorted(chain.from_iterable(found)) == rows(query(table).run().table)


def test_row_33_files_that_come_twice_have_no_effect_with_ids(spark, tmp_path):
    """Duplicates within a micro-batch, across them and across a restart; ids go as the bound passes them."""
    n, share, rng = 36_000, 12_000, np.random.default_rng(0)
    table = events(n=n).append_column("id", pa.array(range(n)))
    again = [np.append(np.arange(share), rng.integers(0, share, share // 20)) for _ in range(3)]
    files = [table.slice(i * share, share).take(again[i]) for i in range(3)]
    found, told = [], []

    def query(source, **how):
        stream = wp.stream(source, time="ts", keys="k", delay="2 s", **how)
        return stream.window(wp.tumbling("10 s")).agg(wp.count(), wp.sum("v"))

    for numbers in ((0, 1, 1), (0, 1, 1, 0, 2, 2)):  # after the restart Spark passes over the first three
        write_files(tmp_path / "in", pa.concat_tables([files[i] for i in numbers]), files=len(numbers))
        frame = query(streaming(spark, tmp_path / "in"), ids="id").to_spark(buckets=2)
        batches, progress = run_told(frame, tmp_path / "checkpoint")
        found += batches
        told += [counts_of(each) for each in progress]
    plain = query(None, schema=table.schema).start().push(table)
    assert sorted(chain.from_iterable(found)) == rows(plain.tables["query"]) != []
    counts = {name: sum(each.get(name) or 0 for each in told) for name in COUNTS}
    assert counts["kept"] == n
    assert counts["duplicates"] > n // 20
    assert counts["kept"] + counts["late"] + counts["duplicates"] == 2 * sum(map(len, files))
    assert max(each["state_bytes"] for each in told) < 6 * n  # all ids would take 24 bytes each, and more


def grouped_by_spark(frame):
    from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

    counted = frame.groupBy("k").agg(F.count(F.lit(1)).alias("count")).toArrow()
    return sorted(repr(plain(row)) for row in counted.to_pylist())


ODD = {
    "floats": pa.array([math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, None, None, 1.5, -1.5]),
    "texts": pa.array([None, "", None, "a", "a ", "A", "é", "e\u0301", "x" * 2**20, "x" * 2**20 + "y"]),
    "bytes": pa.array([b"\xff\xfe", b"\xc3\x28", b"", b"\xff\xfe", None, b"\0", b"\0\0", b"a", b"b", b"a"]),
    "decimals of days": pa.array([0, -1, 0, None, 19_000, 1, 2, 3, -1, 4], pa.int32()).cast(pa.date32()),
}


@pytest.mark.parametrize("case", ODD)
def test_row_35_keys_are_grouped_as_spark_sql_groups_them(spark, tmp_path, case):
    table = pa.table({"ts": pa.array(range(10), pa.int64()), "k": ODD[case]})
    write_files(tmp_path / "in", table, files=1)
    frame = spark.read.parquet(str(tmp_path / "in"))
    for window in (wp.tumbling(1000), wp.session(1000)):
        query = wp.stream(frame, time="ts", keys="k", delay=10).window(window).agg(wp.count())
        found = query.to_spark().toArrow().select(["k", "count"]).to_pylist()
        assert sorted(repr(plain(row)) for row in found) == grouped_by_spark(frame)


def test_row_35_text_keys_that_are_no_utf8_are_keys_like_any_other(spark, tmp_path):
    from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

    bad = [b"\xff\xfe", b"\xc3\x28", b"ok", b"\xff\xfe", b"\xff\xff"]
    texts = pa.array(bad, pa.binary()).view(pa.string())
    write_files(tmp_path / "in", pa.table({"ts": pa.array(range(5), pa.int64()), "k": texts}), files=1)
    frame = spark.read.parquet(str(tmp_path / "in"))
    for aggregates in ((wp.count(),), (wp.count(), wp.top_k("k", 1))):  # as rows, and as payloads
        query = wp.stream(frame, time="ts", keys="k", delay=10).window(wp.tumbling(1000)).agg(*aggregates)
        found = query.to_spark().select(F.col("k").cast("binary"), "count").collect()
        assert {bytes(row.k): row["count"] for row in found} == {b: bad.count(b) for b in bad}


def test_row_35_a_sum_beyond_int64_stops_the_query_and_says_so(spark, tmp_path):
    table = pa.table({"ts": pa.array([0, 1, 99], pa.int64()), "v": pa.array([2**63 - 1, 2, 0], pa.int64())})
    write_files(tmp_path / "in", table, files=1)
    stream = wp.stream(streaming(spark, tmp_path / "in"), time="ts")
    message = failure(stream.window(wp.tumbling(10)).agg(wp.sum("v")).to_spark(), tmp_path / "checkpoint")
    assert "the sum of column 'v' is 9223372036854775809 in some window, which does not fit int64" in message


DDL = "ts bigint, k string, v bigint"


def drifting(tmp_path, **more):
    """A folder of two files: one as it should be, and one with the given columns."""
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(pa.table({"ts": [1, 2], "k": ["a", "b"], "v": [1, 2]}), folder / "00.parquet")
    pq.write_table(pa.table({"ts": [3, 99], **more}), folder / "01.parquet")
    return folder


def counted(frame):
    return wp.stream(frame, time="ts", keys="k").window(wp.tumbling(10)).agg(wp.count(), wp.sum("v"))


def test_row_36_a_column_that_a_file_lacks_is_null_in_spark_and_stops_the_query_on_request(spark, tmp_path):
    folder = drifting(tmp_path, v=[3, 4])
    frame = spark.readStream.schema(DDL).parquet(str(folder))
    silent = run(counted(frame).to_spark(), tmp_path / "silent")
    assert "'k': None" in repr(silent), "Spark's reader makes nulls of a column that is not there"
    strict = frame.withColumn("k", spark_expr("coalesce(k, raise_error('a file lacks column k'))"))
    assert "a file lacks column k" in failure(counted(strict).to_spark(), tmp_path / "strict")


def test_row_36_rows_of_a_file_that_lacks_the_key_are_rejects_with_a_count_on_request(spark, tmp_path):
    folder = drifting(tmp_path, v=[3, 4])
    frame = spark.readStream.schema(DDL).parquet(str(folder))
    checked = frame.withColumn("ts", spark_expr("if(k is null, null, ts)"))
    outputs = wp.to_spark(counted(checked), rejects=True)
    found, counts, _ = run_outputs(outputs, tmp_path / "checkpoint")
    assert (counts["kept"], counts["null_time"]) == (2, 2)
    assert sorted(found["rejects"]["v"].to_pylist()) == [3, 4]


JOB = """\
source:
  format: parquet
  path: in
  schema: ts bigint, k string, v bigint
  select: [ts, v, "coalesce(k, raise_error('a file lacks column k')) as k"]
stream: {time: ts, keys: k}
query: {window: tumbling(10), aggregates: "count()"}
sink: {format: parquet, path: out}
trigger: available_now
checkpoint: state
"""


def test_row_36_a_job_stops_at_a_file_that_lacks_a_column_and_says_so(spark, tmp_path):
    from windowpane.jobs import load
    from windowpane.jobs.run import JobFailed
    from windowpane.jobs.run import run as run_job

    drifting(tmp_path, v=[3, 4])
    (tmp_path / "job.yaml").write_text(JOB, "utf-8")
    with pytest.raises(JobFailed, match=r"01\.parquet' has no column 'k', which a query reads"):
        run_job(load(tmp_path / "job.yaml"), spark, threading.Event(), lambda _: None)


def spark_expr(text):
    from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

    return F.expr(text)


@pytest.mark.parametrize(
    "more",
    [{"k": ["a", "b"], "v": ["x", "y"]}, {"k": [[1], [2]], "v": [3, 4]}],
    ids=["number became text", "text became list"],
)
def test_row_36_a_column_of_another_type_stops_the_query(spark, tmp_path, more):
    folder = drifting(tmp_path, **more)
    frame = spark.readStream.schema(DDL).parquet(str(folder))
    assert "01.parquet" in failure(counted(frame).to_spark(), tmp_path / "checkpoint")


def test_row_36_a_column_more_changes_nothing(spark, tmp_path):
    folder = drifting(tmp_path, k=["a", "b"], v=[3, 4], w=[5, 6])
    frame = spark.readStream.schema(DDL).parquet(str(folder))
    outputs = wp.to_spark(counted(frame), rejects=True, late=True)
    _, counts, _ = run_outputs(outputs, tmp_path / "checkpoint")
    assert counts == {**dict.fromkeys(COUNTS, 0), "kept": 4}


@pytest.mark.parametrize("kind", ["garbage", "half"])
def test_row_36_a_file_that_cannot_be_read_stops_the_query_and_is_named(spark, tmp_path, kind):
    folder = drifting(tmp_path, k=["a", "b"], v=[3, 4])
    whole = (folder / "00.parquet").read_bytes()
    content = {"garbage": b"no parquet at all" * 50, "half": whole[: len(whole) // 2]}[kind]
    (folder / "02.parquet").write_bytes(content)
    frame = spark.readStream.schema(DDL).parquet(str(folder))
    assert "02.parquet" in failure(counted(frame).to_spark(), tmp_path / "checkpoint")


def test_row_36_a_file_of_no_bytes_has_no_rows(spark, tmp_path):
    folder = drifting(tmp_path, k=["a", "b"], v=[3, 4])
    (folder / "02.parquet").write_bytes(b"")
    outputs = wp.to_spark(counted(spark.readStream.schema(DDL).parquet(str(folder))), rejects=True)
    _, counts, _ = run_outputs(outputs, tmp_path / "checkpoint")
    assert counts == {**dict.fromkeys(COUNTS, 0), "kept": 4}


def test_one_hundred_thousand_keys_take_one_call_per_bucket_and_micro_batch(spark, tmp_path):
    n, keys = 200_000, 100_000
    rng = np.random.default_rng(0)
    table = pa.table({"ts": np.sort(rng.integers(0, 60, n)), "k": rng.permutation(n) % keys})
    write_files(tmp_path / "in", table, files=2)
    stream = wp.stream(streaming(spark, tmp_path / "in"), time="ts", keys="k")
    outputs = wp.to_spark(stream.window(wp.tumbling(10)).agg(wp.count()), control=tmp_path / "control")
    first, counts, calls = run_outputs(outputs, tmp_path / "checkpoint")
    finish(tmp_path / "control")
    last, _, more = run_outputs(outputs, tmp_path / "checkpoint")
    answers = pa.concat_tables([first["query"], last["query"]])
    assert (counts["kept"], sum(answers["count"].to_pylist())) == (n, n)
    assert len(set(answers["k"].to_pylist())) == keys
    assert calls == [2, 2]
    assert more == [2]
