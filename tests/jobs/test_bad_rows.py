"""Row 36 of the fault matrix through jobs: no value in another column, no null in place of a bad value."""

import json
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.jobs.published import published
from windowpane.jobs import BadJob, load
from windowpane.jobs.build import queries, read
from windowpane.jobs.run import FINISHED, JobFailed, run

pytestmark = pytest.mark.filterwarnings("ignore")

JOB = """\
source:
  format: {form}
  path: in
  schema: ts bigint, k string, v bigint, w double
  {more}
stream: {{time: ts, keys: k{stream}}}
query:
  window: tumbling(10)
  aggregates: [count(), sum(v)]
sink: {{format: parquet, path: out}}
{end}
"""
GOOD = {"ts": 1, "k": "a", "v": 1, "w": 0.5}
ONCE, STREAM = "trigger: batch", "trigger: available_now\ncheckpoint: state"


def job_of(folder, form, files, more="", stream="", end=ONCE):
    (folder / "in").mkdir()
    for name, text in files.items():
        (folder / "in" / f"{name}.{form}").write_text(text, "utf-8")
    text = JOB.format(form=form, more=more, stream=stream, end=end)
    (folder / "job.yaml").write_text(text, "utf-8")
    return load(folder / "job.yaml")


def outcome(job, spark):
    """Of the job's one query: (rows, rejected) of all its micro-batches."""
    told = []
    assert run(job, spark, threading.Event(), told.extend) == FINISHED
    return sum({p.batch: p.rows for p in told if p.batch >= 0}.values()), told[-1].rejected


def reasons(job, spark):
    """Of a batch job: why rows are rejected, and the texts of those that could not be read."""
    (query,) = queries(job, read(job, spark))
    rejects = query.to_spark("rejects").toArrow().to_pylist()
    return sorted((row["reason"], row["_record"] or "") for row in rejects)


def totals(folder):
    return sorted((row["k"], row["count"], row["sum_v"]) for row in published(folder / "out").to_pylist())


def lines(*rows):
    return "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n"


def test_json_that_does_not_fit_the_schema_is_rejected_with_its_text(spark, tmp_path):
    bad = json.dumps(GOOD | {"v": "many"})
    more = "select: ['*']\n  where: v > 0  # which a malformed row does not fulfil"
    job = job_of(tmp_path, "json", {"a": lines(GOOD, bad, GOOD | {"k": None}, "{")}, more)
    assert outcome(job, spark) == (4, 3)
    assert totals(tmp_path) == [("a", 1, 1)]
    assert reasons(job, spark) == [("malformed", bad), ("null k", ""), ("null time", "{")]


def test_csv_that_does_not_fit_the_schema_is_rejected_with_its_text(spark, tmp_path):
    """Of a record that lacks a value the values stand in other columns, also where they have the type."""
    text = lines("ts,k,v,w", "1,a,1,0.5", "2,a,x,0.5", "3,7,8", "4,a,1,0.5,9", "5,,1,0.5")
    more = "options: {Header: true}"
    job = job_of(tmp_path, "csv", {"a": text, "b": ""}, more)
    assert outcome(job, spark) == (5, 4)
    assert totals(tmp_path) == [("a", 1, 1)]
    assert reasons(job, spark) == [
        *(("malformed", "2,a,x,0.5"), ("malformed", "3,7,8"), ("malformed", "4,a,1,0.5,9")),
        ("null k", ""),
    ]


