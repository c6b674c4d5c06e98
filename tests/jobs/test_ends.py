"""Every source and every sink of a job that needs no server of its own, for real."""

import json
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.csv
import pytest

import windowpane as wp
from tests.jobs.published import published
from tests.spark.harness import events, rows
from windowpane.jobs import load
from windowpane.jobs.job import Sink
from windowpane.jobs.run import FINISHED, INTERRUPTED, run
from windowpane.jobs.write import shaped
from windowpane.spark.session import observed_input

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

TABLE = events(n=600).select(["ts", "k", "v"])
JOB = """\
source: {{format: {source}, {where}}}
stream: {{time: ts, keys: k, null_keys: keep, delay: 2 s}}
query:
  window: tumbling(7 s)
  aggregates: ["count()", "total = sum(v)"]
sink: {{format: {sink}}}
trigger: {trigger}
checkpoint: state
"""
SCHEMA = "schema: 'ts timestamp, k string, v bigint'"


def texts(table=TABLE):
    """The rows as JSON texts."""
    return [json.dumps(row | {"ts": row["ts"].isoformat()}) for row in table.to_pylist()]


def expected():
    stream = wp.stream(schema=TABLE.schema, time="ts", keys="k", delay="2 s")
    runner = stream.window(wp.tumbling("7 s")).agg(wp.count(), total=wp.sum("v")).start()
    return runner.push(TABLE).tables["query"]


def flat(table):
    """Answers as (key, end, count, total), whatever the sink made of their window."""
    found = []
    for row in table.to_pylist():
        end = row["window_end"] if "window_end" in row else row["window"]["end"]
        end = end if isinstance(end, str) else end.isoformat()
        found.append((row["k"], end[:19].replace(" ", "T"), int(row["count"]), int(row["total"])))
    return sorted(found, key=repr)


def job_of(folder, text=JOB, **words):
    (folder / "job.yaml").write_text(text.format(**{"trigger": "available_now"} | words), "utf-8")
    return load(folder / "job.yaml")


def finished(job, spark):
    return run(job, spark, threading.Event(), lambda _: None) == FINISHED


def test_a_job_that_drains_gives_every_window(spark, tmp_path):
    (tmp_path / "in").mkdir()
    pa.csv.write_csv(TABLE, tmp_path / "in" / "rows.csv")
    where = f"path: in, options: {{header: true, nullValue: ''}}, {SCHEMA}"
    job = job_of(tmp_path, source="csv", where=where, sink="json, path: out", trigger="drain")
    assert finished(job, spark)
    whole = wp.stream(TABLE, time="ts", keys="k", delay="2 s").window(wp.tumbling("7 s"))
    every = flat(whole.agg(wp.count(), total=wp.sum("v")).run().table)
    assert flat(published(tmp_path / "out", "json")) == every
    assert len(every) > len(flat(expected()))


def test_from_csv_files_to_json_files(spark, tmp_path):
    (tmp_path / "in").mkdir()
    pa.csv.write_csv(TABLE, tmp_path / "in" / "rows.csv")
    where = f"path: in, options: {{header: true, nullValue: ''}}, {SCHEMA}"
    assert finished(job_of(tmp_path, source="csv", where=where, sink="json, path: out"), spark)
    assert flat(published(tmp_path / "out", "json")) == flat(expected())
    written = [file.read_text() for file in (tmp_path / "out").rglob("*.json")]
    assert any('"k":null' in text for text in written)


def test_from_json_files_to_csv_files(spark, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.json").write_text("\n".join(texts()), "utf-8")
    sink = "csv, path: out, options: {header: true}"
    assert finished(job_of(tmp_path, source="json", where=f"path: in, {SCHEMA}", sink=sink), spark)
    assert flat(published(tmp_path / "out", "csv")) == flat(expected())


def test_from_a_socket_to_memory(spark, tmp_path):
    server = socket.create_server(("127.0.0.1", 0))
    bad = ["no JSON", json.dumps(TABLE.slice(0, 1).to_pylist()[0] | {"ts": "2024-01-01T00:00:00", "v": "x"})]
    lines = "".join(f"{text}\n" for text in [*texts(), *bad]).encode()
    stop, told = threading.Event(), []

    def serve():
        connection, _ = server.accept()
        with connection:
            connection.sendall(lines)
            stop.wait(300)

    def report(progress):
        told.extend(progress)
        if sum(p.rows for p in {p.batch: p for p in told}.values()) == len(TABLE) + 2:
            stop.set()

    where = f"options: {{host: 127.0.0.1, port: {server.getsockname()[1]}}}, {SCHEMA}"
    text = JOB.replace("checkpoint: state\n", "")  # a socket cannot give its rows again
    job = job_of(
        tmp_path, text, source="socket", where=where, sink="memory", trigger="{processing_time: 100 ms}"
    )
    threading.Thread(target=serve, daemon=True).start()
    assert run(job, spark, stop, report) == INTERRUPTED
    server.close()
    assert rows(spark.table("query").toArrow()) == rows(expected())
    assert (told[-1].late, told[-1].rejected) == (0, 2)


def test_from_any_source_of_spark_to_the_console(spark, tmp_path, capsys):
    where = (
        "options: {rowsPerBatch: 100, numPartitions: 1, startTimestamp: 0, advanceMillisPerBatch: 5000}, "
        "select: [timestamp as ts, string(value % 2) as k, value as v]"
    )
    stop = threading.Event()
    job = job_of(
        tmp_path,
        source="rate-micro-batch",
        where=where,
        sink="console, rows: 1",
        trigger="{processing_time: 10 ms}",
    )
    reported = []

    def report(progress):
        reported.extend(progress)
        if progress[0].batch >= 3:
            stop.set()

    assert run(job, spark, stop, report) == INTERRUPTED
    shown = capsys.readouterr().out
    assert "query, batch" in shown
    assert "1970-01-01 00:00:07" in shown
    assert "and 1 more rows" in shown
    assert max(p.lag for p in reported if p.lag) == "2.0 s"


def test_the_example_of_rows_by_the_clock_runs(spark, tmp_path, capsys):
    example = Path(__file__).parents[2] / "examples" / "jobs" / "rate.yaml"
    (tmp_path / "job.yaml").write_text(example.read_text("utf-8").replace("1 s}", "100 ms}"), "utf-8")
    stop, reported = threading.Event(), []

    def report(progress):
        reported.extend(progress)
        if any(p.answers for p in reported):
            stop.set()

    assert run(load(tmp_path / "job.yaml"), spark, stop, report) == INTERRUPTED
    assert "largest" in capsys.readouterr().out
    assert reported[-1].rejected == 0


@pytest.mark.parametrize(
    ("form", "columns"), [("csv", ["k`", "window_start", "window_end"]), ("kafka", ["key", "value"])]
)
def test_a_name_with_a_backtick_is_a_name(spark, form, columns):
    query = SimpleNamespace(sink=Sink(form))
    time = "timestamp_micros(id)"
    frame = spark.range(1).selectExpr("id as `k```", f"struct({time} as start, {time} as end) as window")
    assert shaped(query, frame).columns == columns
    assert observed_input(frame.withColumnRenamed("k`", "t`"), "t`").columns == ["t`", "window"]
