"""The store interface over plain memory: the reference for the block store."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from windowpane.core.arrays import Values
from windowpane.core.spill.store import Columns


class MemoryStore:
    """Keeps every batch of rows until the last window has released it."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._pieces: deque[Columns] = deque()
        self._first = self._end = 0
        self.windows: dict[int, int] = {}
        self._named = 0

    @property
    def memory_bytes(self) -> int:
        """Memory that the rows take."""
        return sum(column.nbytes for piece in self._pieces for column in piece)

    def add_window(self) -> int:
        """A window that begins after the rows so far; its handle."""
        self._named += 1
        self.windows[self._named] = self._end
        return self._named

    def remove_window(self, window: int) -> None:
        """A window that is not needed any more."""
        del self.windows[window]
        self._purge()

    def append(self, columns: Sequence[Values]) -> None:
        """Add rows at the end, for all windows."""
        if len(columns) != self._columns:
            raise ValueError(f"{len(columns)} columns for a store of {self._columns}")
        if self.windows and len(columns[0]):
            self._pieces.append(tuple(column.copy() for column in columns))
            self._end += len(columns[0])

    def oldest(self, window: int) -> Columns:
        """The oldest rows that the window has not released, as many as lie together."""
        at, first = self.windows[window], self._first
        for piece in self._pieces:
            if at < first + len(piece[0]):
                return tuple(column[at - first :] for column in piece)
            first += len(piece[0])
        return ()

    def release(self, window: int, rows: int) -> None:
        """The window is done with its oldest rows."""
        self.windows[window] += rows
        self._purge()

    def _purge(self) -> None:
        oldest = min(self.windows.values(), default=self._end)
        while self._pieces and self._first + len(self._pieces[0][0]) <= oldest:
            self._first += len(self._pieces.popleft()[0])
