"""The options of a source also count where the columns of its files are found."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.jobs.test_bad_rows import ONCE, STREAM, job_of, outcome, totals

NO_SCHEMA = ("  schema: ts bigint, k string, v bigint, w double\n", "")
ROWS = {"ts": [1, 30], "k": ["a", "b"], "v": [1, 1]}


def parquet_job(folder, options, end):
    """A job over Parquet files that know their own columns."""
    from windowpane.jobs import load

    job_of(folder, "parquet", {}, f"options: {options}", end=end)
    file = folder / "job.yaml"
    file.write_text(file.read_text("utf-8").replace(*NO_SCHEMA), "utf-8")
    return load(file)


def write(file, **columns):
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), file)


@pytest.mark.parametrize("end", [ONCE, STREAM])
def test_files_of_folders_below_are_found_with_their_columns(spark, tmp_path, end):
    """Options of streams alone stand beside it, which the reader of the columns passes over."""
    options = "{recursiveFileLookup: true, maxFilesPerTrigger: 1, latestFirst: false, cleanSource: 'off'}"
    job = parquet_job(tmp_path, options, end)
    write(tmp_path / "in" / "monday" / "a.parquet", **ROWS)
    assert outcome(job, spark) == (2, 0)
    assert ("a", 1, 1) in totals(tmp_path)


@pytest.mark.parametrize("end", [ONCE, STREAM])
def test_files_that_are_left_out_by_their_names_give_no_columns(spark, tmp_path, end):
    """The first file by its name has other columns, and no Parquet is in the second."""
    job = parquet_job(tmp_path, "{pathGlobFilter: '*.parquet'}", end)
    write(tmp_path / "in" / "a.old", other=["x"])
    (tmp_path / "in" / "b.txt").write_text("notes", "utf-8")
    write(tmp_path / "in" / "c.parquet", **ROWS)
    assert outcome(job, spark) == (2, 0)
    assert ("a", 1, 1) in totals(tmp_path)


def test_columns_that_only_some_files_have_are_found_by_merging(spark, tmp_path):
    """Column w, which no query reads, is in the second file alone."""
    from windowpane.jobs.build import read

    job = parquet_job(tmp_path, "{mergeSchema: true}", STREAM)
    write(tmp_path / "in" / "a.parquet", **ROWS)
    write(tmp_path / "in" / "b.parquet", **ROWS, w=[0.5, 0.5])
    assert read(job, spark).columns == ["ts", "k", "v", "w"]
