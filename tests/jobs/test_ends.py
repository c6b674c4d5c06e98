"""Every source and every sink of a job that needs no server of its own, for real."""

import json
import socket
import threading

import pyarrow as pa
import pyarrow.csv
import pytest

import windowpane as wp
from tests.jobs.published import published
from tests.spark.harness import events, rows
from windowpane.jobs import load
from windowpane.jobs.run import FINISHED, INTERRUPTED, run

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

TABLE = events(n=600).select(["ts", "k", "v"])
JOB = """\
source: {{format: {source}, {where}}}
stream: {{time: ts, keys: k, delay: 2 s}}
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


def job_of(folder, **words):
    (folder / "job.yaml").write_text(JOB.format(**{"trigger": "available_now"} | words), "utf-8")
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
    lines = "".join(f"{text}\n" for text in [*texts(), "no JSON"]).encode()
    stop, told = threading.Event(), []

    def serve():
        connection, _ = server.accept()
        with connection:
            connection.sendall(lines)
            stop.wait(300)

    def report(progress):
        told.extend(progress)
        if sum(p.rows for p in {p.batch: p for p in told}.values()) == len(TABLE) + 1:
            stop.set()

    where = f"options: {{host: 127.0.0.1, port: {server.getsockname()[1]}}}, {SCHEMA}"
    job = job_of(tmp_path, source="socket", where=where, sink="memory", trigger="{processing_time: 100 ms}")
    job = job.__class__(**{**vars(job), "checkpoint": None})  # a socket cannot give its rows again
    threading.Thread(target=serve, daemon=True).start()
    assert run(job, spark, stop, report) == INTERRUPTED
    server.close()
    assert rows(spark.table("query").toArrow()) == rows(expected())
    assert (told[-1].late, told[-1].rejected) == (0, 1)


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
