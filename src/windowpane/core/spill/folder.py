"""The directory of a run's blocks: private, locked while in use, and gone when it is over.

A run without a directory of its own gets a temporary one. What a crash left of those is removed when the next
run starts: the lock of a process ends with the process, so a directory whose lock is free has no owner.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path

from windowpane.core.spill.medium import told
from windowpane.values.errors import BadQuery, BadState

PREFIX = "windowpane-spill-"
CHECKPOINT = "checkpoint"
_LOCK, _NEW_LOCK, _TEMPORARY = "lock", "lock.new", "checkpoint.new"
_HOUR = 3600


class SpillFolder:
    """A directory that this run alone uses."""

    def __init__(self, path: Path | None = None, *, resume: bool = False) -> None:
        """`path` is a directory for this run; without one a temporary directory is made and removed."""
        self.temporary = path is None
        if path is None:
            root = Path(tempfile.gettempdir())
            sweep(root)
            try:
                self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
            except OSError as error:
                raise told(error, "make a directory in", root) from error
            self._lock = _locked(self.path)
        else:
            self.path = path
            _prepare(path)
            self._lock = _locked(path)
            try:
                self._check(resume=resume)
            except BaseException:
                os.close(self._lock)
                raise
        self._finalizer = weakref.finalize(self, _leave, self.path, self._lock, self.temporary)

    def _check(self, *, resume: bool) -> None:
        there = (self.path / CHECKPOINT).exists()
        if resume and not there:
            raise BadState(f"there is no checkpoint in {self.path}. Start the query anew.")
        if there and not resume:
            raise BadQuery(
                f"{self.path} holds the checkpoint of another run. Go on with it by "
                f"query.resume({str(self.path)!r}), or remove the directory."
            )
        with suppress(FileNotFoundError):
            (self.path / _TEMPORARY).unlink()
        if not there:
            _remove_blocks(self.path)

    def blocks(self, lane: int) -> Path:
        """The file for the blocks of a lane."""
        return self.path / f"blocks-{lane}"

    def keep_lanes(self, lanes: int) -> None:
        """Remove the blocks of lanes that a checkpoint does not know: a lost life made them after it."""
        _remove_blocks(self.path, lanes)

    def read_checkpoint(self) -> bytes:
        """The last checkpoint."""
        path = self.path / CHECKPOINT
        try:
            return path.read_bytes()
        except OSError as error:
            raise told(error, "read", path) from error

    def write_checkpoint(self, data: bytes) -> Path:
        """Put a checkpoint in the place of the last one, at once and for good."""
        path, temporary = self.path / CHECKPOINT, self.path / _TEMPORARY
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(temporary, flags, 0o600), "wb") as file:  # noqa: PTH123 - from a descriptor
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            directory = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise told(error, "write", temporary) from error
        return path

    def leave(self) -> None:
        """Let go of the directory; the files of a checkpoint stay for another process to go on with."""
        self._finalizer()

    def remove(self) -> None:
        """The run is over: nothing of it stays."""
        if self._finalizer.detach():
            _remove_blocks(self.path)
            for name in (CHECKPOINT, _TEMPORARY, _LOCK):
                with suppress(FileNotFoundError):
                    (self.path / name).unlink()
            if self.temporary:
                shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)


def sweep(root: Path) -> int:
    """Remove temporary directories whose process is gone; how many."""
    removed = 0
    for path in root.glob(PREFIX + "*"):
        with suppress(OSError):
            status = path.lstat()
            if path.is_symlink() or not path.is_dir() or status.st_uid != os.getuid():
                continue
            if not (path / _LOCK).exists():
                # made a moment ago by a process that has not locked it yet, or left by one that never did
                if time.time() - status.st_mtime > _HOUR:
                    shutil.rmtree(path, ignore_errors=True)
                    removed += 1
                continue
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
                removed += 1
            finally:
                os.close(lock)
    return removed


def _prepare(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise told(error, "make the directory", path) from error
    if path.is_symlink() or status.st_uid != os.getuid():
        raise BadQuery(f"spill_dir {path} is a link or another user's. Give a directory of your own.")
    if not os.access(path, os.W_OK | os.X_OK):
        raise told(PermissionError(13, "Permission denied"), "write to the directory", path)
    path.chmod(0o700)


def _locked(path: Path) -> int:
    """Take the lock of a directory; it is let go when this process ends, however it ends."""
    lock = path / _LOCK
    try:
        while True:
            file = _new_lock(path, lock) if not lock.exists() else _old_lock(path, lock)
            if file is not None:
                return file
    except OSError as error:
        raise told(error, "lock", lock) from error


def _new_lock(path: Path, lock: Path) -> int | None:
    """A lock that is taken before it has its name, so that nobody finds it free; None if another is there."""
    file, name = tempfile.mkstemp(prefix=_NEW_LOCK, dir=path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.link(name, lock)
    except FileExistsError:
        os.close(file)
        return None
    except BaseException:
        os.close(file)
        raise
    finally:
        Path(name).unlink()
    return file


def _old_lock(path: Path, lock: Path) -> int | None:
    """The lock that somebody left; None if it went while it was being taken."""
    try:
        file = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file), lock.stat()):
            return file
    except BlockingIOError:
        os.close(file)
        raise BadQuery(
            f"another run is using {path}. Wait until it ends, or give another spill_dir."
        ) from None
    except FileNotFoundError:
        pass
    os.close(file)
    return None


def _remove_blocks(path: Path, first: int = 0) -> None:
    for blocks in path.glob("blocks-*"):
        if int(blocks.name.removeprefix("blocks-")) >= first:
            blocks.unlink()


def _leave(path: Path, lock: int, temporary: bool) -> None:  # noqa: FBT001 - called by weakref
    """At the end of a run or of the process: remove what nobody can go on with."""
    if temporary:
        shutil.rmtree(path, ignore_errors=True)
    elif not (path / CHECKPOINT).exists():
        with suppress(OSError):
            _remove_blocks(path)
            (path / _TEMPORARY).unlink(missing_ok=True)
            (path / _LOCK).unlink()
    os.close(lock)
