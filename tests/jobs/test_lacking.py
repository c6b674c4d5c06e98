"""Row 36 of the fault matrix through jobs: a column that a file or an object lacks is never silently null."""

import json
import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.jobs.test_bad_rows import GOOD, ONCE, STREAM, job_of, lines, outcome, reasons, totals
from windowpane.jobs import BadJob, load
from windowpane.jobs.build import queries, read
from windowpane.jobs.columns import columns_read, paths_read, tree_of
from windowpane.jobs.job import Source
from windowpane.jobs.objects import FAULT, RECORD, Texts, objects
from windowpane.jobs.run import JobFailed, run

pytestmark = pytest.mark.filterwarnings("ignore")


def without(*names):
    return {name: value for name, value in GOOD.items() if name not in names}


def again(folder, old, new):
    """The job with another line."""
    text = (folder / "job.yaml").read_text("utf-8")
    assert old in text
    (folder / "job.yaml").write_text(text.replace(old, new), "utf-8")
    return load(folder / "job.yaml")


def failing(job, spark):
    with pytest.raises(JobFailed) as failed:
        run(job, spark, threading.Event(), lambda _: None)
    return str(failed.value)


@pytest.mark.parametrize("end", [ONCE, "trigger: drain\ncheckpoint: state"])
def test_an_object_without_a_column_that_is_read_is_rejected_with_its_text(spark, tmp_path, end):
    """Null stays null; `w` is read by nobody, so that neither its absence nor its type matters."""
    bad = json.dumps(without("v"))
    rows = lines(GOOD, bad, GOOD | {"v": None}, without("w"), GOOD | {"w": "no number"}, "", without("k"))
    job = job_of(tmp_path, "json", {"a": rows}, "options: {maxFilesPerTrigger: 1}", end=end)
    assert outcome(job, spark)[1] == 2
    assert totals(tmp_path) == [("a", 4, 3)]
    if end == ONCE:
        assert reasons(job, spark) == [("malformed", bad), ("malformed", json.dumps(without("k")))]


def test_a_job_may_stop_at_an_object_without_a_column_or_keep_it(spark, tmp_path):
    job = job_of(tmp_path, "json", {"a": lines(GOOD, without("v"))}, "malformed: fail")
    told = failing(job, spark)
    assert "a.json: a record has no column v, which a query reads: {" in told
    assert "malformed: reject" in told
    assert outcome(again(tmp_path, "malformed: fail", "malformed: keep"), spark) == (2, 0)
    assert totals(tmp_path) == [("a", 2, 1)]


def test_what_select_and_where_name_is_read_and_fields_are_too(spark, tmp_path):
    whole = {"ts": 1, "key": "a", "box": {"v": 1, "x": 2}}
    objects_ = [whole, whole | {"box": {"x": 2}}, whole | {"box": None}, whole | {"box": {"v": None}}]
    job_of(tmp_path, "json", {"a": lines(*objects_, {"ts": 1, "key": "a"})})
    again(tmp_path, "k string, v bigint, w double", "key string, w double, box struct<v:bigint,x:bigint>")
    job = again(tmp_path, "path: in\n", "path: in\n  select: [ts, key as k, box.v]\n  where: key = 'a'\n")
    assert outcome(job, spark) == (5, 2)
    assert totals(tmp_path) == [("a", 3, 1)]
    assert [text for _, text in reasons(job, spark)] == [
        json.dumps(objects_[1]),
        json.dumps({"ts": 1, "key": "a"}),
    ]


def test_a_marker_needs_no_columns(spark, tmp_path):
    marker = {"ts": 50, "m": True}
    rows = [GOOD | {"m": False}, marker, GOOD]
    stream = ", punctuation: external(m)"
    job = job_of(tmp_path, "json", {"a": lines(*rows)}, "malformed: fail", stream)
    job = again(tmp_path, "w double", "m boolean")
    assert "has no column m" in failing(job, spark)
    (tmp_path / "in" / "a.json").write_text(lines(*rows[:2]), "utf-8")
    assert outcome(job, spark) == (2, 0)
    job = again(tmp_path, "malformed: fail", "malformed: reject")
    (tmp_path / "in" / "a.json").write_text(lines(*rows), "utf-8")
    assert outcome(job, spark) == (3, 1)


