"""One process at a time on a checkpoint: two of them would write the same micro-batches over each other.

The lock is the operating system's, on a file in the checkpoint, so that it ends with the process that held
it, however that ended. The file tells who holds it. A checkpoint that is no local path has no such lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from windowpane.values.errors import WindowpaneError
from windowpane.values.paths import local_path

LOCK = "windowpane.lock"


class CheckpointInUse(WindowpaneError, RuntimeError):
    """Another process runs on the checkpoint, or it cannot be written to."""


@contextmanager
def held(checkpoint: str | None) -> Iterator[None]:
    """Hold the checkpoint for this process, or raise `CheckpointInUse` at once."""
    folder = None if checkpoint is None else local_path(checkpoint)
    if folder is None:
        yield
        return
    descriptor = _opened(folder)
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)  # which unlocks; the file stays, since another may have opened it by now


def _opened(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CheckpointInUse(
            f"the checkpoint {str(folder)!r} cannot be written to: {error.strerror}. "
            "Make the directory writable, or name another."
        ) from error


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CheckpointInUse(
            f"the checkpoint {str(folder)!r} is in use by {_holder(descriptor)}. "
            "Stop that job first, or give this one a checkpoint of its own."
        ) from None
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(" ", "seconds"),
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _holder(descriptor: int) -> str:
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {found['pid']} on {found['host']} since {found['since']}"
    except (ValueError, KeyError, TypeError):  # it has the lock, but did not write yet
        return "another process"
