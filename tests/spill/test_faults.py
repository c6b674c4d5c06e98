"""Damaged, swapped, stale and foreign blocks, a failing disk, a killed process: never a wrong answer.

Short versions of rows 2, 8 to 11 and 14 to 18 of the fault matrix.
"""

import errno
import gc
import os
import random
import resource
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spill.killed import Killer, in_a_child
from windowpane.core.spill import folder as folders
from windowpane.core.spill.codec import Stamp, block_layout, seal, verify
from windowpane.core.spill.medium import FileMedium, new_buffer
from windowpane.core.spill.store import BlockStore
from windowpane.errors import BadQuery, BadState, DiskFull, OverBudget, SpillFailed, TooManyWindows, WrongType
from windowpane.values.sizes import Budget

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "v": pa.float64()})
SMALL = Budget(10**7, block_bytes=1024, blocks=2)
WINDOW = 2_000


def query(window=WINDOW):
    stream = wp.stream(schema=SCHEMA, time="t", keys="k")
    return stream.window(wp.per_row(window).per()).agg(total=wp.sum("v"), most=wp.max("v"), n=wp.count())


def rows(first, n=500):
    t = np.arange(first, first + n)
    return pa.table({"t": t, "k": t % 7, "v": (t * 37 % 1_001) / 8}, schema=SCHEMA)


def answers(batches):
    """What a run in memory says, push by push."""
    runner = query().start()
    return [runner.answers(runner.push(batch)).sort_by("window").to_pylist() for batch in batches]


def running(tmp_path, pushes=8, budget=SMALL):
    runner = query().start(memory=budget, spill_dir=tmp_path / "run")
    for i in range(pushes):
        runner.push(rows(500 * i))
    return runner


def pushed(runner, batches, found):
    """Push batches and note the answers of each, as far as it goes."""
    for batch in batches:
        table = runner.answers(runner.push(batch))
        found += [table.sort_by("window").to_pylist()]


def blocks_of(runner):
    return runner.folder.path / "blocks-0"


def go_on(runner, pushes=8):
    """Push on until every block that is on disk was read; the answers, or the error."""
    for i in range(8, 8 + pushes):
        runner.push(rows(500 * i))


# rows 9 to 11: damage


def test_every_flipped_bit_is_found():
    """A thousand places of a block, one bit each."""
    layout = block_layout({"t": np.int64, "v": np.float64, "k": np.int32}, 4096)
    stamp = Stamp(b"0123456789abcdef", 3, 17, layout.capacity)
    buffer = new_buffer(4096)
    buffer[64:] = np.random.default_rng(1).integers(0, 256, 4096 - 64)
    seal(buffer, layout, stamp)
    verify(buffer, layout, stamp, "here")
    rng = random.Random(5)
    for _ in range(1_000):
        byte, bit = rng.randrange(4096), rng.randrange(8)
        buffer[byte] ^= 1 << bit
        with pytest.raises(BadState):
            verify(buffer, layout, stamp, "here")
        buffer[byte] ^= 1 << bit
    verify(buffer, layout, stamp, "here")


@pytest.mark.parametrize("seed", range(10))
def test_a_flipped_bit_on_disk_ends_the_run_and_names_the_block(tmp_path, seed):
    runner = running(tmp_path)
    path, rng = blocks_of(runner), random.Random(seed)
    in_use = [slot for slot in runner._spill.lanes[0].store.slots.to_array().tolist() if slot >= 0]
    slot = rng.choice(in_use)
    with path.open("r+b") as file:
        at = slot * 1024 + rng.randrange(1024)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << rng.randrange(8))]))
    with pytest.raises(BadState, match=rf"block {slot} \(offset {slot * 1024}\) of .*blocks-0 is damaged"):
        go_on(runner)
    with pytest.raises(BadState, match="this run failed"):
        runner.push(rows(10**6))
    runner.discard()


@pytest.mark.parametrize("cut", [0, 1, 512, 1023])
@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_cut_file_is_found(tmp_path, cut, place):
    runner = running(tmp_path)
    in_use = sorted(s for s in runner._spill.lanes[0].store.slots.to_array().tolist() if s >= 0)
    os.truncate(blocks_of(runner), in_use[place] * 1024 + cut)
    with pytest.raises(BadState, match="is damaged: the file ends after"):
        go_on(runner)
    runner.discard()


