"""Which blocks are in memory, and which of them to send away: the distance rule (Mendes et al., 4.2).

Blocks are numbered in the order of their tuples. Every window has an ancient block, the one that its next
tuple expires from; the newest block, still being filled, is the recent one. Both are needed at once and are
not listed here. A block k in between is next needed by the window whose ancient block is the nearest below
it, so `ref_k = k - max{ancient < k}`, and within the stretch above one ancient block the victim is always
the last block. So one deque for each stretch is enough: blocks enter and leave at its ends, and an eviction
looks at one block for each window, never at all blocks. Pure: no file is touched here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, deque


class Residency:
    """The resident blocks between the ancient blocks of the windows."""

    __slots__ = ("_marks", "_runs", "_users")

    def __init__(self) -> None:
        self._marks: list[int] = []
        self._runs: list[deque[int]] = []
        self._users: Counter[int] = Counter()

    @property
    def oldest(self) -> int | None:
        """The ancient block of the largest window; None without windows."""
        return self._marks[0] if self._marks else None

    def is_ancient(self, number: int) -> bool:
        """Whether a window expires from this block."""
        return number in self._users

    def place(self, number: int) -> None:
        """A window begins at this block, which is at or above every other ancient block."""
        if number not in self._users:
            at = bisect_left(self._marks, number)
            self._marks.insert(at, number)
            self._runs.insert(at, deque())
        self._users[number] += 1

    def advance(self, number: int) -> tuple[bool, bool]:
        """A window goes on from this block to the next, which is pinned from now on.

        Whether the next block is in memory, and whether no window is left at this one. If none is, the
        caller says what becomes of it: `keep` it for a larger window, or forget it.
        """
        at, following = self._marks.index(number), number + 1
        run = self._runs[at]
        resident = following in self._users
        if not resident:
            resident = bool(run) and run[0] == following
            if resident:
                run.popleft()
            self._marks.insert(at + 1, following)
            self._runs.insert(at + 1, run)
            self._runs[at] = deque()
        self._users[following] += 1
        self._users[number] -= 1
        if self._users[number]:
            return resident, False
        del self._users[number], self._marks[at], self._runs[at]
        return resident, True

    def remove(self, number: int) -> bool:
        """A window that was at this block is gone for good; whether no other window is at it.

        Blocks below the oldest ancient block that is left are no longer listed.
        """
        self._users[number] -= 1
        if self._users[number]:
            return False
        del self._users[number]
        at = self._marks.index(number)
        run = self._runs.pop(at)
        self._marks.pop(at)
        if at:
            self._runs[at - 1].extend([number, *run])
        return True

    def keep(self, number: int) -> None:
        """A block that is in memory and not, or no longer, pinned; it is the last of its stretch."""
        self._runs[bisect_right(self._marks, number) - 1].append(number)

    def drop_last(self, number: int) -> None:
        """Take the newest block out, because it is being filled again or gone."""
        for run in self._runs[-1:]:
            if run and run[-1] == number:
                run.pop()

    def victim(self) -> int | None:
        """The block that no window needs for the longest time; None if all are pinned."""
        best, farthest = -1, 0
        for at, (mark, run) in enumerate(zip(self._marks, self._runs, strict=True)):
            if run and run[-1] - mark > farthest:
                best, farthest = at, run[-1] - mark
        return self._runs[best].pop() if best >= 0 else None

    def last_after(self, mark: int) -> int:
        """The last resident block of the unbroken stretch above an ancient block."""
        run = self._runs[self._marks.index(mark)]
        return run[-1] if run else mark
