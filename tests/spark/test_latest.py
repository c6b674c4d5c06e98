"""Update queues on Spark itself: files as micro-batches, a function that takes a few rows of each."""

import os
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkAttributeError, StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

import windowpane as wp
from windowpane.spark import counts_of, finish, latest, stalest_of
from windowpane.spark.budget import buckets_together, parallel_tasks
from windowpane.spark.run import bucket_labels

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
KEYS, FILES, ROWS = 60, 3, 240
SCHEMA = "key string, number bigint"


def events():
    """Rows whose times are out of order within a key and over files, with some that have no place."""
    rng = np.random.default_rng(3)
    n = FILES * ROWS
    time = 1_700_000_000_000_000 + np.arange(n) * 1_000 + rng.integers(-200_000, 200_000, n)
    far = rng.random(n) < 0.01
    time[far] += 10 * 365 * 86_400 * 1_000_000  # ten years ahead
    null = (rng.random(n) < 0.01) & ~far
    return pa.table(
        {
            "ts": pa.array(time, pa.timestamp("us", "UTC"), mask=null),
            "a.key": rng.integers(0, KEYS, n).astype(str),
            "number": time,
            "far": far,
        }
    )


def write(folder, table):
    folder.mkdir()
    for i in range(FILES):
        file = folder / f"{i}.parquet"
        pq.write_table(table.slice(i * ROWS, ROWS), file)
        os.utime(file, (1_700_000_000 + i, 1_700_000_000 + i))


def plain(frame):
    return frame.rename(columns={"a.key": "key"})[["key", "number"]]


class Run:
    """The queues over the files that are there, on one checkpoint; what each gave, in order."""

    def __init__(self, spark, tmp_path, function=plain):
        self.spark, self.path, self.function = spark, tmp_path, function
        self.found, self.progress, self.stale = {"newest": [], "every": []}, [], []

    def outputs(self):
        schema = self.spark.read.parquet(str(self.path / "in")).schema
        files = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        stream = wp.stream(files.parquet(str(self.path / "in")), time="ts", keys="a.key")
        # The first call is for one key whatever the budget, so that most keys wait.
        newest = stream.latest(budget="1 us").apply(self.function, SCHEMA, name="newest")
        every = stream.latest(policy="append", budget="1 us").apply(self.function, SCHEMA, name="every")
        return wp.to_spark(newest, every, control=self.path / "control")

    def go(self):
        outputs = self.outputs()

        def note(name, rows, number):
            given = [row.asDict() for row in rows.collect()]
            if name in self.found:
                self.found[name].extend((number, row["key"], row["number"]) for row in given)
            else:
                self.stale.extend(given)

        writer = outputs.frame.writeStream.foreachBatch(outputs.foreach(note))
        query = writer.option("checkpointLocation", str(self.path / "checkpoint"))
        running = query.trigger(availableNow=True).start()
        running.awaitTermination()
        self.stalest = [stalest_of(progress) for progress in running.recentProgress]
        own = [counts_of(progress) for progress in running.recentProgress]
        self.progress += [counts for counts in own if counts.get("updates") is not None]
        return self

    def total(self, name):
        return sum(counts[name] for counts in self.progress)


def test_queues_side_by_side_keep_what_waits_over_a_restart_and_serve_it_in_the_end(spark, tmp_path):
    table = events()
    write(tmp_path / "in", table)
    placed = table.filter(pa.array([t is not None for t in table["ts"].to_pylist()]))
    good = placed.filter(pa.array([not far for far in placed["far"].to_pylist()])).to_pylist()
    run = Run(spark, tmp_path).go()
    # Every row was counted, by each of the two queues; little was served.
    assert run.total("updates") == 2 * len(good)
    assert run.total("null_time") == ROWS * FILES - placed.num_rows > 0
    assert run.total("too_far_ahead") == placed.num_rows - len(good) > 0
    waits = run.progress[-1]["waiting"]
    assert waits > KEYS
    ends = run.total("served") + run.total("lost") + run.total("outdated")
    assert ends + waits == 2 * len(good)
    assert len(run.found["newest"]) < KEYS * FILES
    # The stalest keys are told in the progress, and all that wait in the output.
    told = run.stalest[-1]
    assert len(told) == 10
    assert [row["seconds"] for row in told] == sorted((row["seconds"] for row in told), reverse=True)
    assert {row["queue"] for row in told} <= {"newest", "every"}
    stale = {row["a.key"] for row in run.stale if row["stale_for"] > 0}
    assert {row["key"]["a.key"] for row in told} <= stale
    assert stale == {row["a.key"] for row in good}
    # A restart goes on with what waits; at the end all of it is served.
    finish(tmp_path / "control")
    run.go()
    assert run.progress[-1]["waiting"] == 0
    assert run.stalest[-1] == []
    assert run.total("updates") == 2 * len(good)
    last, newest = {}, {}
    for _, key, number in run.found["newest"]:
        assert number >= last.get(key, number), key  # never older than the result before it
        last[key] = number
    for row in good:
        newest[row["a.key"]] = max(newest.get(row["a.key"], 0), row["number"])
    assert last == newest
    assert sorted((key, number) for _, key, number in run.found["every"]) == sorted(
        (row["a.key"], row["number"]) for row in good
    )
    assert {row["a.key"] for row in run.stale} == set(newest)
    assert all(row["application_staleness"] >= row["queue_staleness"] >= 0 for row in run.stale)


