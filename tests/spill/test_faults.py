"""Directories and killed processes, what stays and for whom: rows 2, 8 and 17 of the fault matrix."""

import gc
import os
import signal
import time
from pathlib import Path

import pyarrow as pa
import pytest

import windowpane as wp
from tests.spill.killed import Killer, in_a_child
from tests.spill.runs import SMALL, answers, query, rows, running
from windowpane.core.spill import folder as folders
from windowpane.errors import BadQuery, BadState, SpillFailed, WrongType


def test_a_directory_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(SpillFailed, match=r"cannot make the directory .*file/run"):
        query().start(memory=SMALL, spill_dir=tmp_path / "file" / "run")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_told(tmp_path):
    (tmp_path / "run").mkdir(mode=0o500)
    with pytest.raises(SpillFailed, match="cannot write to the directory"):
        query().start(memory=SMALL, spill_dir=tmp_path / "run")


def test_a_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(BadQuery, match="is a link or another user's"):
        query().start(memory=SMALL, spill_dir=tmp_path / "link")


def test_two_runs_cannot_share_a_directory(tmp_path):
    runner = running(tmp_path)
    with pytest.raises(BadQuery, match="another run is using"):
        query().start(memory=SMALL, spill_dir=tmp_path / "run")
    runner.checkpoint()
    runner.discard()
    with pytest.raises(BadQuery, match="holds the checkpoint of another run"):
        query().start(memory=SMALL, spill_dir=tmp_path / "run")


def test_files_are_private(tmp_path):
    runner = running(tmp_path)
    runner.checkpoint()
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "run").iterdir()}
    assert modes == {"lock": 0o600, "blocks-0": 0o600, "checkpoint": 0o600}
    runner.discard()


def test_nothing_stays_after_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(folders.tempfile, "tempdir", str(tmp_path))
    with query().start(memory=SMALL) as runner:
        runner.push(rows(0))
        (made,) = tmp_path.iterdir()
        assert made.name.startswith(folders.PREFIX)
        assert made.stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.iterdir())
    query().start(memory=SMALL).close()
    assert not list(tmp_path.iterdir())


# rows 2 and 8: killed

PUSHES = 14


def life(spill, found, killer):
    """Go on from the last checkpoint, or start; a push that is done again replaces its file of answers."""
    killer.everywhere()
    there = (spill / "checkpoint").exists()
    runner = query().resume(spill) if there else query().start(memory=SMALL, spill_dir=spill)
    killer.watch(runner)
    # the checkpoint itself says how many rows it has seen
    for i in range(runner.counts.input // 500, PUSHES):
        table = runner.answers(runner.push(rows(500 * i))).sort_by("window")
        killer.watch(runner)
        (found / str(i)).write_text(repr(table.to_pylist()), "utf-8")
        if i % 2:
            runner.checkpoint()
    runner.discard()


@pytest.mark.parametrize(
    ("point", "waits"),
    [
        ("torn write", (5, 30, 90)),
        ("after sync", (1,)),
        ("before rename", (2,)),
        ("after rename", (2,)),
        ("purge", (40,)),
    ],
)
def test_killed_at_any_point_it_goes_on_without_loss(tmp_path, point, waits):
    spill, found = tmp_path / "spill", tmp_path / "found"
    found.mkdir()
    expected = answers([rows(500 * i) for i in range(PUSHES)])
    running(tmp_path).discard()  # compiles, so that the lives below need not
    for wait in waits:
        assert in_a_child(lambda: life(spill, found, Killer(point, wait))) == -signal.SIGKILL  # noqa: B023
        left = {path.name for path in spill.iterdir()} - {"lock", "blocks-0", "checkpoint"}
        assert left <= {"checkpoint.new"}, "what a crash leaves does not pile up"
    assert in_a_child(lambda: life(spill, found, Killer("none", 0))) == 0
    assert {path.name for path in spill.iterdir()} == {"lock", "blocks-0", "checkpoint"}
    assert [eval((found / str(i)).read_text()) for i in range(PUSHES)] == expected  # noqa: S307 - our own repr


def test_what_a_killed_run_left_is_removed_at_the_next_start(tmp_path, monkeypatch):
    monkeypatch.setattr(folders.tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()

    def die():
        runner = query().start(memory=SMALL)
        for i in range(6):
            runner.push(rows(500 * i))
        os.kill(os.getpid(), 9)

    assert in_a_child(die) == -signal.SIGKILL
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    with query().start(memory=SMALL) as runner:
        runner.push(rows(0))
        assert list((tmp_path / "temporary").iterdir()) == [runner.folder.path]
    assert not list((tmp_path / "temporary").iterdir())


def open_files():
    found = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return [name for name in found if "blocks-0" in str(name)]


def test_a_run_that_is_dropped_leaves_no_file_open(tmp_path):
    """An open file would keep its room on the disk though nobody can see it."""
    running(tmp_path)
    gc.collect()
    assert open_files() == []
    assert not list((tmp_path / "run").iterdir())


def test_a_run_that_cannot_go_on_leaves_no_file_open(tmp_path):
    runner = running(tmp_path)
    runner.checkpoint()
    runner.discard()
    os.truncate(tmp_path / "run" / "blocks-0", 100)
    with pytest.raises(BadState):
        query().resume(tmp_path / "run")
    gc.collect()
    assert open_files() == []
    assert (tmp_path / "run" / "checkpoint").exists()


def test_nothing_stays_of_a_run_without_a_checkpoint(tmp_path):
    runner = running(tmp_path)
    assert runner.disk_bytes > 0
    runner.discard()
    assert not list((tmp_path / "run").iterdir())
    assert runner.disk_bytes == 0
    assert runner.io.writes > 0
    for use in (lambda: runner.push(rows(10**6)), runner.checkpoint, runner.close, lambda: runner.tick(0)):
        with pytest.raises(BadQuery, match="this run was discarded"):
            use()
    runner.discard()


def test_nothing_stays_of_a_run_that_fails(tmp_path):
    table = pa.table(
        {"t": [1, 2], "u": [1, 2**64 - 1]}, schema=pa.schema({"t": pa.int64(), "u": pa.uint64()})
    )
    stream = wp.stream([table.slice(0, 1), table.slice(1)], time="t")
    query = stream.window(wp.per_row(10)).agg(wp.sum("u"))
    with pytest.raises(WrongType, match="above the largest int64"):
        query.run(memory=SMALL, spill_dir=tmp_path / "run")
    assert not list((tmp_path / "run").iterdir())


def test_one_of_many_gets_a_directory(tmp_path):
    """Runs that start at the same moment, again and again, some of which end at once: never two at a time."""
    inside = tmp_path / "inside"

    def compete():
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            try:
                folder = folders.SpillFolder(tmp_path / "run")
            except BadQuery:
                continue
            inside.mkdir()
            inside.rmdir()
            folder.leave()

    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            try:
                compete()
            except BaseException:  # noqa: BLE001 - all that a child can say is how it ended
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert not list((tmp_path / "run").iterdir())


def test_a_directory_in_use_is_not_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(folders.tempfile, "tempdir", str(tmp_path))
    with query().start(memory=SMALL) as runner:
        runner.push(rows(0))
        assert folders.sweep(tmp_path) == 0
        runner.push(rows(500))
