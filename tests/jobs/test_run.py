"""Jobs on Spark: from files into SQLite and parquet, and what is said where they cannot run."""

import re
import sqlite3
import threading

import pytest

from tests.jobs.published import published
from tests.spark.harness import build, events, rows, write_files
from windowpane.jobs import BadJob, load
from windowpane.jobs.rows import Opened

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

QUERY = """\
    window: tumbling(7 s)
    aggregates: [count(), total = sum(v)]
"""
JOB = """\
source: {format: parquet, path: in, options: {maxFilesPerTrigger: 1}}
stream: {time: ts, keys: k, null_keys: keep, delay: 2 s}
queries:
  - name: files
    window: tumbling(7 s)
    aggregates: [count(), total = sum(v)]
    sink: {format: parquet, path: out}
  - name: rows
    window: tumbling(7 s)
    aggregates: [count(), total = sum(v)]
    sink: {format: sqlite, path: out.db, table: answers}
checkpoint: state
"""


def written(tmp_path):
    """The rows of both sinks: (key, start of the window, count, total)."""
    with sqlite3.connect(tmp_path / "out.db") as connection:
        return connection.execute("SELECT k, window_start, count, total FROM answers").fetchall()


def test_a_job_fills_sqlite_and_parquet_and_goes_on_from_its_checkpoint(spark, tmp_path):
    import windowpane as wp
    from windowpane.jobs.run import FINISHED, run

    parts = write_files(tmp_path / "in", events(), files=4)
    late = [tmp_path / "in" / f"{i:02d}.parquet" for i in (2, 3)]
    for file in late:
        file.rename(tmp_path / file.name)
    (tmp_path / "job.yaml").write_text(JOB + "trigger: available_now\n", "utf-8")
    job = load(tmp_path / "job.yaml")
    reported = []
    assert run(job, spark, threading.Event(), reported.append) == FINISHED
    for file in late:
        (tmp_path / file.name).rename(file)
    assert run(job, spark, threading.Event(), reported.append) == FINISHED

    runner = build(None, wp.tumbling("7 s"), (wp.count(), wp.sum("v").named("total"))).start()
    expected = sorted(row for part in parts for row in rows(runner.push(part).tables["query"]))
    assert rows(published(tmp_path / "out")) == expected
    assert len(written(tmp_path)) == len(expected)
    assert {p.query for progress in reported for p in progress} == {"files", "rows"}
    assert max(p.rows for progress in reported for p in progress) == 600


def test_a_job_fills_postgresql_and_goes_on_from_its_checkpoint(spark, tmp_path, postgres):
    import psycopg

    import windowpane as wp
    from windowpane.jobs.run import FINISHED, run

    parts = write_files(tmp_path / "in", events(), files=2)
    second = tmp_path / "in" / "01.parquet"
    second.rename(tmp_path / "01.parquet")
    sink = f"sink: {{format: postgresql, url: {postgres}, table: from_job}}"
    text = re.sub(r"  - name: files(.|\n)*sink: .*", f"  - name: rows\n{QUERY}    {sink}", JOB)
    (tmp_path / "job.yaml").write_text(text + "trigger: available_now\n", "utf-8")
    job = load(tmp_path / "job.yaml")
    assert run(job, spark, threading.Event(), lambda _: None) == FINISHED
    (tmp_path / "01.parquet").rename(second)
    assert run(job, spark, threading.Event(), lambda _: None) == FINISHED

    runner = build(None, wp.tumbling("7 s"), (wp.count(), wp.sum("v").named("total"))).start()
    tables = [runner.push(part).tables["query"] for part in parts]
    expected = [(r["k"], r["window"]["start"], r["count"], r["total"]) for t in tables for r in t.to_pylist()]
    with psycopg.connect(postgres) as connection:
        found = connection.execute("SELECT k, window_start, count, total FROM from_job").fetchall()
    assert len(found) == len(expected)
    assert set(found) == set(expected)


def test_available_now_and_drain_take_turns_on_one_checkpoint(spark, tmp_path):
    import windowpane as wp
    from windowpane.jobs.run import FINISHED, run

    write_files(tmp_path / "in", events(), files=2)
    text = re.sub(r"  - name: rows(.|\n)*sink: .*\n", "", JOB)
    for trigger in ("available_now", "drain", "available_now"):
        (tmp_path / "job.yaml").write_text(text + f"trigger: {trigger}\n", "utf-8")
        assert run(load(tmp_path / "job.yaml"), spark, threading.Event(), lambda _: None) == FINISHED
    whole = build(events(), wp.tumbling("7 s"), (wp.count(), wp.sum("v").named("total"))).run().table
    assert rows(published(tmp_path / "out")) == rows(whole)


