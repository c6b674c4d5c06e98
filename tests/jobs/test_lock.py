"""One process at a time on a checkpoint."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from windowpane.jobs.lock import LOCK, CheckpointInUse, held

HOLDER = """
import sys, time
from windowpane.jobs.lock import held
with held(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the checkpoint."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "state")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_and_told_who_runs(tmp_path, holder):
    with pytest.raises(CheckpointInUse) as raised, held(str(tmp_path / "state")):
        pass
    assert f"is in use by process {holder.pid} on {socket.gethostname()} since 2" in str(raised.value)
    assert "Stop that job first" in str(raised.value)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_lock_of_a_dead_process_is_taken_over(tmp_path, holder, number):
    os.kill(holder.pid, number)
    holder.wait()
    assert str(holder.pid) in (tmp_path / "state" / LOCK).read_text()
    with held(f"file://{tmp_path}/state"):
        assert f'"pid": {os.getpid()}' in (tmp_path / "state" / LOCK).read_text()


def test_it_is_free_again_afterwards_also_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), held(str(tmp_path)):
        1 / 0  # noqa: B018 - it raises
    with held(str(tmp_path)), pytest.raises(CheckpointInUse), held(str(tmp_path)):
        pass


def test_processes_that_the_holder_starts_do_not_hold_it(tmp_path):
    with held(str(tmp_path)):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with held(str(tmp_path)):
            pass
    finally:
        child.kill()
        child.wait()


def test_a_checkpoint_elsewhere_or_none_is_not_locked():
    with held(None), held("s3://bucket/state"), held("hdfs://host/state"):
        pass


def test_a_checkpoint_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CheckpointInUse, match=r"file/state' cannot be written to: Not a directory\. Make"),
        held(str(tmp_path / "file" / "state")),
    ):
        pass
