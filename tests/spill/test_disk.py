"""A disk that is full or fails and a budget that is too small lose nothing: rows 14 to 16 and 18."""

import errno
import resource

import numpy as np
import pytest

import windowpane as wp
from tests.spill.runs import SCHEMA, SMALL, answers, failing, full, go_on, keyed, pushed, query, rows, running
from windowpane.core.spill.codec import block_layout
from windowpane.core.spill.medium import FileMedium
from windowpane.core.spill.store import BlockStore
from windowpane.errors import BadQuery, BadState, DiskFull, OverBudget, SpillFailed, TooManyWindows
from windowpane.values.sizes import Budget

BATCHES = [rows(500 * i) for i in range(12)]


def begun(tmp_path, pushes):
    """A run that has taken some of the batches, and its answers."""
    runner, found = query().start(memory=SMALL, spill_dir=tmp_path / "run"), []
    pushed(runner, BATCHES[:pushes], found)
    return runner, found


def end_as_in_memory(runner, found):
    """Push the batches whose answers are not there; all answers are those of a run in memory."""
    pushed(runner, BATCHES[len(found) :], found)
    assert found == answers(BATCHES)
    runner.discard()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("after", [0, 1, 3, 7, 12])
def test_nothing_is_lost_when_writing_fails(tmp_path, code, after):
    runner, found = begun(tmp_path, 6)
    write = failing(runner, code, after)
    wanted = DiskFull if code == errno.ENOSPC else SpillFailed
    with pytest.raises(wanted, match=str(tmp_path / "run")):
        pushed(runner, BATCHES[6:], found)
    runner._media[0]._pwrite = write  # room was made
    end_as_in_memory(runner, found)


def test_a_full_disk_by_the_size_of_a_file(tmp_path):
    """The system's own limit: nothing acknowledged is lost, and the run goes on once there is room."""
    runner, found = begun(tmp_path, 2)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (24 * 1024, hard))
    try:
        with pytest.raises(DiskFull, match="there is no room to"):
            pushed(runner, BATCHES[2:], found)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(found) < len(BATCHES)
    end_as_in_memory(runner, found)


def test_a_checkpoint_that_fails_leaves_the_last_one(tmp_path):
    runner, found = begun(tmp_path, 5)
    runner.checkpoint()
    for batch in BATCHES[5:7]:
        runner.push(batch)

    def fsync():
        raise OSError(errno.EIO, "I/O error")

    runner._media[0]._fsync = fsync
    with pytest.raises(SpillFailed, match="cannot sync"):
        runner.checkpoint()
    runner.discard()
    end_as_in_memory(query().resume(tmp_path / "run"), found)


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
