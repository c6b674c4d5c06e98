"""Micro-batches as directories that appear whole or not at all; a frame that writes like Spark stands in."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.jobs.published import published
from windowpane.errors import BadQuery
from windowpane.jobs.files import Publisher

SCHEMA = pa.schema({"k": pa.string(), "n": pa.int64()})


class Frame:
    """Writes as Spark does: a file per task, empty ones too, and what else it leaves in a directory."""

    def __init__(self, *parts, fails=False):
        self._parts, self._fails = parts, fails
        self.write = self

    def format(self, _):
        return self

    def options(self, **_):
        return self

    def mode(self, _):
        return self

    def save(self, path):
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(self._parts):
            file = folder / f"part-{number:05d}.parquet"
            parquet.write_table(pa.table({"k": ["a"] * len(part), "n": part}, SCHEMA), file)
            (folder / f".part-{number:05d}.parquet.crc").write_text("x")
            if self._fails:
                raise OSError("killed")
        (folder / "_SUCCESS").write_text("")


@pytest.fixture
def files(tmp_path):
    found = Publisher("parquet", tmp_path / "out")
    found.prepare(SCHEMA)
    return found


def numbers(folder):
    return sorted(published(folder)["n"].to_pylist())


def test_a_micro_batch_is_there_once_however_often_it_comes(files):
    files.write(Frame([1, 2], [3]), 0, "query")
    files.write(Frame([4]), 1, "query")
    files.write(Frame([1, 2], [3]), 0, "query")
    assert numbers(files.path) == [1, 2, 3, 4]
    assert sorted(path.name for path in files.path.iterdir()) == ["_windowpane", "batch=0", "batch=1"]
    assert list(files.staging.iterdir()) == []


def test_readers_find_nothing_but_files_with_rows(files):
    files.write(Frame([], [5], []), 0, "query")
    files.write(Frame([], []), 1, "query")
    assert [path.name for path in files.path.rglob("*") if path.is_file()] == [
        "_windowpane",
        "part-00001.parquet",
    ]


def test_what_was_half_written_is_never_seen_and_goes_with_the_next_start(files):
    files.write(Frame([1]), 0, "query")
    with pytest.raises(OSError, match="killed"):
        files.write(Frame([2], [3], fails=True), 1, "query")
    assert numbers(files.path) == [1]
    files.prepare(SCHEMA)
    assert list(files.staging.iterdir()) == []
    files.write(Frame([2], [3]), 1, "query")
    assert numbers(files.path) == [1, 2, 3]


def test_a_directory_belongs_to_one_checkpoint(files):
    files.write(Frame([1]), 0, "query")
    with pytest.raises(BadQuery, match=r"holds the answers of another checkpoint\. Name another directory"):
        files.write(Frame([2]), 0, "another")
    assert numbers(files.path) == [1]


def test_batch_jobs_add_to_what_is_there(files):
    files.add(Frame([1]))
    files.add(Frame([1]))
    assert numbers(files.path) == [1, 1]
    with pytest.raises(BadQuery, match="another checkpoint"):
        files.write(Frame([2]), 0, "query")


def test_places_and_columns_that_will_not_do_are_told(tmp_path, files):
    (tmp_path / "sparks" / "_spark_metadata").mkdir(parents=True)
    with pytest.raises(BadQuery, match="was written by Spark's own file sink"):
        Publisher("parquet", tmp_path / "sparks").prepare(SCHEMA)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadQuery, match=r"file' cannot be written to: .* Name another directory"):
        Publisher("parquet", tmp_path / "file").prepare(SCHEMA)
    with pytest.raises(BadQuery, match="the answers have a column 'batch'"):
        files.prepare(SCHEMA.append(pa.field("batch", pa.int64())))


def test_a_csv_file_has_no_two_columns_of_one_name(tmp_path):
    schema = pa.schema([("window", pa.struct([("start", pa.int64()), ("end", pa.int64())]))])
    wrong = schema.append(pa.field("window_end", pa.int64()))
    Publisher("csv", tmp_path / "out").prepare(schema)
    Publisher("parquet", tmp_path / "other").prepare(wrong)
    with pytest.raises(BadQuery, match="the answers have a column 'window_end'"):
        Publisher("csv", tmp_path / "out").prepare(wrong)