@pytest.mark.parametrize("heading", ["ts,v,k,w", "ts,k,v"])
def test_a_csv_file_with_another_heading_stops_the_job_and_is_named(spark, tmp_path, heading):
    rest = ["1,1,2,3", "99,1,2,3"] if heading.count(",") == 3 else ["1,1,2", "99,1,2"]
    job = job_of(tmp_path, "csv", {"a": lines(heading, *rest)}, "options: {header: true}")
    with pytest.raises(JobFailed, match=r"CSV header .*a\.csv"):
        run(job, spark, threading.Event(), lambda _: None)
    assert not list((tmp_path / "out").glob("batch=*"))


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_job_may_stop_at_what_is_malformed_or_keep_it(spark, tmp_path, form):
    row = {"json": json.dumps(GOOD | {"v": "many"}), "csv": "1,a,many,0.5"}[form]
    told = {
        "json": r"a\.json: a record cannot be read as the schema says: .*many",
        "csv": r'a\.csv.*input string: "many"',
    }
    strict = job_of(tmp_path, form, {"a": lines(row)}, "malformed: fail")
    with pytest.raises(JobFailed, match=told[form]):
        run(strict, spark, threading.Event(), lambda _: None)
    text = (tmp_path / "job.yaml").read_text()
    for own in ("malformed: keep", "options: {mode: PERMISSIVE}"):
        (tmp_path / "job.yaml").write_text(text.replace("malformed: fail", own), "utf-8")
        assert outcome(load(tmp_path / "job.yaml"), spark) == (1, 0)
    assert totals(tmp_path) == [("a", 1, None)] * 2


@pytest.mark.parametrize(
    ("stream", "kept"), [("", [("a", 1, 1)]), (", null_keys: keep", [("a", 1, 1), (None, 1, 2)])]
)
def test_rows_of_a_file_without_the_key_are_rejected_unless_null_keys_are_kept(spark, tmp_path, stream, kept):
    job = job_of(tmp_path, "parquet", {}, "malformed: keep", stream=stream, end=STREAM)
    pq.write_table(pa.table({"ts": [1], "k": ["a"], "v": [1]}), tmp_path / "in" / "a.parquet")
    pq.write_table(pa.table({"ts": [2], "v": [2]}), tmp_path / "in" / "b.parquet")
    pq.write_table(pa.table({"ts": [99], "k": ["b"], "v": [2]}), tmp_path / "in" / "c.parquet")
    assert outcome(job, spark) == (3, 2 - len(kept))
    assert sorted(published(tmp_path / "out").select(["k", "count", "sum_v"]).to_pylist(), key=str) == sorted(
        ({"k": k, "count": n, "sum_v": v} for k, n, v in kept), key=str
    )


def test_each_query_requires_its_own_keys(tmp_path):
    (tmp_path / "in").mkdir()
    text = """\
source: {format: parquet, path: in}
stream: {time: ts, keys: k, required: v}
queries:
  - {window: tumbling(1), aggregates: count()}
  - {window: rows(5).per(w), aggregates: count(), keys: [v, k]}
  - {window: tumbling(1), aggregates: count(), keys: []}
sink: {format: console}
"""
    (tmp_path / "job.yaml").write_text(text, "utf-8")
    schema = pa.schema([("ts", pa.int64()), *((name, pa.string()) for name in "kvw")])
    found = queries(load(tmp_path / "job.yaml"), schema=schema)
    assert [query.plan.stream.required for query in found] == [("v", "k"), ("v", "k", "w"), ("v",)]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("malformed: drop", "'drop' is none of the choices. There are: reject, fail, keep."),
        ("malformed: reject", "the rows of a parquet file that lacks a column cannot be told apart. Write"),
        ("malformed: fail", "only what is read from texts or files can be malformed: .* not avro. Remove"),
    ],
)
def test_what_cannot_be_done_with_malformed_rows_is_told(tmp_path, line, told):
    form = {"reject": "parquet", "fail": "avro"}.get(line.split()[1], "json")
    with pytest.raises(BadJob, match=rf"job\.yaml:5: source\.malformed: {told}"):
        job_of(tmp_path, form, {}, line)
    text = JOB.format(form="json", more="", stream=", null_keys: drop", end=ONCE)
    (tmp_path / "job.yaml").write_text(text, "utf-8")
    with pytest.raises(BadJob, match=r"job\.yaml:6: stream\.null_keys: 'drop' is none"):
        load(tmp_path / "job.yaml")
