"""Late rows and rejects of jobs: where they may go, and that they come out exactly once."""

import re
import sqlite3
import threading

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.jobs.published import published
from tests.spark.harness import events, rows, write_files
from windowpane.cli.run import _look
from windowpane.jobs import BadJob, load
from windowpane.jobs import files as publishing
from windowpane.jobs.job import Sink
from windowpane.jobs.record import Record, write_record
from windowpane.jobs.run import FINISHED, JobFailed, run
from windowpane.jobs.several import _need_columns

pytestmark = pytest.mark.filterwarnings("ignore")

JOB = """\
source: {format: parquet, path: in, options: {maxFilesPerTrigger: 1}}
stream: {time: ts, keys: k, null_keys: keep, delay: 2 s}
query:
  window: tumbling(7 s)
  aggregates: [count(), total = sum(v)]
sink: {format: parquet, path: out}
late: {format: parquet, path: late}
rejects: {format: json, path: rejects}
checkpoint: state
trigger: available_now
"""
SECOND = 1_000_000


def strayed():
    """Rows of which one is late in the third of four files, one in the last, and two have no time."""
    table = events()
    stamps = table["ts"].cast(pa.int64()).to_numpy().copy()
    stamps[[1500, 2300]] -= 50 * SECOND
    null = np.isin(np.arange(len(table)), [7, 1300])
    return table.set_column(0, "ts", pa.array(stamps, mask=null).cast(pa.timestamp("us", "UTC")))


def write(folder, text=JOB, old="", new=""):
    assert old in text
    (folder / "job.yaml").write_text(text.replace(old, new), "utf-8")
    return load(folder / "job.yaml")


def told(job, spark):
    """What a job told of its one query in the end."""
    found = []
    assert run(job, spark, threading.Event(), found.extend) == FINISHED
    return found


def expected(parts, keys="k"):
    stream = wp.stream(schema=events(n=2).schema, time="ts", keys=keys, delay="2 s")
    runner = stream.window(wp.tumbling("7 s")).agg(wp.count(), total=wp.sum("v")).start()
    return sorted(row for part in parts for row in rows(runner.push(part).tables["query"]))


def without_strays(text=JOB):
    return re.sub(r"(late|rejects): .*\n", "", text)


@pytest.mark.parametrize("keys", ["k", "[]"])
def test_late_rows_and_rejects_are_written_and_may_be_added_and_left_out_by_a_restart(spark, tmp_path, keys):
    """State does not depend on them; of the first two files they are not there, and of the last neither."""
    table = strayed()
    parts = write_files(tmp_path / "in", table)
    waiting = [tmp_path / "in" / f"{i:02d}.parquet" for i in (2, 3)]
    for file in waiting:
        file.rename(tmp_path / file.name)
    plain, whole = (text.replace("keys: k,", f"keys: {keys},") for text in (without_strays(), JOB))
    found = told(write(tmp_path, plain), spark)
    for text, file in zip((whole, plain), waiting, strict=True):
        (tmp_path / file.name).rename(file)
        found += told(write(tmp_path, text), spark)
    assert rows(published(tmp_path / "out")) == expected(parts, () if keys == "[]" else keys)
    assert rows(published(tmp_path / "late")) == rows(table.slice(1500, 1))
    assert [row["reason"] for row in published(tmp_path / "rejects", "json").to_pylist()] == ["null time"]
    assert [(p.late, p.rejected) for p in found if p.batch == 2][-1:] == [(1, 1)]


def test_the_progress_is_that_of_a_job_without_them(spark, tmp_path):
    table = strayed()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_files(tmp_path / name / "in", table)
    plain = told(write(tmp_path / "one", without_strays()), spark)
    whole = told(write(tmp_path / "other"), spark)
    last = [{p.batch: p for p in found}[3] for found in (plain, whole)]
    assert last[0].late == 2
    assert last[0].rejected == 2
    for name in ("answers", "newest", "lag", "late", "rejected"):
        assert getattr(last[0], name) == getattr(last[1], name) is not None, name
    assert rows(published(tmp_path / "other" / "late")) == rows(table.take([1500, 2300]))
    rejects = published(tmp_path / "other" / "rejects", "json").to_pylist()
    assert [(row["ts"], row["v"], row["reason"]) for row in rejects] == [
        (None, table["v"][i].as_py(), "null time") for i in (7, 1300)
    ]