def test_a_batch_job_closes_every_window(spark, tmp_path):
    import windowpane as wp
    from windowpane.jobs.run import FINISHED, run

    write_files(tmp_path / "in", events(), files=2)
    text = JOB.replace("checkpoint: state\n", "trigger: batch\n")
    (tmp_path / "job.yaml").write_text(text, "utf-8")
    told = []
    assert run(load(tmp_path / "job.yaml"), spark, threading.Event(), told.append) == FINISHED
    whole = build(events(), wp.tumbling("7 s"), (wp.count(), wp.sum("v").named("total"))).run().table
    assert rows(published(tmp_path / "out")) == rows(whole)
    assert len(written(tmp_path)) == whole.num_rows
    assert [(p.query, p.rows, p.answers, p.rejected) for p in told[-1]] == [
        (name, 2400, whole.num_rows, 0) for name in ("files", "rows")
    ]


def test_errors_of_spark_and_the_sink_are_told_with_their_line(spark, tmp_path):
    from windowpane.jobs.run import run

    write_files(tmp_path / "in", events(), files=1)
    with sqlite3.connect(tmp_path / "out.db") as connection:
        connection.execute("CREATE TABLE answers (x)")
    cases = {
        (1, "nonsense"): JOB.replace("format: parquet, path: in", "format: nonsense, path: in"),
        (1, "nothing"): JOB.replace("path: in,", "path: in, where: nothing > 1,"),
        (11, "the table 'answers' has the columns x"): JOB + "trigger: available_now\n",
    }
    for (line, words), text in cases.items():
        (tmp_path / "job.yaml").write_text(text, "utf-8")
        with pytest.raises(BadJob, match=rf"job\.yaml:{line}: (?s:.*){words}"):
            run(load(tmp_path / "job.yaml"), spark, threading.Event(), lambda _: None)


class Slow:
    """A streaming query that Spark gives up twice, as on a busy machine; then it goes on to its end."""

    name, lastProgress, isActive = "files", None, False  # noqa: N815 - as Spark calls it

    def __init__(self, error):
        self._error = error

    def exception(self):
        return self._error

    def stop(self):
        pass


@pytest.mark.parametrize(("words", "starts"), [("Python worker failed to connect back.", 3), ("oh no", 1)])
def test_a_query_whose_worker_was_slow_to_start_is_started_again(tmp_path, monkeypatch, words, starts):
    from windowpane.jobs import run as running

    (tmp_path / "in").mkdir()
    (tmp_path / "job.yaml").write_text(JOB + "trigger: available_now\n", "utf-8")
    job = load(tmp_path / "job.yaml")
    left = [Slow(RuntimeError(words)), Slow(RuntimeError(words)), Slow(None)]
    monkeypatch.setattr(running, "start", lambda *_: left.pop(0))
    monkeypatch.setattr(running, "source_of", lambda *_: Opened(None))
    monkeypatch.setattr(running, "answers", lambda *_: [(job.queries[0], None)])
    if starts == 1:
        with pytest.raises(running.JobFailed, match="query 'files': oh no"):
            running.run(job, None, threading.Event(), lambda _: None)
    else:
        assert running.run(job, None, threading.Event(), lambda _: None) == running.FINISHED
    assert len(left) == 3 - starts


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (sqlite3.OperationalError("database is locked"), "database is locked"),
        (OSError(28, "No space left on device", "/full"), "No space left on device: '/full'"),
    ],
)
def test_a_sink_of_a_batch_job_that_fails_is_told_in_a_line(tmp_path, monkeypatch, error, told):
    """It ended with a traceback; a streaming job's errors come through Spark."""
    from windowpane.jobs import run as running

    def fail(*_):
        raise error

    (tmp_path / "in").mkdir()
    (tmp_path / "job.yaml").write_text(JOB.replace("checkpoint: state", "trigger: batch"), "utf-8")
    job = load(tmp_path / "job.yaml")
    monkeypatch.setattr(running, "source_of", lambda *_: Opened(None))
    monkeypatch.setattr(running, "wholes", lambda *_: [(job.queries[0], None)])
    monkeypatch.setattr(running, "_batch", fail)
    with pytest.raises(running.JobFailed, match=re.escape(told)) as failed:
        running.run(job, None, threading.Event(), lambda _: None)
    assert "\n" not in str(failed.value)