def test_json_that_is_not_in_lines_is_read_as_before(spark, tmp_path):
    """Options of their own and columns in paths are for Spark's reader."""
    job_of(tmp_path, "json", {})
    (tmp_path / "in" / "a.json").write_text(json.dumps([GOOD, GOOD], indent=1), "utf-8")
    assert outcome(again(tmp_path, "path: in\n", "path: in\n  options: {multiLine: true}\n"), spark) == (2, 0)
    job = again(tmp_path, "  options: {multiLine: true}\n", "")
    (tmp_path / "in" / "a.json").unlink()
    (tmp_path / "in" / "k=b").mkdir()
    (tmp_path / "in" / "k=b" / "a.json").write_text(lines(without("k"), GOOD | {"v": "x"}), "utf-8")
    assert outcome(job, spark) == (2, 1)
    assert totals(tmp_path) == [("a", 2, 2), ("b", 1, 1)]


def test_a_text_of_json_is_what_the_record_has_or_the_record_is_rejected(spark, tmp_path):
    """No UTF-8 would be one letter for all; numbers would be written anew; an array is no object."""
    latin = ['{"ts":1,"k":"M\xfcller","v":1}', '{"ts":1,"k":"M\xf6ller","v":1}']
    bare = ['{"ts":1,"k":1.10,"v":1}', '{"ts":1, "k" : 12345678.123456789, "v":1}', '{"ts":1,"k":1E-5,"v":1}']
    array = f" {json.dumps([GOOD, GOOD])}"
    good = [GOOD | {"k": k} for k in ("1.10", "1.1", "1e5")]
    job = job_of(tmp_path, "json", {}, "options: {encoding: UTF-8, multiLine: false}")
    text = lines(*latin, *bare, array, *good, '{"ts":1,"k":17,"v":1}', "\t", "  ")
    (tmp_path / "in" / "a.json").write_bytes(text.encode("latin-1"))
    assert outcome(job, spark) == (10, 6)
    assert totals(tmp_path) == [("1.1", 1, 1), ("1.10", 1, 1), ("17", 1, 1), ("1e5", 1, 1)]


def test_a_record_that_could_not_be_read_is_not_dropped_by_explode(spark, tmp_path):
    rows = [
        {"ts": 1, "k": "a", "many": [1, 2]},
        {"ts": 1, "k": "a"},
        "nonsense",
        {"ts": 1, "k": "a", "many": []},
    ]
    job_of(tmp_path, "json", {"a": lines(*rows)})
    again(tmp_path, "v bigint, w double", "many array<bigint>")
    job = again(tmp_path, "path: in\n", 'path: in\n  select: [ts, k, "explode(many) as v"]\n')
    with pytest.raises(BadJob, match=r"select has explode\(\), which drops malformed records uncounted"):
        outcome(job, spark)
    job = again(tmp_path, '"explode(many) as v"]\n', '"explode_outer(many) as v"]\n  where: v is not null\n')
    assert outcome(job, spark)[1] == 2
    assert totals(tmp_path) == [("a", 2, 3)]


@pytest.mark.parametrize("malformed", ["reject", "fail"])
def test_the_same_holds_for_the_values_of_a_topic(spark, malformed):
    texts = [
        json.dumps(GOOD),
        '{"ts": 2, "k": null}',
        '{"ts": "x", "k": "b"}',
        "no JSON",
        '{"ts": 3}',
        None,
        "",
    ]
    frame = spark.createDataFrame([(text, 5) for text in texts], "value string, offset bigint")
    schema = spark.createDataFrame([], "ts bigint, k string, w double").schema
    source = Source("kafka", schema="", malformed=malformed)
    paths = paths_read(source, tree_of(schema), ("ts", "k", "offset"))
    found = objects(frame, schema, paths, Texts("'here'", ["offset"]))
    assert [tuple(row)[:5] for row in found.collect()] == [
        (1, "a", 0.5, None, 5),
        (2, None, None, None, 5),
        (None, "b", None, texts[2], 5),
        (None, None, None, texts[3], 5),
        (3, None, None, texts[4], 5),
        *[(None, None, None, None, 5)] * 2,
    ]
    assert [row[FAULT] for row in found.collect()] == [
        *(None, None, "here: a record cannot be read as the schema says"),
        "here: a record cannot be read as the schema says",
        "here: a record has no column k, which a query reads",
        *(None, None),
    ]


def write(file, age, **columns):
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), file)
    os.utime(file, (1_700_000_000 + age,) * 2)  # Spark reads files by their age


