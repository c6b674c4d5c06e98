"""Micro-batches as directories that appear whole or not at all; a frame that writes like Spark stands in."""

import bz2
import gzip
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


def test_a_repeat_with_other_answers_takes_the_place_of_the_first(tmp_path):
    files = Publisher("parquet", tmp_path / "out", replace=True)
    files.prepare(SCHEMA)
    for some in ([1, 2], [3], []):
        files.write(Frame(some), 0, "query")
        files.write(Frame([9]), 1, "query")
        assert numbers(files.path) == [*some, 9]
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


class Texts(Frame):
    """Writes these bytes as files of their names."""

    def __init__(self, **files):
        super().__init__()
        self._files = files

    def save(self, path):
        Path(path).mkdir(parents=True)
        for name, data in self._files.items():
            (Path(path) / name.replace("_", ".")).write_bytes(data)


@pytest.mark.parametrize(
    ("form", "options", "empty", "full"),
    [
        ("csv", {"Header": "true"}, {"a_csv": b"k,n\n"}, {"b_csv": b"k,n\nx,1\n"}),
        ("csv", {}, {"a_csv": b""}, {"b_csv": b"x,1\n"}),
        (
            "csv",
            {"header": "true"},
            {"a_csv_gz": gzip.compress(b"k,n\n")},
            {"b_csv_gz": gzip.compress(b"k\nx\n")},
        ),
        (
            "json",
            {"header": "true"},
            {"a_json_gz": gzip.compress(b"")},
            {"b_json_gz": gzip.compress(b"{}\n")},
        ),
        ("json", {}, {"a_json_bz2": bz2.compress(b"")}, {"b_json_bz2": bz2.compress(b"{}\n")}),
        ("csv", {"header": "true"}, {"a_csv_snappy": b""}, {"b_csv_snappy": b"no line ends here"}),
    ],
)
def test_text_files_without_answers_are_not_published(tmp_path, form, options, empty, full):
    """A file of nothing but a heading, or of nothing in compressed form, was taken for answers."""
    files = Publisher(form, tmp_path / "out", options)
    files.prepare(SCHEMA)
    files.write(Texts(**empty), 0, "q")
    assert not (tmp_path / "out" / "batch=0").exists()
    files.write(Texts(**empty, **full), 1, "q")
    (there,) = (tmp_path / "out" / "batch=1").iterdir()
    assert there.read_bytes() == next(iter(full.values()))


def test_a_heading_longer_than_a_piece_is_read_to_its_end(tmp_path):
    files = Publisher("csv", tmp_path / "out", {"header": "true"})
    files.prepare(SCHEMA)
    heading = b"k," + b"n" * 100_000 + b"\n"
    files.write(Texts(a_csv=heading), 0, "q")
    files.write(Texts(a_csv=heading + b"x,1\n"), 1, "q")
    assert [path.name for path in (tmp_path / "out").glob("batch=*")] == ["batch=1"]