def test_all_outputs_written_through_foreach_call_the_function_once_for_each_row_served(spark, tmp_path):
    write(tmp_path / "in", events())
    calls = tmp_path / "calls"
    calls.mkdir()

    def noted(frame):
        given = plain(frame)
        pq.write_table(pa.Table.from_pandas(given), calls / uuid.uuid4().hex)  # workers share no memory
        return given

    run = Run(spark, tmp_path, noted).go()  # an action for each of the four outputs
    finish(tmp_path / "control")
    run.go()
    called = [
        (row["key"], row["number"]) for file in calls.iterdir() for row in pq.read_table(file).to_pylist()
    ]
    delivered = [(key, number) for found in run.found.values() for _, key, number in found]
    assert len(called) == run.total("served") > KEYS
    assert sorted(called) == sorted(delivered)


def test_a_static_frame_gives_the_newest_row_of_each_key(spark, tmp_path):
    table = events()
    write(tmp_path / "in", table)
    stream = wp.stream(spark.read.parquet(str(tmp_path / "in")), time="ts", keys="a.key", max_ahead=None)
    rows = stream.latest(budget="1 us").apply(plain, SCHEMA).to_spark().collect()
    newest = {}
    for row in table.to_pylist():
        if row["ts"] is not None:
            newest[row["a.key"]] = max(newest.get(row["a.key"], 0), row["number"])
    assert {row["key"]: row["number"] for row in rows} == newest
    assert len(rows) == len(newest)
    whole = stream.latest().apply(lambda frame: frame).to_spark()  # the columns are those of the stream
    assert whole.columns == table.column_names
    assert {row["a.key"]: row["number"] for row in whole.collect()} == newest


def test_tasks_that_run_at_once_are_counted_with_a_spark_context_and_without(spark):
    class Connected:
        """A session over Spark Connect has no context."""

        range = spark.range

        @property
        def sparkContext(self):  # noqa: N802 - Spark's name
            raise PySparkAttributeError("there is none")

    assert parallel_tasks(spark) == parallel_tasks(Connected()) == 2


def test_the_budget_is_that_of_the_micro_batch(spark, tmp_path, monkeypatch):
    write(tmp_path / "in", events())
    stream = wp.stream(spark.read.parquet(str(tmp_path / "in")), time="ts", keys="a.key")
    given = []
    monkeypatch.setattr(
        latest, "_whole", lambda _, specs: given.extend(s.budget for s in specs) or (lambda f: f)
    )
    queues = [stream.latest(budget="800 ms").apply(plain, SCHEMA, name=name) for name in "ab"]
    wp.to_spark(queues[0], buckets=2)
    wp.to_spark(queues[0], buckets=200)
    wp.to_spark(*queues, buckets=3)
    # Three buckets fall into one of the two shuffle partitions, so that one task has them all.
    assert buckets_together(spark, bucket_labels(spark, 3), 2) == (3,)
    assert given == [0.8, 0.008, 0.8 / 6, 0.8 / 6]


def test_buckets_that_fall_into_one_shuffle_partition_are_found(spark):
    for partitions in (2, 3, 7):
        for count in (2, 5, 7):
            labels = bucket_labels(spark, count)
            frame = spark.createDataFrame([(label,) for label in labels], "bucket int")
            placed = frame.repartition(partitions, "bucket").select(F.spark_partition_id().alias("at"))
            met = placed.groupBy("at").count().orderBy("at").collect()
            assert buckets_together(spark, labels, partitions) == tuple(row["count"] for row in met)


def test_a_restart_with_another_time_column_is_refused_and_ties_count_on_spark(spark, tmp_path):
    rows = [{"ts": 5, "other": 1, "key": "a", "number": n} for n in (7, 9, 8)]
    kinds = pa.schema([(name, pa.int64()) for name in ("ts", "other")])
    kinds = kinds.append(pa.field("key", pa.string())).append(pa.field("number", pa.int64()))
    (tmp_path / "in").mkdir()

    def delivered(file, time, **changed):
        pq.write_table(pa.Table.from_pylist([row | changed for row in rows], kinds), tmp_path / "in" / file)
        files = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema)
        stream = wp.stream(files.parquet(str(tmp_path / "in")), time=time, keys="key", ties="number")
        found = []
        frame = stream.latest().apply(lambda given: given[["key", "number"]], SCHEMA).to_spark()
        writer = frame.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
        run = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        run.start().awaitTermination()
        return [(row.key, row.number) for row in found]

    assert delivered("0.parquet", "ts") == [("a", 9)]
    with pytest.raises(StreamingQueryException, match="time of the stream was ts, is now other"):
        delivered("1.parquet", "other", key="b")
    assert ("b", 9) in delivered("2.parquet", "ts", key="c")  # what came then is not lost


class Model:
    """Larger than what Spark sends along with a stateful query; it notes where it is loaded."""

    def __init__(self, folder):
        self.folder, self.weights = folder, np.ones(1 << 18)

    def __setstate__(self, state):
        vars(self).update(state)
        (self.folder / uuid.uuid4().hex).write_text(str(os.getpid()))


def test_a_function_may_carry_a_large_model_which_each_worker_loads_once(spark, tmp_path):
    write(tmp_path / "in", events())
    loads = tmp_path / "loads"
    loads.mkdir()
    model, one = Model(loads), spark.sparkContext.broadcast(1)

    def scored(frame):
        frame["number"] *= int(model.weights[0]) * one.value
        return plain(frame)

    run = Run(spark, tmp_path, scored).go()
    assert run.total("served") > 0
    workers = [file.read_text() for file in loads.iterdir()]
    assert len(workers) <= 2 * len(set(workers))  # for each of the two queues