FILES = "options: {maxFilesPerTrigger: 1}"


def test_a_parquet_file_that_comes_without_a_column_stops_the_job_before_it_counts(spark, tmp_path):
    """In the second micro-batch; its rows are in no answer, and with the column the job goes on."""
    job = job_of(tmp_path, "parquet", {}, FILES, end="checkpoint: state\ntrigger: {processing_time: 10 ms}")
    write(tmp_path / "in" / "a.parquet", 0, ts=[1, 30], k=["a", "b"], v=[1, 1], w=[0.5, 0.5])
    bad, told = tmp_path / "in" / "b.parquet", []

    def report(progress):
        told.extend(progress)
        if any(p.batch == 0 for p in told) and not bad.exists():
            write(tmp_path / "b.parquet", 1, ts=[31, 70], k=["a", "b"])  # nobody reads w
            (tmp_path / "b.parquet").rename(bad)

    with pytest.raises(JobFailed, match=r"b\.parquet' has no column 'v', which .* malformed: keep"):
        run(job, spark, threading.Event(), report)
    assert totals(tmp_path) == [("a", 1, 1)]
    write(bad, 1, ts=[31, 70], k=["a", "b"], v=[5, 5])
    assert outcome(again(tmp_path, "{processing_time: 10 ms}", "available_now"), spark)[1] == 0
    assert totals(tmp_path) == [("a", 1, 1), ("a", 1, 5), ("b", 1, 1)]


@pytest.mark.parametrize("end", [ONCE, STREAM])
def test_a_parquet_file_without_a_column_stops_the_job_at_its_start_unless_it_is_kept(spark, tmp_path, end):
    job = job_of(tmp_path, "parquet", {}, "malformed: fail", end=end)
    write(tmp_path / "in" / "a.parquet", 0, ts=[1, 30], k=["a", "b"], v=[1, 1])
    write(tmp_path / "in" / "b.parquet", 1, ts=[2, 31], k=["a", "b"])
    assert "b.parquet' has no column 'v'" in failing(job, spark)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").glob("batch=*"))
    assert outcome(again(tmp_path, "malformed: fail", "malformed: keep"), spark) == (4, 0)
    assert ("a", 2, 1) in totals(tmp_path)


def test_a_file_that_a_sink_of_sparks_takes_is_looked_at_while_the_job_runs(spark, tmp_path):
    job_of(tmp_path, "parquet", {}, FILES, end=STREAM)
    again(tmp_path, STREAM, ONCE)
    again(tmp_path, "{format: parquet, path: out}", "{format: memory}")
    job = again(tmp_path, ONCE, "trigger: {processing_time: 10 ms}")
    write(tmp_path / "in" / "a.parquet", 0, ts=[1, 30], k=["a", "b"], v=[1, 1])
    bad = tmp_path / "in" / "b.parquet"

    def report(progress):
        if any(p.batch == 0 for p in progress) and not bad.exists():
            write(tmp_path / "b.parquet", 1, ts=[31], k=["a"])
            (tmp_path / "b.parquet").rename(bad)

    with pytest.raises(JobFailed, match=r"b\.parquet' has no column 'v'"):
        run(job, spark, threading.Event(), report)


def test_a_column_in_the_name_of_a_directory_is_there(spark, tmp_path):
    job = job_of(tmp_path, "parquet", {}, end=STREAM)
    write(tmp_path / "in" / "k=a" / "a.parquet", 0, ts=[1, 30], v=[1, 1])
    assert outcome(job, spark) == (2, 0)
    assert totals(tmp_path) == [("a", 1, 1)]


def test_state_of_before_goes_on(tmp_path, spark):
    """What a restart compares is what it was: no column is new in the plan of a job that stops."""
    job = job_of(tmp_path, "json", {}, "malformed: fail")
    (query,) = queries(job, read(job, spark))
    assert query.plan.stream.columns == ("ts", "k", "v", "w")
    assert query.plan.stream.required == ("k",)
    (query,) = queries(rejecting := again(tmp_path, "malformed: fail", ""), read(rejecting, spark))
    assert query.plan.stream.columns == ("ts", "k", "v", "w", RECORD, "_well_formed")
    assert query.plan.stream.required == ("_well_formed", "k")
    assert set(columns_read(rejecting)) == {"ts", "k", "v"}