def test_swapped_blocks_are_found(tmp_path):
    runner = running(tmp_path)
    ring = runner._spill.lanes[0].store.slots
    a, b = [slot for slot in ring.to_array().tolist() if slot >= 0][3:5]
    data = bytearray(blocks_of(runner).read_bytes())
    data[a * 1024 : a * 1024 + 1024], data[b * 1024 : b * 1024 + 1024] = (
        data[b * 1024 : b * 1024 + 1024],
        data[a * 1024 : a * 1024 + 1024],
    )
    blocks_of(runner).write_bytes(data)
    with pytest.raises(BadState, match=r"is damaged: it holds block \d+ of epoch 1"):
        go_on(runner)
    runner.discard()


def test_a_stale_block_is_found(tmp_path):
    """The block that lay in this place before, with a valid checksum."""
    runner = running(tmp_path)
    old = blocks_of(runner).read_bytes()
    go_on(runner, 2)
    ring = runner._spill.lanes[0].store.slots
    now = blocks_of(runner).read_bytes()
    for slot in (s for s in ring.to_array().tolist() if s >= 0):
        was = old[slot * 1024 : slot * 1024 + 1024]
        if was and was != now[slot * 1024 : slot * 1024 + 1024] and was[:4] == b"WPSB":
            with blocks_of(runner).open("r+b") as file:
                file.seek(slot * 1024)
                file.write(was)
            break
    else:
        pytest.fail("no place was used twice")
    with pytest.raises(BadState, match="is damaged: it holds block"):
        pushed(runner, [rows(500 * i) for i in range(10, 20)], [])
    runner.discard()


def test_a_block_of_another_run_is_found(tmp_path):
    runner, other = running(tmp_path / "a"), running(tmp_path / "b")
    shutil.copyfile(blocks_of(other), blocks_of(runner))
    with pytest.raises(BadState, match="is damaged: it is of another store"):
        go_on(runner)
    runner.discard()
    other.discard()


def test_a_damaged_checkpoint_is_refused(tmp_path):
    runner = running(tmp_path)
    runner.checkpoint()
    runner.discard()
    path = tmp_path / "run" / "checkpoint"
    whole = path.read_bytes()
    rng = random.Random(3)
    for _ in range(40):
        at = rng.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
        with pytest.raises(BadState):
            query().resume(tmp_path / "run")
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(BadState):
            query().resume(tmp_path / "run")
    path.write_bytes(whole)
    runner = query().resume(tmp_path / "run")
    with pytest.raises(BadState, match="another plan"):
        query(WINDOW + 1).resume(_moved(runner, tmp_path))


def _moved(runner, tmp_path):
    """A copy of a run's directory, as if its process were gone."""
    runner.discard()
    return shutil.copytree(tmp_path / "run", tmp_path / "copy")


# rows 14 to 16: a disk that is full or fails


def failing(runner, code, after):
    """From now on the disk fails at its n-th write."""
    medium, left = runner._media[0], [after]
    write = medium._pwrite

    def pwrite(view, at):
        if left[0] <= 0:
            raise OSError(code, os.strerror(code))
        left[0] -= 1
        return write(view, at)

    medium._pwrite = pwrite
    return write


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("after", [0, 1, 3, 7, 12])
def test_nothing_is_lost_when_writing_fails(tmp_path, code, after):
    batches = [rows(500 * i) for i in range(12)]
    expected = answers(batches)
    runner = query().start(memory=SMALL, spill_dir=tmp_path / "run")
    found = [runner.answers(runner.push(batch)).sort_by("window").to_pylist() for batch in batches[:6]]
    write = failing(runner, code, after)
    wanted = DiskFull if code == errno.ENOSPC else SpillFailed
    with pytest.raises(wanted, match=str(tmp_path / "run")):
        pushed(runner, batches[6:], found)
    runner._media[0]._pwrite = write  # room was made
    pushed(runner, batches[len(found) :], found)
    assert found == expected
    runner.discard()


def test_a_full_disk_by_the_size_of_a_file(tmp_path):
    """The system's own limit: nothing acknowledged is lost, and the run goes on once there is room."""
    batches = [rows(500 * i) for i in range(12)]
    expected = answers(batches)
    runner = query().start(memory=SMALL, spill_dir=tmp_path / "run")
    found = [runner.answers(runner.push(batch)).sort_by("window").to_pylist() for batch in batches[:2]]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (24 * 1024, hard))
    try:
        with pytest.raises(DiskFull, match="there is no room to"):
            pushed(runner, batches[2:], found)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(found) < len(batches)
    pushed(runner, batches[len(found) :], found)
    assert found == expected
    runner.discard()


