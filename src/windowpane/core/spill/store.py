"""The store of a window's rows: a chain of blocks, of which a bounded number is in memory.

With one window this is SlideM (procedures 1 and 2 of Mendes et al.): the block that is sent to disk is the
most recently written one, and the least recently written one comes back when the oldest block expired. With
several it is Shared SlideM (procedure 3): rows are stored once, every window has an ancient block of its own,
only the largest window purges, and the victim follows the distance rule (`residency`). Blocks that were read
stay on disk until they are purged, so that sending them away again needs no write (`counts.spared`).

Failures: `append` is all or nothing. Room on the disk is set aside while rows are appended, so that reading,
which may send a block away, does not fail for want of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from windowpane.core.arrays import Values
from windowpane.core.spill.codec import BlockLayout, Buffer, Stamp, seal, verify
from windowpane.core.spill.medium import IoCounts, Medium, new_buffer
from windowpane.core.spill.numbers import FreeList, SlotRing
from windowpane.core.spill.residency import Residency
from windowpane.values.errors import OverBudget, SpillFailed

Columns = tuple[Values, ...]
_MANY = 64
"""From so many blocks in memory on, those that are not on disk are guessed (all) instead of counted."""


class Store(Protocol):
    """All that a window asks of its rows: append, read the oldest, release."""

    def add_window(self) -> int:
        """A window that begins after the rows so far; its handle."""

    def remove_window(self, window: int) -> None:
        """A window that is not needed any more."""

    def append(self, columns: Sequence[Values]) -> None:
        """Add rows at the end, for all windows."""

    def oldest(self, window: int) -> Columns:
        """The oldest rows that the window has not released, as lie together; good until the next call."""

    def release(self, window: int, rows: int) -> None:
        """The window is done with its `rows` oldest rows, all of which `oldest` gave."""


@dataclass(slots=True)
class Frame:
    """One block in memory."""

    buffer: Buffer
    columns: Columns
    number: int
    rows: int
    dirty: bool


@dataclass(slots=True)
class Cursor:
    """Where a window is: its ancient block and the first valid row in it."""

    number: int
    row: int


class BlockStore:
    """The store whose blocks go to a medium when memory is short."""

    def __init__(
        self, layout: BlockLayout, medium: Medium, frames: int, *, identity: bytes = bytes(16), epoch: int = 1
    ) -> None:
        """`frames` is how many blocks memory may hold; at least one more than there are windows."""
        self.layout, self.medium, self.identity = layout, medium, identity
        self.epochs: list[tuple[int, int]] = [(0, epoch)]
        self.slots, self.free = SlotRing(), FreeList()
        self.residency = Residency()
        self.windows: dict[int, Cursor] = {}
        self.checkpointed = -1
        self.hits = self.misses = 0
        self._allowed = frames
        self._frames: dict[int, Frame] = {}
        self._spare: list[Frame] = []
        self._named = 0
        self._recent = self._fresh(0)
        self._frames[0] = self._recent
        self.slots.append(-1)

    @property
    def counts(self) -> IoCounts:
        """The requests to the medium."""
        return self.medium.counts

    @property
    def frames(self) -> int:
        """How many blocks memory may hold."""
        return max(self._allowed, len(self.windows) + 1)

    @property
    def blocks(self) -> int:
        """Blocks of the chain, in memory and on disk."""
        return len(self.slots)

    @property
    def memory_bytes(self) -> int:
        """Memory that blocks and the list of their places take."""
        return (len(self._frames) + len(self._spare)) * self.layout.block_bytes + self.slots.nbytes

    @property
    def space_bytes(self) -> int:
        """Memory and disk that the rows take: the space cost of the paper."""
        return len(self.slots) * self.layout.block_bytes

    @property
    def places(self) -> int:
        """Places on disk in use, free to use again, and for every block that is only in memory."""
        held = len(self._frames)
        loose = sum(self.slots[number] < 0 for number in self._frames) if held < _MANY else held
        return self.free.end + max(0, loose - len(self.free))

    def rows(self, window: int) -> int:
        """How many rows the window holds."""
        cursor = self.windows[window]
        return (self._recent.number - cursor.number) * self.layout.capacity + self._recent.rows - cursor.row

    def resize(self, frames: int) -> None:
        """Hold at most so many blocks in memory from now on.

        If the disk does not take those that must go, memory holds them until it does: by the next `append`
        that needs a block, which fails if it still does not.
        """
        self._allowed = frames
        if len(self._frames) > self.frames:
            self._set_aside()
        while len(self._frames) > self.frames:
            self._evict()
        del self._spare[max(0, self.frames - len(self._frames)) :]

    def add_window(self) -> int:
        """A window that begins after the rows so far; its handle."""
        self._named += 1
        self.windows[self._named] = Cursor(self._recent.number, self._recent.rows)
        self.residency.place(self._recent.number)
        return self._named

    def remove_window(self, window: int) -> None:
        """A window that is not needed any more; rows that only it needed are forgotten."""
        number = self.windows.pop(window).number
        self.residency.remove(number)
        self.residency.drop_last(self._recent.number)
        self._purge()
        self.resize(self._allowed)

    def append(self, columns: Sequence[Values]) -> None:
        """Add rows at the end, for all windows; if that fails, none was added."""
        if not self.windows:
            return
        mark = self.mark()
        try:
            self._append(columns)
        except BaseException:
            self.back_to(mark)
            raise

    def mark(self) -> tuple[int, int]:
        """The end of the rows so far, to go `back_to` before anything is read."""
        return self._recent.number, self._recent.rows

    def _append(self, columns: Sequence[Values]) -> None:
        total, done = len(columns[0]), 0
        while done < total:
            if self._recent.rows == self.layout.capacity:
                self._new_recent()
            frame = self._recent
            n = min(total - done, self.layout.capacity - frame.rows)
            for own, given in zip(frame.columns, columns, strict=True):
                own[frame.rows : frame.rows + n] = given[done : done + n]
            if not frame.dirty:
                self._touch(frame)
            frame.rows += n
            done += n

    def oldest(self, window: int) -> Columns:
        """The rows of the ancient block that the window has not released; none if there are none."""
        cursor = self.windows[window]
        while cursor.row == self.layout.capacity and cursor.number < self._recent.number:
            self._advance(cursor)
        frame = self._frames[cursor.number]
        return tuple(column[cursor.row : frame.rows] for column in frame.columns)

    def release(self, window: int, rows: int) -> None:
        """The window is done with its oldest rows, all of which `oldest` gave."""
        cursor = self.windows[window]
        if not 0 <= rows <= self._frames[cursor.number].rows - cursor.row:
            raise ValueError(f"window {window} releases {rows} rows that it was not given")
        cursor.row += rows

    def _advance(self, cursor: Cursor) -> None:
        number = cursor.number
        resident, left = self.residency.advance(number)
        cursor.number, cursor.row = number + 1, 0
        if left and self.residency.oldest != number + 1:
            self.residency.keep(number)
        elif left:
            self._purge()
        resident = resident or cursor.number == self._recent.number
        self.hits, self.misses = self.hits + resident, self.misses + (not resident)
        if not resident:
            self._load(cursor.number)
        if len(self.windows) == 1:
            self._prefetch(cursor.number)

    def _prefetch(self, ancient: int) -> None:
        """Bring back the least recently written block (line 4 of procedure 2), if memory has room for it."""
        following = self.residency.last_after(ancient) + 1
        if len(self._frames) < self.frames and following < self._recent.number:
            self._load(following)
            self.residency.keep(following)

    def _purge(self) -> None:
        """Forget the blocks that no window reaches back to."""
        oldest = self.residency.oldest
        end = self._recent.number if oldest is None else oldest
        while self.slots.first < end:
            number = self.slots.first
            frame = self._frames.pop(number, None)
            if frame is not None:
                self._spare.append(frame)
            slot = self.slots.pop_first()
            if slot >= 0:
                self.free.release(slot, held=number <= self.checkpointed)

    def _new_recent(self) -> None:
        """Procedure 1, lines 2 to 10: send a victim away if memory is full, and start a block."""
        filled = self._recent
        if len(self._frames) >= self.frames:
            self._set_aside()
        if not self.residency.is_ancient(filled.number):
            self.residency.keep(filled.number)
        try:
            while len(self._frames) >= self.frames:
                self._evict()
        except BaseException:
            if filled.number in self._frames:
                self.residency.drop_last(filled.number)
            raise
        frame = self._fresh(filled.number + 1)
        self._frames[frame.number] = frame
        self.slots.append(-1)
        self._recent = frame

    def _set_aside(self) -> None:
        """Room on the disk for every block that is only in memory, so that reading never fails for it."""
        self.medium.reserve(self.places)

    def _evict(self) -> None:
        number = self.residency.victim()
        if number is None:
            raise OverBudget(
                f"{len(self.windows)} windows need {len(self.windows) + 1} blocks of "
                f"{self.layout.block_bytes} bytes in memory. Give a larger memory=."
            )
        frame = self._frames[number]
        try:
            self._write(frame)
        except BaseException:
            self.residency.keep(number)
            raise
        del self._frames[number]
        self._spare.append(frame)

    def _write(self, frame: Frame) -> None:
        """Put a block to disk, if it is not there already."""
        if not frame.dirty:
            self.counts.spared += 1
            return
        seal(frame.buffer, self.layout, self._stamp(frame.number, frame.rows))
        slot = self.free.take()
        try:
            self.medium.write(slot, frame.buffer)
        except BaseException:
            self.free.release(slot)
            raise
        self.slots[frame.number] = slot
        frame.dirty = False

    def _load(self, number: int) -> None:
        """Bring a block back; another goes if memory is full.

        Rows are in sums already when windows read, so a disk that takes nothing must not stop them: memory
        holds a block too many then, and the next `append` that needs one fails instead.
        """
        with suppress(SpillFailed):
            while len(self._frames) >= self.frames:
                self._evict()
        frame = self._fresh(number)
        slot = self.slots[number]
        self.medium.read(slot, frame.buffer)
        verify(frame.buffer, self.layout, self._stamp(number, self.layout.capacity), self.medium.where(slot))
        frame.rows, frame.dirty = self.layout.capacity, False
        self._frames[number] = frame

    def _touch(self, frame: Frame) -> None:
        """The block changes: what the disk has of it is of no use any more."""
        frame.dirty = True
        slot = self.slots[frame.number]
        if slot >= 0:
            self.slots[frame.number] = -1
            self.free.release(slot, held=frame.number <= self.checkpointed)

    def back_to(self, mark: tuple[int, int]) -> None:
        """Take rows out again that were appended since."""
        number, rows = mark
        while self.slots.end - 1 > number:
            last = self.slots.end - 1
            self.residency.drop_last(last)
            frame = self._frames.pop(last, None)
            if frame is not None:
                self._spare.append(frame)
            slot = self.slots.pop_last()
            if slot >= 0:
                self.free.release(slot)
        self.residency.drop_last(number)
        if number not in self._frames:
            self._load(number)
        self._recent = self._frames[number]
        if self._recent.rows != rows:
            self._touch(self._recent)
            self._recent.rows = rows

    def _stamp(self, number: int, rows: int) -> Stamp:
        _, epoch = self.epochs[bisect_right(self.epochs, (number, 2**63)) - 1]
        return Stamp(self.identity, epoch, number, rows)

    def _fresh(self, number: int) -> Frame:
        if self._spare:
            frame = self._spare.pop()
            frame.number, frame.rows, frame.dirty = number, 0, False
            return frame
        buffer = new_buffer(self.layout.block_bytes)
        return Frame(buffer, self.layout.views(buffer), number, 0, dirty=False)