@pytest.mark.parametrize("sink", ["{format: parquet, path: out}", "{format: sqlite, path: out.db}"])
def test_a_micro_batch_that_is_cut_off_or_repeated_adds_nothing_to_any_output(
    spark, tmp_path, monkeypatch, sink
):
    """It ends after its answers are published and before its late rows are; later its commit is lost."""
    parts = write_files(tmp_path / "in", strayed())
    job = write(tmp_path, JOB, "{format: parquet, path: out}", sink)
    taken, publish = [], publishing.Publisher.write

    def cut(self, frame, number, owner):
        taken.append((self.path.name, number))
        if taken.count(("late", 3)) == 1 and taken[-1] == ("late", 3):
            raise OSError(28, "No space left on device")
        publish(self, frame, number, owner)

    monkeypatch.setattr(publishing.Publisher, "write", cut)
    with pytest.raises(JobFailed, match="No space left on device"):
        run(job, spark, threading.Event(), lambda _: None)
    late = [str(row) for row in published(tmp_path / "late").to_pylist()]
    assert len(late) == 1
    assert run(job, spark, threading.Event(), lambda _: None) == FINISHED
    once = state_of(tmp_path)
    assert once["answers"] == len(expected(parts))
    assert (once["late"], once["rejects"]) == (2, 2)
    for file in (tmp_path / "state" / "query" / "commits").glob("*3*"):
        file.unlink()
    before = len(taken)
    assert run(job, spark, threading.Event(), lambda _: None) == FINISHED
    assert ("rejects", 3) in taken[before:]  # it was repeated
    assert state_of(tmp_path) == once


def state_of(folder):
    """How many rows each output has."""
    if (folder / "out.db").exists():
        with sqlite3.connect(folder / "out.db") as connection:
            ((answers,),) = connection.execute("SELECT count(*) FROM query").fetchall()
    else:
        answers = len(published(folder / "out"))
    late, rejects = published(folder / "late"), published(folder / "rejects", "json")
    return {"answers": answers, "late": len(late), "rejects": len(rejects)}