def test_a_checkpoint_that_fails_leaves_the_last_one(tmp_path):
    batches = [rows(500 * i) for i in range(12)]
    expected = answers(batches)
    runner = query().start(memory=SMALL, spill_dir=tmp_path / "run")
    for batch in batches[:5]:
        runner.push(batch)
    runner.checkpoint()
    for batch in batches[5:7]:
        runner.push(batch)

    def fsync():
        raise OSError(errno.EIO, "I/O error")

    runner._media[0]._fsync = fsync
    with pytest.raises(SpillFailed, match="cannot sync"):
        runner.checkpoint()
    runner.discard()
    again = query().resume(tmp_path / "run")
    found = [again.answers(again.push(batch)).sort_by("window").to_pylist() for batch in batches[5:]]
    assert found == expected[5:]
    again.discard()


def test_a_failing_read_ends_the_run(tmp_path):
    runner = running(tmp_path)

    def pread(_into, _at):
        raise OSError(errno.EIO, "I/O error")

    runner._media[0]._pread = pread
    with pytest.raises(SpillFailed, match=r"cannot read .*blocks-0: Input/output error"):
        go_on(runner)
    with pytest.raises(BadState, match="this run failed"):
        go_on(runner)
    runner.discard()


# row 17: directories


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


# rows 2, 8 and 18: killed and short of memory

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


def test_a_window_ten_times_the_cap_keeps_to_it(tmp_path):
    """Row 18, by what the run itself counts; the benchmark `slidem` watches the process."""
    budget = Budget(400_000, block_bytes=4096)
    runner = query(10**7).start(memory=budget, spill_dir=tmp_path / "run")
    most = 0
    for i in range(12):
        runner.push(rows(20_000 * i, 20_000))
        most = max(most, runner.state_bytes)
    held = 240_000 * runner._spill.lanes[0].store.layout.row_bytes
    assert held > 10 * budget.memory
    assert most <= budget.memory * 1.1
    assert runner.disk_bytes <= 1.2 * held
    runner.discard()


def keyed(first, n=500):
    """Rows with a key each."""
    t = np.arange(first, first + n)
    return pa.table({"t": t, "k": t, "v": t / 2}, schema=SCHEMA)


def test_sums_beyond_the_budget_are_told_and_lose_no_answer(tmp_path):
    memory = query(10**6).start()
    expected = [memory.answers(memory.push(keyed(0, 100))), memory.answers(memory.push(keyed(100, 5_000)))]
    expected.append(memory.answers(memory.close()))
    runner = query(10**6).start(memory=Budget(200_000, block_bytes=4096), spill_dir=tmp_path / "run")
    assert runner.answers(runner.push(keyed(0, 100))).num_rows == expected[0].num_rows
    told = r"memory= is 200,000 bytes, but the sums of 5,100 keys"
    with pytest.raises(OverBudget, match=told) as failed:
        runner.push(keyed(100, 5_000))
    assert failed.value.__notes__[0].startswith("5,000 rows of this push were taken in")
    with pytest.raises(OverBudget, match=told) as failed:
        runner.push(keyed(6_000))
    assert not hasattr(failed.value, "__notes__")
    assert runner.counts.input == 5_100
    found = runner.answers(runner.close())
    assert found.num_rows == expected[1].num_rows + expected[2].num_rows
    assert found.column("total").to_pylist() == [
        *expected[1]["total"].to_pylist(),
        *expected[2]["total"].to_pylist(),
    ]


def test_a_run_that_outgrew_its_budget_goes_on_with_a_larger_one(tmp_path):
    memory = query(10**6).start()
    expected = [memory.answers(memory.push(keyed(at, 1_000))).to_pylist() for at in range(0, 4_000, 1_000)]
    runner = query(10**6).start(memory=Budget(1_200_000, block_bytes=4096), spill_dir=tmp_path / "run")
    found = [runner.answers(runner.push(keyed(0, 1_000))).to_pylist()]
    with pytest.raises(OverBudget):
        runner.push(keyed(1_000, 1_000))
    found += [runner.answers(runner.punctuate(runner.bound)).to_pylist()]
    runner.checkpoint()
    runner.discard()
    runner = query(10**6).resume(tmp_path / "run", memory="8 MB")
    assert runner.budget == Budget(8_000_000, block_bytes=4096)
    found += [runner.answers(runner.push(keyed(at, 1_000))).to_pylist() for at in (2_000, 3_000)]
    assert found == expected
    runner.close()
    with pytest.raises(BadQuery, match="memory= is for a run that goes on from a checkpoint"):
        query().resume(memory.snapshot(), memory="8 MB")


