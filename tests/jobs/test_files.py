"""Micro-batches as directories that appear whole or not at all; a frame that writes like Spark stands in."""

import bz2
import gzip
import shutil
import tempfile
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from tests.jobs.published import published
from windowpane.errors import BadQuery
from windowpane.jobs.files import Publisher
from windowpane.jobs.record import Record, read_record

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


class Spy(Frame):
    """Tells where it was written, and runs something then."""

    def __init__(self, *parts, fails=False, then=lambda: None):
        super().__init__(*parts)
        self._raises, self._then, self.path = fails, then, None

    def save(self, path):
        self.path = self.path or Path(path)
        super().save(path)
        self._then()
        if self._raises:
            self._raises = False
            raise OSError("killed")


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
    assert list(files.staging.iterdir()) == []
    killed = Spy([2], [3], fails=True)
    with pytest.raises(OSError, match="killed"):
        files.write(killed, 1, "query")
    killed.save(killed.path.parent / "old" / "batch=0")  # as if nothing had been tidied up
    files.prepare(SCHEMA)
    files.write(Frame([2], [3]), 1, "query")
    assert numbers(files.path) == [1, 2, 3]
    assert list(files.staging.iterdir()) == []


def test_a_directory_belongs_to_one_checkpoint(files):
    files.write(Frame([1]), 0, "query")
    with pytest.raises(BadQuery, match=r"belongs to another checkpoint\. Name another directory"):
        files.write(Frame([2]), 0, "another")
    assert numbers(files.path) == [1]


def test_a_job_that_is_refused_does_not_touch_what_another_is_writing(files):
    """Its start removed the other's half-written micro-batch, which was then published without its files."""

    def other_job():
        other = Publisher("parquet", files.path)
        other.prepare(SCHEMA)
        with pytest.raises(BadQuery, match="another checkpoint"):
            other.write(Frame([9]), 0, "another")

    files.write(Spy([1], [2], then=other_job), 0, "query")
    assert numbers(files.path) == [1, 2]
    assert list(files.staging.iterdir()) == []


def test_of_two_jobs_that_begin_at_once_one_owns_the_directory(files, monkeypatch):
    from windowpane.jobs import files as module

    real = module.write_record

    def slow(folder, record, aside, **how):
        if record.owner == "query":
            Publisher("parquet", files.path).write(Frame([1]), 0, "faster")
        real(folder, record, aside, **how)

    monkeypatch.setattr(module, "write_record", slow)
    with pytest.raises(BadQuery, match="another checkpoint"):
        files.write(Frame([2]), 0, "query")
    assert numbers(files.path) == [1]


def test_published_answers_that_are_gone_are_noticed_at_the_next_start(files):
    for number in (0, 1, 2, 4, 5):
        files.write(Frame([number]), number, "query")
    files.prepare(SCHEMA)
    shutil.rmtree(files.path / "batch=0")  # the oldest may go
    files.prepare(SCHEMA)
    for gone in ("batch=2", "batch=5"):
        (files.path / gone).rename(files.staging / gone)
        with pytest.raises(BadQuery, match=rf"{gone}' was published and is gone.*Restore it from a copy"):
            files.prepare(SCHEMA)
        (files.staging / gone).rename(files.path / gone)
    files.prepare(SCHEMA)
    for folder in files.path.glob("batch=*"):
        shutil.rmtree(folder)
    with pytest.raises(BadQuery, match=r"batch=5' was published and is gone.*or with all others the file"):
        files.prepare(SCHEMA)
    (files.path / "_windowpane").unlink()
    files.prepare(SCHEMA)


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"published": [[0, 1]]}', '{"owner": "q", "published": [3]}']
)
def test_a_damaged_record_is_an_error(files, damage):
    files.write(Frame([1]), 0, "query")
    (files.path / "_windowpane").write_text(damage)
    for use in (lambda: files.prepare(SCHEMA), lambda: files.write(Frame([2]), 1, "query")):
        with pytest.raises(
            BadQuery, match=r"_windowpane' is damaged.*Restore it from a copy, or name another"
        ):
            use()
    assert numbers(files.path) == [1]