def test_each_of_several_queries_of_a_batch_job_has_its_own(spark, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    lines = ['{"ts": 1, "k": "a", "v": 1}', '{"ts": 2, "k": null, "v": 1}', '{"ts": 3}', '{"v": 5}']
    (tmp_path / "in" / "a.json").write_text("\n".join(lines), "utf-8")
    text = """\
source: {format: json, path: in, schema: "ts bigint, k string, v bigint"}
stream: {time: ts, keys: k}
queries:
  - {name: by_k, window: tumbling(10), aggregates: [count(), sum(v)]}
  - {name: all, window: tumbling(10), aggregates: count(), keys: []}
sink: {format: json, path: out}
rejects: {format: json, path: rejects}
late: {format: console}
trigger: batch
"""
    job = write(tmp_path, text)
    assert told(job, spark)[-1].rejected == 2
    tables = {name: published(tmp_path / "rejects" / name, "json").to_pylist() for name in ("by_k", "all")}
    found = {name: sorted((row["reason"], row["_record"]) for row in table) for name, table in tables.items()}
    assert found["all"] == [("malformed", lines[2]), ("null time", lines[3])]
    assert found["by_k"] == [("malformed", lines[2]), ("null k", None), ("null time", lines[3])]
    names = published(tmp_path / "rejects" / "all", "json").schema.names
    assert names == ["ts", "k", "v", "_record", "reason"]
    assert "late rows" not in capsys.readouterr().out  # a batch job has none


def test_late_rows_may_be_printed(spark, tmp_path, capsys):
    write_files(tmp_path / "in", strayed())
    text = JOB.replace("late: {format: parquet, path: late}", "late: {format: console}")
    text = text.replace("sink: {format: parquet, path: out}", "sink: {format: console, rows: 1}")
    assert told(write(tmp_path, text), spark)[-1].late == 2
    shown = capsys.readouterr().out
    assert "query: late rows, batch 2" in shown
    assert "query, batch 3" in shown


def test_such_a_job_can_be_checked_and_explained(spark, tmp_path, capsys):
    write_files(tmp_path / "in", strayed(), files=1)
    for explain, told_ in [(False, "the job is sound"), (True, "tumbling")]:
        assert _look(write(tmp_path), spark, tmp_path / "job.yaml", explain=explain) == 0
        assert told_ in capsys.readouterr().out
    assert not (tmp_path / "late").exists()


def test_a_column_that_the_rejects_have_themselves_is_told_with_the_line(spark, tmp_path):
    table = events(n=10).rename_columns(["ts", "k", "v", "x", "reason"])
    write_files(tmp_path / "in", table, files=1)
    with pytest.raises(BadJob, match=r"job\.yaml:8: .*the rejects have a column 'reason' of the source"):
        run(write(tmp_path), spark, threading.Event(), lambda _: None)
    text = JOB.replace("path: in,", "path: in, select: [ts, k, v, reason as why],")
    assert told(write(tmp_path, text), spark)[-1].rejected == 0


WRONG = [
    ("{format: parquet, path: late}", "{format: kafka}", 7, "late.format: late rows go to files or to the"),
    (
        "{format: json, path: rejects}",
        "{format: sqlite, path: a}",
        8,
        "not to sqlite. Write one of: parquet, csv",
    ),
    ("path: late", "path: s3://bucket/late", 7, "late.path: late rows need a local or mounted path"),
    ("path: late", "table: late", 7, "late.table: there is no such key here."),
    (
        "path: late",
        "path: out",
        7,
        "/out' is for the late rows of a query, but answers of the job go there too.",
    ),
    ("path: rejects", "path: out/../late/", 8, "is for the rejects of a query, but late rows of the job"),
    ("path: late", "path: out/late", 7, "a place of its own, not within that of another."),
    ("query:\n", "query:\n  name: late\n", 3, "the query has the name of the output 'late'. Name it anew."),
    (
        "{format: parquet, path: out}\nl",
        "{format: delta, path: out}\nl",
        6,
        "Spark writes the sink delta by itself",
    ),
    (
        "{format: parquet, path: out}\nl",
        "{format: parquet, path: s3://b/a}\nl",
        6,
        "Use files on a local path",
    ),
    ("checkpoint: state\n", "", 1, "the sink parquet outlives the job"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), WRONG, ids=[w[3] for w in WRONG])
def test_a_wrong_place_is_told_with_the_line_and_the_remedy(tmp_path, old, new, line, message):
    (tmp_path / "in").mkdir()
    with pytest.raises(BadJob, match=rf"job\.yaml:{line}: .*{re.escape(message)}"):
        write(tmp_path, JOB, old, new)


def test_what_prints_its_answers_needs_a_checkpoint_for_files_of_late_rows(tmp_path):
    (tmp_path / "in").mkdir()
    text = JOB.replace("checkpoint: state\n", "").replace("{format: parquet, path: out}", "{format: console}")
    with pytest.raises(BadJob, match="'checkpoint' is missing, but the sink parquet outlives"):
        write(tmp_path, text)
    text = re.sub(r"(late|rejects): .*", r"\1: {format: console}", text)
    assert write(tmp_path, text).checkpoint is None


def test_two_queries_do_not_write_to_one_place(tmp_path):
    (tmp_path / "in").mkdir()
    query = "{name: NAME, window: tumbling(1 s), aggregates: count(), sink: SINK}"
    for one, other, told_ in [
        ("{format: parquet, path: out}", "{format: json, path: ./out}", "/out' is for the answers"),
        (*["{format: sqlite, path: a.db, table: t}"] * 2, "the table 't' is for the answers"),
    ]:
        both = [
            query.replace("NAME", name).replace("SINK", sink) for name, sink in (("a", one), ("b", other))
        ]
        text = re.sub(r"query:\n(  .*\n)+sink.*\n", f"queries: [{', '.join(both)}]\n", JOB)
        with pytest.raises(BadJob, match=rf"job\.yaml:3: .*{told_}"):
            write(tmp_path, text)
        write(tmp_path, text.replace("./out", "other").replace("t}}]", "u}}]"))


def test_columns_that_a_sink_cannot_take_are_told():
    for names, form, told_ in [
        ("batch", "parquet", "the late rows have a column 'batch' of the source, as the sink has itself"),
        ("reason Reason", "json", "have a column 'reason' of the source"),
    ]:
        schema = pa.schema([(name, pa.int64()) for name in names.split()])
        with pytest.raises(wp.errors.BadQuery, match=told_):
            _need_columns("late", Sink(form), schema)
    nested = pa.schema([("box", pa.struct([("a", pa.int64())]))])
    _need_columns("late", Sink("json"), nested)
    with pytest.raises(wp.errors.BadQuery, match="'box' that holds several values, which CSV cannot"):
        _need_columns("late", Sink("csv"), nested)
    with pytest.raises(wp.errors.UnknownColumn, match=r"what goes to late has no column 'bax'.*'box'"):
        _need_columns("late", Sink("json", partition_by=("bax",)), nested)


def test_sinks_that_cannot_take_late_rows_or_rejects_are_told_before_answers_are_out(spark, tmp_path):
    write_files(tmp_path / "in", strayed())
    batch = JOB.replace("checkpoint: state\ntrigger: available_now", "trigger: batch")
    for text in (JOB, batch):
        job = write(tmp_path, text, "path: rejects}", "path: rejects, partition_by: nope}")
        with pytest.raises(BadJob, match=r"job\.yaml:8: .*what goes to rejects has no column 'nope'"):
            told(job, spark)
        with pytest.raises(BadJob, match="'nope'"):
            _look(job, spark, tmp_path / "job.yaml", explain=False)
    assert not list((tmp_path / "out").glob("batch=*"))
    (tmp_path / "rejects").mkdir(exist_ok=True)
    write_record(tmp_path / "rejects", Record("another"), tmp_path)
    with pytest.raises(JobFailed, match="rejects' belongs to another checkpoint"):
        told(write(tmp_path), spark)
    assert not list((tmp_path / "out").glob("batch=*"))
