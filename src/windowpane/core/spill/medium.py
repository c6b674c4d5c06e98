"""Where blocks lie: in a file, or in memory. Every request is counted."""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from windowpane.core.spill.codec import Buffer, damaged
from windowpane.values.errors import DiskFull, SpillFailed

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
SET_ASIDE = 256
"""At most so many blocks are set aside on the disk at once."""


@dataclass
class IoCounts:
    """Requests and bytes; `spared` are evictions that needed no write, as the block was on disk already."""

    reads: int = 0
    writes: int = 0
    spared: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return self.reads + self.writes


class Medium(Protocol):
    """Numbered places for blocks of one size."""

    counts: IoCounts

    def read(self, slot: int, into: Buffer) -> None:
        """Fill the buffer with the block at a place."""

    def write(self, slot: int, block: Buffer) -> None:
        """Put a block at a place."""

    def reserve(self, slots: int) -> None:
        """Make sure that writes to the first `slots` places will find room."""

    def sync(self) -> None:
        """All that was written is safe from a power cut after this."""

    def where(self, slot: int) -> str:
        """A place as a user would look for it."""


class MemoryMedium:
    """Blocks in memory: for tests, and for stores that must not touch a disk."""

    def __init__(self) -> None:
        self.counts = IoCounts()
        self.blocks: dict[int, Buffer] = {}

    def read(self, slot: int, into: Buffer) -> None:
        """Fill the buffer with the block at a place."""
        into[:] = self.blocks[slot]
        self.counts.reads += 1
        self.counts.bytes_read += len(into)

    def write(self, slot: int, block: Buffer) -> None:
        """Put a block at a place."""
        self.blocks[slot] = block.copy()
        self.counts.writes += 1
        self.counts.bytes_written += len(block)

    def reserve(self, slots: int) -> None:
        """Memory needs no reservation."""

    def sync(self) -> None:
        """Memory is as safe as it gets."""

    def where(self, slot: int) -> str:
        """A place in words."""
        return f"block {slot} in memory"


class FileMedium:
    """Blocks in one file, which only its owner may read."""

    def __init__(self, path: Path, block_bytes: int, *, create: bool = True) -> None:
        self.path, self.block_bytes = path, block_bytes
        self.counts = IoCounts()
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT | os.O_EXCL if create else 0)
        with self._told("open"):
            self._file = os.open(path, flags, 0o600)
        # also for a run that is dropped: an open file keeps its room on the disk after it is removed
        self._close = weakref.finalize(self, os.close, self._file)
        self._reserved = os.fstat(self._file).st_size // block_bytes

    def read(self, slot: int, into: Buffer) -> None:
        """Fill the buffer with the block at a place; a file that ends before is an error."""
        with self._told("read"):
            got = self._pread(into, slot * self.block_bytes)
        if got != self.block_bytes:
            raise damaged(self.where(slot), f"the file ends after {got} of its {self.block_bytes} bytes")
        self.counts.reads += 1
        self.counts.bytes_read += got

    def write(self, slot: int, block: Buffer) -> None:
        """Put a block at a place."""
        view, at = block.data, slot * self.block_bytes
        with self._told("write"):
            while view:
                done = self._pwrite(view, at)
                view, at = view[done:], at + done
        self._reserved = max(self._reserved, slot + 1)
        self.counts.writes += 1
        self.counts.bytes_written += len(block)

    def reserve(self, slots: int) -> None:
        """Set room aside, some blocks ahead where the disk has it."""
        if slots <= self._reserved:
            return
        ahead = slots + min(SET_ASIDE, slots // 16)
        try:
            self._allocate(ahead)
        except OSError:
            ahead = slots
            with self._told("reserve room in"):
                self._allocate(slots)
        self._reserved = ahead

    def _allocate(self, slots: int) -> None:
        begin = self._reserved * self.block_bytes
        os.posix_fallocate(self._file, begin, slots * self.block_bytes - begin)

    def sync(self) -> None:
        """All that was written is safe from a power cut after this."""
        with self._told("sync"):
            self._fsync()

    def shorten(self, slots: int, spare: int = 0) -> None:
        """Give the room after the first `slots` places back to the disk, if it is more than `spare`."""
        if slots + spare < self._reserved:
            with self._told("shorten"):
                os.ftruncate(self._file, slots * self.block_bytes)
            self._reserved = slots

    def close(self) -> None:
        """Close the file; it stays where it is."""
        self._close()
        self._file = -1

    @property
    def file_bytes(self) -> int:
        """How long the file is; nothing once it is closed."""
        return os.fstat(self._file).st_size if self._close.alive else 0

    def where(self, slot: int) -> str:
        """The file, and where in it."""
        return f"block {slot} (offset {slot * self.block_bytes}) of {self.path}"

    # the three calls that a test replaces to see what a failing disk does
    def _pread(self, into: Buffer, at: int) -> int:
        got = 0
        while got < len(into):
            n = os.preadv(self._file, [into.data[got:]], at + got)
            if n == 0:
                break
            got += n
        return got

    def _pwrite(self, view: memoryview, at: int) -> int:
        return os.pwrite(self._file, view, at)

    def _fsync(self) -> None:
        os.fdatasync(self._file)

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """An error of the disk, with what was tried, where, and what to do."""
        try:
            yield
        except OSError as error:
            raise told(error, what, self.path) from error


def told(error: OSError, what: str, path: Path) -> SpillFailed:
    """An error of the disk in words."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _FULL:
        return DiskFull(
            f"there is no room to {what} {path}: {reason}. Free space in {path.parent}, or give another "
            "directory with spill_dir=..., and go on: what was taken in before is not lost."
        )
    return SpillFailed(f"cannot {what} {path}: {reason}. Check the disk and the directory's permissions.")


def new_buffer(block_bytes: int) -> Buffer:
    """The room for one block."""
    return np.zeros(block_bytes, np.uint8)
