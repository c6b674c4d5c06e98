"""Answers as files that anyone may read: a micro-batch appears whole, once, or not at all.

A micro-batch is written beside the directory, then moved into it as `batch=<number>` in one step. A repeat of
a micro-batch that is already there adds nothing: its answers are the same. Where they may be others, as those
of an update queue, the repeat takes its place. So a reader that lists the directory, Spark or not, sees
exactly the answers. A record says which were published, so that a start notices what is gone.
Limits: a local or mounted path, whose file system renames a directory in one step.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import orc, parquet

from windowpane.core.results import flat_schema
from windowpane.jobs.ends import need_free, need_partitions, need_plain
from windowpane.jobs.record import FILE, Record, read_record, write_record
from windowpane.values.errors import BadQuery

COLUMN = "batch"
"""What readers of partitioned directories see as one more column."""
BATCH_JOBS = "batch jobs"
"""The owner of a directory that batch jobs add to."""
_SPARKS = "_spark_metadata"
_SAME = {"timeZone": "UTC"}
"""Texts are the same whatever the time zone of the session, unless the options name one."""
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Compressed texts that can be looked into."""


@dataclass(frozen=True)
class Publisher:
    """Writes micro-batches of answers to files of a format below a directory.

    `replace`: a repeat of a micro-batch may have other answers, which then count, as the state does that they
    came with. Readers miss the micro-batch for the moment between the removal of the one and the other.
    """

    format: str
    path: Path
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    replace: bool = False

    @property
    def staging(self) -> Path:
        """Where micro-batches are written before they are published: outside of what readers list.

        Each owner has a folder of its own there, since one that will be refused must not touch another's.
        """
        home = self.path.resolve()  # of a link: beside what it leads to, from where alone it can be moved
        return home / ".staging" if _shut_in(home) else home.parent / f".{home.name}.staging"

    def need_columns(self, schema: pa.Schema) -> None:
        """An error if the directory cannot take answers with these columns; nothing is touched."""
        if COLUMN in schema.names:
            raise BadQuery(
                f"the answers have a column {COLUMN!r}, which the directories of the sink are named by. "
                "Give it another name."
            )
        need_columns(self.format, self.partition_by, schema)

    def prepare(self, schema: pa.Schema) -> None:
        """Make the directory; an error if it cannot take the answers, or if some that it had are gone."""
        self.need_columns(schema)
        if (self.path / _SPARKS).exists():
            raise BadQuery(
                f"{str(self.path)!r} was written by Spark's own file sink, whose readers would not see other "
                "files. Name another directory."
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.staging.mkdir(exist_ok=True)
        except OSError as error:
            raise BadQuery(
                f"{str(error.filename)!r} cannot be written to: {error.strerror}. Name another directory."
            ) from error
        self._need_all(read_record(self.path))

    def need_owner(self, owner: str, record: Record | None = None) -> None:
        """An error if the directory, by its record, belongs to another checkpoint; nothing is touched."""
        record = record or read_record(self.path)
        if record is not None and record.owner != owner:
            raise BadQuery(
                f"{str(self.path)!r} belongs to another checkpoint. "
                "Name another directory, or remove this one to begin anew."
            )

    def write(self, frame: Any, number: int, owner: str) -> None:
        """Publish one micro-batch; `owner` is the streaming query whose micro-batches these are."""
        with self._aside(owner) as aside:
            record = self._claimed(owner, aside)
            staged, target = aside / f"{COLUMN}={number}", self.path / f"{COLUMN}={number}"
            writer = frame.write.format(self.format).options(**_SAME | dict(self.options)).mode("overwrite")
            writer = writer.partitionBy(*self.partition_by) if self.partition_by else writer
            writer.save(str(staged))  # also for a repeat: it is this that brings the state forward
            if target.exists() and self.replace:
                self._note(record.lacking(number), record, aside)
                target.rename(aside / "old")
            if not target.exists() and _tidied(staged, self.format, heads=self._heads):
                _settle(staged)
                staged.rename(target)
                _sync(self.path)
            if target.exists():
                self._note(record.having(number), read_record(self.path), aside)

    @property
    def _heads(self) -> bool:
        """Whether files begin with the names of the columns."""
        options = {name.lower(): value.lower() for name, value in self.options.items()}
        return self.format == "csv" and options.get("header") == "true"

    def add(self, frame: Any) -> None:
        """Publish the answers of a batch job after those that are there."""
        with _alone(self.staging):  # batch jobs have one owner and no lock on a checkpoint: they take turns
            self.write(frame, max(self._numbers(), default=-1) + 1, BATCH_JOBS)

    @contextmanager
    def _aside(self, owner: str) -> Iterator[Path]:
        """An empty folder of the owner's, beside the directory; what a run that was killed left goes."""
        folder = self.staging / hashlib.sha256(owner.encode()).hexdigest()[:16]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _claimed(self, owner: str, aside: Path) -> Record:
        """The directory belongs to one checkpoint: the numbers of another's micro-batches mean others."""
        if (record := read_record(self.path)) is None:
            self._need_all(None)
            write_record(self.path, Record(owner), aside, first=True)
            _sync(self.path)
            record = read_record(self.path) or Record(owner)
        self.need_owner(owner, record)
        return record

    def _note(self, record: Record, before: Record | None, aside: Path) -> None:
        if record != before:
            write_record(self.path, record, aside)
            _sync(self.path)

    def _numbers(self) -> list[int]:
        names = (path.name.partition("=")[2] for path in self.path.glob(f"{COLUMN}=*"))
        return [int(name) for name in names if name.isdecimal()]

    def _need_all(self, record: Record | None) -> None:
        """Fail if micro-batches are not there that were published, or the record itself is not."""
        there = self._numbers()
        if record is None and there:
            raise BadQuery(
                f"{str(self.path)!r} holds {COLUMN}={max(there)}, but not the file {FILE!r} that says whose "
                "it is. Restore it from a copy, or name another directory."
            )
        gone = [] if record is None else record.gone(there)
        if gone:
            raise BadQuery(
                f"{str(self.path / f'{COLUMN}={gone[0]}')!r} was published and is gone, one of {len(gone)}. "
                "Restore it from a copy. If it was removed on purpose, remove what is older too, or with all "
                f"others the file {FILE!r}."
            )


def need_columns(form: str, partition_by: Sequence[str], schema: pa.Schema) -> None:
    """Fail if files cannot hold answers or be shared out by their columns: CSV has the bounds of a window."""
    if form == "csv":
        if "window" in schema.names and pa.types.is_struct(schema.field("window").type):
            need_free(schema.names, "window_start", "window_end")
            schema = flat_schema(schema)
        need_plain(schema, "the answers")
    need_partitions(partition_by, schema, "what goes to the sink")


def _shut_in(home: Path) -> bool:
    """Whether nothing can be moved into a directory from beside it: a mount point, or a parent not ours."""
    if not home.exists():
        return False
    return _device(home) != _device(home.parent) or not os.access(home.parent, os.W_OK)


def _device(path: Path) -> int:
    return path.stat().st_dev


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder, as soon as no other process does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _tidied(folder: Path, form: str, *, heads: bool) -> bool:
    """Remove all but files with rows; whether any is left."""
    found = False
    for file in list(_files(folder)):
        if file.name.startswith(("_", ".")) or not _has_rows(file, form, heads=heads):
            file.unlink()
        else:
            found = True
    return found


def _has_rows(file: Path, form: str, *, heads: bool) -> bool:
    match form:
        case "parquet":
            return bool(parquet.read_metadata(file).num_rows)
        case "orc":
            return bool(orc.ORCFile(file).nrows)
        case _:
            return _goes_on(file, after=int(heads))


def _goes_on(file: Path, after: int) -> bool:
    """Whether a text has anything after so many lines; if only Spark can read it, whether it has anything."""
    codec = None if file.suffix in {".csv", ".json"} else _CODECS.get(file.suffix, "")
    if codec == "":
        return file.stat().st_size > 0
    with pa.input_stream(file, compression=codec) as text:
        while piece := text.read(1 << 16):
            rest = piece.split(b"\n", after)
            after -= len(rest) - 1
            if not after and rest[-1]:
                return True
    return False


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _settle(folder: Path) -> None:
    """Have the disk hold what is about to be published."""
    for path in [folder, *folder.rglob("*")]:
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
