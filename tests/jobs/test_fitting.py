"""Answers that do not fit their sink are refused before anything is written, and by --check too."""

import re
import sqlite3
import threading

import pyarrow as pa
import pytest

from tests.jobs.published import published
from tests.spark.harness import events, write_files
from windowpane.cli.run import _look
from windowpane.errors import BadQuery, UnknownColumn
from windowpane.jobs import BadJob, load
from windowpane.jobs.files import Publisher, need_columns
from windowpane.jobs.record import Record, write_record
from windowpane.jobs.run import FINISHED, run

pytestmark = pytest.mark.filterwarnings("ignore")

JOB = """\
source: {format: parquet, path: in}
stream: {time: ts, keys: k, null_keys: keep, delay: 2 s}
query:
  window: tumbling(7 s)
  aggregates: ["count()", "total = sum(v)"]
sink: {format: parquet, path: out}
"""
STREAM = "checkpoint: state\ntrigger: available_now\n"
BATCH = "trigger: batch\n"
ANSWERS = pa.schema(
    [
        ("k", pa.string()),
        ("window", pa.struct([("start", pa.int64()), ("end", pa.int64())])),
        ("n", pa.int64()),
    ]
)


@pytest.mark.parametrize("form", ["parquet", "json", "orc", "delta"])
def test_a_window_is_nothing_to_share_files_out_by(form):
    """Spark refused it in the first micro-batch, after the job had started."""
    need_columns(form, ("k",), ANSWERS)
    with pytest.raises(BadQuery, match=r"partition_by names 'window', which holds several.*such as a key"):
        need_columns(form, ("window",), ANSWERS)


def test_csv_files_are_shared_out_by_the_columns_that_they_have():
    need_columns("csv", ("window_start",), ANSWERS)
    with pytest.raises(UnknownColumn, match=r"has no column 'window'; it has k, window_start, window_end, n"):
        need_columns("csv", ("window",), ANSWERS)
    with pytest.raises(UnknownColumn, match="has no column 'window_start'"):
        need_columns("json", ("window_start",), ANSWERS)


def test_an_answer_of_several_values_does_not_fit_into_csv():
    wide = ANSWERS.append(pa.field("top", pa.list_(pa.int64())))
    need_columns("json", (), wide)
    with pytest.raises(BadQuery, match=r"the answers have a column 'top' that holds several.*Use json or"):
        need_columns("csv", (), wide)


def test_a_plain_column_that_is_called_window_is_one_like_any_other():
    rows = pa.schema([("window", pa.string()), ("window_end", pa.int64())])
    need_columns("csv", ("window",), rows)


def test_what_does_not_fit_leaves_no_directory(tmp_path):
    with pytest.raises(UnknownColumn, match="'nope'"):
        Publisher("parquet", tmp_path / "out", partition_by=("nope",)).prepare(ANSWERS)
    assert not list(tmp_path.iterdir())


def write(folder, text):
    (folder / "job.yaml").write_text(text, "utf-8")
    return load(folder / "job.yaml")


def go(job, spark):
    return run(job, spark, threading.Event(), lambda _: None)


@pytest.mark.spark
def test_a_job_that_would_be_refused_is_not_sound(spark, tmp_path):
    """--check called it sound, and the run refused it at once."""
    write_files(tmp_path / "in", events(n=10), files=1)
    cases = {
        (6, "has no column 'sybol'"): JOB.replace("path: out", "path: out, partition_by: sybol"),
        (6, "partition_by names 'window'"): JOB.replace("path: out", "path: out, partition_by: window"),
        (6, "the answers have a column 'batch'"): JOB.replace("total =", "batch ="),
        (6, "the answers have a column 'window_end'"): JOB.replace("total =", "window_end =").replace(
            "parquet, path: out", "csv, path: out"
        ),
        (6, "the answers have a column 'row_key'"): JOB.replace("total =", "row_key =").replace(
            "parquet, path: out", "sqlite, path: a.db"
        ),
    }
    for (line, words), text in cases.items():
        for how in (STREAM, BATCH):
            job = write(tmp_path, text + how)
            with pytest.raises(BadJob, match=rf"job\.yaml:{line}: .*{re.escape(words)}"):
                _look(job, spark, tmp_path / "job.yaml", explain=False)
            with pytest.raises(BadJob, match=re.escape(words)):
                go(job, spark)
    assert not {"out", "a.db"} & {path.name for path in tmp_path.iterdir()}


@pytest.mark.spark
@pytest.mark.parametrize("how", [STREAM, BATCH])
def test_csv_files_may_be_shared_out_by_the_start_of_the_window(spark, tmp_path, how):
    """A stream was refused, and of a batch job a sink that is shared out by the window was not."""
    write_files(tmp_path / "in", events(n=200), files=1)
    csv = JOB.replace(
        "parquet, path: out", "csv, path: out, options: {header: true}, partition_by: window_start"
    )
    assert go(write(tmp_path, csv + how), spark) == FINISHED
    assert list((tmp_path / "out" / "batch=0").glob("window_start=*/*.csv"))
    with pytest.raises(BadJob, match="has no column 'window'"):
        go(write(tmp_path, csv.replace("window_start", "window") + how), spark)


TWO = """\
source: {format: parquet, path: in}
stream: {time: ts, keys: k, null_keys: keep, delay: 2 s}
queries:
  - {name: a, window: tumbling(7 s), aggregates: count(), sink: {format: parquet, path: out}}
  - {name: b, window: tumbling(7 s), aggregates: count(), sink: SINK}
trigger: batch
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sink", "told"),
    [
        ("{format: parquet, path: b, partition_by: nope}", "5: .*has no column 'nope'"),
        ("{format: sqlite, path: b.db, table: taken}", "5: .*the table 'taken' has the columns x"),
        ("{format: parquet, path: theirs}", "5: .*theirs' belongs to another checkpoint"),
    ],
)
def test_no_answers_of_a_batch_job_are_out_when_a_sink_of_it_is_refused(spark, tmp_path, sink, told):
    """Those of the first query were, and the run that followed added them once more."""
    write_files(tmp_path / "in", events(n=10), files=1)
    with sqlite3.connect(tmp_path / "b.db") as connection:
        connection.execute("CREATE TABLE taken (x)")
    (tmp_path / "theirs").mkdir()
    write_record(tmp_path / "theirs", Record("another"), tmp_path)
    with pytest.raises(BadJob, match=rf"job\.yaml:{told}"):
        go(write(tmp_path, TWO.replace("SINK", sink)), spark)
    assert not list((tmp_path / "out").glob("batch=*"))


@pytest.mark.spark
def test_no_answers_of_a_batch_job_are_out_when_its_rejects_belong_to_a_stream(spark, tmp_path):
    write_files(tmp_path / "in", events(n=10), files=1)
    (tmp_path / "rejects").mkdir()
    write_record(tmp_path / "rejects", Record("another"), tmp_path)
    rejects = "rejects: {format: json, path: rejects}\n"
    with pytest.raises(BadJob, match=r"job\.yaml:7: .*rejects' belongs to another checkpoint"):
        go(write(tmp_path, JOB + rejects + BATCH), spark)
    assert not list((tmp_path / "out").glob("batch=*"))
    assert go(write(tmp_path, JOB + BATCH), spark) == FINISHED
    assert len(published(tmp_path / "out"))