def test_answers_without_their_record_are_an_error(files):
    files.write(Frame([1]), 0, "query")
    (files.path / "_windowpane").unlink()
    for use in (lambda: files.prepare(SCHEMA), lambda: files.write(Frame([2]), 1, "query")):
        with pytest.raises(BadQuery, match=r"holds batch=0, but not the file '_windowpane'"):
            use()


def test_a_micro_batch_that_was_published_but_not_recorded_is_when_it_comes_again(files, monkeypatch):
    files.write(Frame([1]), 0, "query")
    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "_note", lambda *_: None)  # as a kill between the two
        files.write(Frame([2]), 1, "query")
    files.prepare(SCHEMA)
    files.write(Frame([2]), 1, "query")
    assert read_record(files.path) == Record("query", ((0, 1),))
    assert numbers(files.path) == [1, 2]


def test_a_record_knows_numbers_by_ranges():
    record = Record("q")
    for number in (0, 1, 2, 4, 2, 7, 8, 3):
        record = record.having(number)
    assert sorted(n for low, high in record.published for n in range(low, high + 1)) == [0, 1, 2, 3, 4, 7, 8]
    assert record.lacking(1).gone({0, 2, 3, 4, 7, 8}) == []
    assert record.gone({2, 3, 7}) == [4, 8]
    assert len(Record("q", tuple((2 * i, 2 * i) for i in range(3000))).having(6001).published) == 1000


def test_batch_jobs_add_to_what_is_there(files):
    files.add(Frame([1]))
    files.add(Frame([1]))
    assert numbers(files.path) == [1, 1]
    with pytest.raises(BadQuery, match="another checkpoint"):
        files.write(Frame([2]), 0, "query")


def test_batch_jobs_into_one_directory_take_turns(files):
    """Both found the same number free, and what the second wrote was taken for a repeat."""
    other = threading.Thread(target=lambda: Publisher("parquet", files.path).add(Frame([2])))

    def begin():
        other.start()
        other.join(0.2)  # it waits

    files.add(Spy([1], then=begin))
    other.join()
    assert numbers(files.path) == [1, 2]


def test_a_link_to_another_file_system_is_a_place_for_answers(tmp_path):
    """Micro-batches were written beside the link, from where no rename leads to the other file system."""
    other = Path("/dev/shm")  # noqa: S108 - a file system of its own
    if not other.is_dir() or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip(f"{other} is no other file system here")
    with tempfile.TemporaryDirectory(dir=other) as folder:
        (Path(folder) / "far").mkdir()
        (tmp_path / "out").symlink_to(Path(folder) / "far")
        files = Publisher("parquet", tmp_path / "out")
        files.prepare(SCHEMA)
        files.write(Frame([1]), 0, "query")
        assert numbers(Path(folder) / "far") == [1]
        assert sorted(path.name for path in Path(folder).iterdir()) == [".far.staging", "far"]
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.fixture(params=["mount", "rights"])
def shut_in(request, tmp_path, monkeypatch):
    """A directory that nothing can be moved into from beside it."""
    from windowpane.jobs import files as module

    (tmp_path / "out").mkdir()
    if request.param == "mount":
        monkeypatch.setattr(module, "_device", lambda path: int(path == tmp_path / "out"))
    else:
        monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)
    return tmp_path / "out"


def test_what_cannot_be_moved_from_beside_is_written_within_where_readers_do_not_look(shut_in):
    files = Publisher("parquet", shut_in)
    files.prepare(SCHEMA)
    files.write(Frame([1]), 0, "query")
    seen = []

    def look():
        seen.append(numbers(shut_in / "batch=*"))
        seen.append(dataset.dataset(shut_in, format="parquet").to_table()["n"].to_pylist())

    spy = Spy([2], then=look)
    files.write(spy, 1, "query")
    assert shut_in in spy.path.parents
    assert seen == [[1], [1]]
    assert numbers(shut_in) == [1, 2]
    assert [path.name for path in shut_in.parent.iterdir()] == ["out"]
    assert list(files.staging.iterdir()) == []
    files.prepare(SCHEMA)


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