@pytest.mark.parametrize("technique", ["1W", "2LA"])
def test_a_step_that_closes_too_many_windows_is_undone(tmp_path, technique):
    stream = wp.stream(schema=SCHEMA, time="t", keys="k", delay=10)
    budget = Budget(10**6, block_bytes=1024, technique=technique)
    runner = stream.window(wp.sliding(10**12, 1)).agg(n=wp.count()).start(memory=budget, spill_dir=tmp_path)
    runner.push(rows(0, 100))
    before = runner.bound
    with pytest.raises(TooManyWindows):
        runner.punctuate(10**11)
    assert runner.bound == before
    with pytest.raises(TooManyWindows):
        runner.push(rows(10**11, 100))
    assert runner.counts.input == 100
    assert runner.answers(runner.push(rows(100, 20))).num_rows > 0
    runner.discard()


def full(runner):
    """From now on the disk takes nothing, neither blocks nor reservations; how to end that."""
    medium = runner._media[0]
    write, allocate = medium._pwrite, medium._allocate

    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def mend():
        medium._pwrite, medium._allocate = write, allocate

    medium._pwrite = medium._allocate = refuse
    return mend


def test_a_full_disk_while_sums_take_the_room_of_blocks(tmp_path):
    """More keys, fewer blocks: those that cannot go wait, and the push after says what is wrong."""
    batches = [rows(0, 10_000), *(keyed(10_000 + 200 * i, 200) for i in range(5)), rows(11_000), rows(11_500)]
    memory = query(10**6).start()
    expected = []
    pushed(memory, batches, expected)
    runner = query(10**6).start(memory=Budget(1_100_000, block_bytes=4096), spill_dir=tmp_path / "run")
    found = []
    pushed(runner, batches[:1], found)
    mend = full(runner)
    store = runner._spill.lanes[0].store
    while len(store._frames) <= store.frames:
        pushed(runner, [batches[len(found)]], found)
    with pytest.raises(DiskFull):
        runner.push(rows(20_000, 2_000))
    mend()
    pushed(runner, batches[len(found) :], found)
    assert found == expected
    assert len(store._frames) <= store.frames
    runner.discard()


def test_a_full_disk_after_a_restart_does_not_end_the_run(tmp_path):
    """A pool larger than two: windows read blocks while those in memory have no place on disk."""
    budget = Budget(10**7, block_bytes=1024, blocks=6)
    batches = [rows(500 * i) for i in range(8)] + [rows(4_000 + 25 * i, 25) for i in range(40)]
    expected = answers(batches)
    running(tmp_path, budget=budget).checkpoint()
    runner = query().resume(tmp_path / "run")
    mend, found, refused = full(runner), [], 0
    for batch in batches[8:]:
        try:
            pushed(runner, [batch], found)
        except DiskFull:
            refused += 1
            mend()
            pushed(runner, [batch], found)
            mend = full(runner)
    assert refused > 0
    assert found == expected[8:]
    runner.discard()


def test_a_store_of_a_medium_that_fails_to_open_is_told(tmp_path):
    (tmp_path / "blocks").write_bytes(b"")
    with pytest.raises(SpillFailed, match=r"cannot open .*blocks: File exists"):
        BlockStore(block_layout({"t": np.int64}), FileMedium(tmp_path / "blocks", 65536), 2)


def test_a_push_of_several_pieces_that_fails_says_where_to_go_on(tmp_path, monkeypatch):
    """What the pieces before it brought is in the sums: their answers come, and the rest is pushed again."""
    monkeypatch.setattr("windowpane.local.runner._MOST_ROWS", 500)
    expected = answers([rows(500 * i) for i in range(12)])
    runner = running(tmp_path, pushes=6)
    write = failing(runner, errno.ENOSPC, 30)
    with pytest.raises(DiskFull) as failed:
        runner.push(rows(3_000, 3_000))
    taken = runner.counts.input - 3_000
    assert 0 < taken < 3_000
    assert failed.value.__notes__[0].startswith(f"{taken:,} rows of this push were taken in before it failed")
    runner._media[0]._pwrite = write
    step = runner.push(rows(3_000 + taken, 3_000 - taken))
    found = runner.answers(step).sort_by("window").to_pylist()
    assert found == [row for some in expected[6:] for row in some]
    runner.discard()
