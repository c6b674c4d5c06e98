"""Operators on update streams: what each must do so that a key's newest tuple is enough (Moga 2009, 3.2).

A tuple carries its time and the id of its update key. Times never fall within a key. Results are tuples
again, with the key kept, so that they update the results before them. The aggregate over windows is
`window_operator.FreshWindows`; `check_grouping` is its condition. `local/updates.py` has all of them for
tables, with filter and map, which need no state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Bools, Ints, Tuples, concat_tuples, no_tuples
from windowpane.core.rows import heads_of
from windowpane.core.upstream.kept import Kept
from windowpane.values.errors import BadQuery

_NEVER, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def check_grouping(key: Sequence[str], group_by: Sequence[str]) -> None:
    """An aggregate must group by the update key at least, or its results would have none."""
    missing = [name for name in key if name not in group_by]
    if missing:
        raise BadQuery(
            f"the aggregate groups by {', '.join(map(repr, group_by)) or 'nothing'}, but {missing[0]!r} is "
            "part of the update key. Group by it too."
        )


class Union:
    """Merges streams with the same update key: the youngest tuple of a key goes out, older ones are dropped.

    Of several tuples of a key with the same time the one of the first input is taken for the truth.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = np.empty(0, np.int64)

    def push(self, *inputs: Tuples) -> Tuples:
        """What the inputs hold now; the youngest of each key that is younger than the last that went out."""
        found = self.youngest(*inputs)
        self.sent(found)
        return found

    def youngest(self, *inputs: Tuples) -> Tuples:
        """As `push`, but nothing counts as sent before `sent` says so."""
        merged = no_tuples()
        for tuples in reversed(inputs):  # so that the first input comes last among equals
            merged = concat_tuples(merged, tuples)
        newest = last_of_key(merged.key, merged.time)
        self._last = _widened(self._last, merged.key)
        newest = newest[merged.time[newest] > self._last[merged.key[newest]]]
        return merged.take(np.sort(newest))

    def sent(self, found: Tuples) -> None:
        """These went out."""
        self._last[found.key] = found.time

    def keep(self, live: Bools) -> None:
        """Forget the keys that are not live, by id, and number the others anew, in order."""
        self._last = _reaching(self._last, len(live))[: len(live)][live]


Predicate = Callable[[Tuples, Tuples], Bools]
"""Which pairs match, given the left and right tuple of each pair."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The newest match of each key, left and right."""

    left: Tuples
    right: Tuples

    @property
    def time(self) -> Ints:
        """The time of each match: that of its younger tuple."""
        return np.maximum(self.left.time, self.right.time)


class Join:
    """Joins two streams on their update key within a window of time, with a predicate if there is one.

    A tuple stays in the window until a tuple of its key is younger by `size`. The newest match is delivered:
    the pair whose younger tuple is the youngest, then the one whose older tuple is. One that is older than
    the last that was delivered of its key is dropped, as results update those before them. A `size` may be
    any number above 0, also one that is larger than times lie apart.
    """

    __slots__ = ("_kept", "_newest", "_predicate", "_sent", "size")

    def __init__(self, size: int, predicate: Predicate | None = None) -> None:
        if size <= 0:
            raise BadQuery(f"the window of a join is {size} long, but it must be above 0.")
        self.size = size
        self._predicate = predicate
        self._kept = (Kept(), Kept())
        self._newest = np.empty(0, np.int64)
        self._sent = (np.empty(0, np.int64), np.empty(0, np.int64))

    def kept(self, side: int) -> Tuples:
        """The tuples of a side (0: left, 1: right) that may still match."""
        return self._living(self._kept[side].all())

    @property
    def sizes(self) -> tuple[int, int]:
        """How many tuples of each side may still match."""
        return len(self._kept[0]), len(self._kept[1])

    def push(self, left: Tuples, right: Tuples) -> Matches:
        """Take tuples of both sides; the newest match of each key that has a new one."""
        new = (left, right)
        keys = np.sort(np.concatenate([left.key, right.key]))
        keys = keys[heads_of(keys)]
        old = tuple(self._living(side.of(keys)) for side in self._kept)
        sides = tuple(concat_tuples(*both) for both in zip(old, new, strict=True))
        a, b = self._candidates(new, old, sides[1])
        if self._predicate is not None and len(a):
            match = self._predicate(sides[0].take(a), sides[1].take(b))
            a, b = a[match], b[match]
        best = _newest_pairs(sides, a, b)
        # Nothing changes before the predicate, which is not ours, has done its work.
        for side in new:
            self._newest = _widened(self._newest, side.key)
            np.maximum.at(self._newest, side.key, side.time)
        for kept, was, now in zip(self._kept, old, new, strict=True):
            kept.add(self._living(now), int(np.count_nonzero(~self._alive(was))), self._alive)
        return self._sendable(Matches(sides[0].take(a[best]), sides[1].take(b[best])))

    def keep(self, live: Bools) -> None:
        """Forget the keys that are not live, by id, with their tuples; number the others anew, in order."""
        for side in self._kept:
            side.keep(live, self._alive)
        self._newest, *sent = (
            _reaching(times, len(live))[: len(live)][live] for times in (self._newest, *self._sent)
        )
        self._sent = (sent[0], sent[1])

    def _sendable(self, found: Matches) -> Matches:
        """Without those that are older than what was delivered of their key."""
        key, young, old = found.left.key, found.time, np.minimum(found.left.time, found.right.time)
        sent = (_widened(self._sent[0], key), _widened(self._sent[1], key))
        newer = (young > sent[0][key]) | ((young == sent[0][key]) & (old >= sent[1][key]))
        sent[0][key[newer]], sent[1][key[newer]] = young[newer], old[newer]
        self._sent = sent
        return found if bool(newer.all()) else Matches(found.left.take(newer), found.right.take(newer))

    def _alive(self, side: Tuples) -> Bools:
        alive: Bools = side.time > _moved(self._newest[side.key], -self.size)
        return alive

    def _living(self, side: Tuples) -> Tuples:
        return side.take(self._alive(side))

    def _candidates(
        self, new: tuple[Tuples, Tuples], old: tuple[Tuples, ...], all_right: Tuples
    ) -> tuple[Ints, Ints]:
        """Where the two of each pair stand of which at least one is new: pairs of what was kept went out."""
        a, b = self._partners(new[0], all_right)
        d, c = self._partners(new[1], old[0])
        return np.concatenate([a + len(old[0]), c]), np.concatenate([b, d + len(old[1])])

    def _partners(self, new: Tuples, others: Tuples) -> tuple[Ints, Ints]:
        """New tuples, each with those of the others that are of its key and less than `size` apart.

        Without a predicate only with the youngest of them, the last of several: no other pair of a new tuple
        can be the newest match, and all pairs would need the square of the memory.
        """
        order = np.lexsort((others.time, others.key))
        low = _first_at(others, order, new.key, _moved(new.time, 1 - self.size))
        high = _first_at(others, order, new.key, np.minimum(_moved(new.time, self.size - 1), _LAST - 1) + 1)
        if self._predicate is None:
            low = np.maximum(low, high - 1)
        count = high - low
        at = np.repeat(np.arange(len(new)), count)
        within = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
        return at, order[np.repeat(low, count) + within]


def last_of_key(key: Ints, time: Ints, *ties: Ints) -> Ints:
    """The position of the youngest tuple of each key, the last of several; in order of key.

    With `ties` the greatest of those of one time is the youngest.
    """
    order = np.lexsort((*reversed(ties), time, key))
    ends = np.flatnonzero(np.diff(key[order], append=-1)) if len(key) else order
    return order[ends]


def _newest_pairs(sides: tuple[Tuples, ...], a: Ints, b: Ints) -> Ints:
    times = sides[0].time[a], sides[1].time[b]
    key = sides[0].key[a]
    order = np.lexsort((b, a, np.minimum(*times), np.maximum(*times), key))
    ends = np.flatnonzero(np.diff(key[order], append=-1)) if len(key) else order
    return order[ends]


def _first_at(side: Tuples, order: Ints, key: Ints, time: Ints) -> Ints:
    """Where, in order of key and time, the first tuple of a key at or after a time stands."""
    n = len(order)
    both_key = np.concatenate([side.key[order], key])
    both_time = np.concatenate([side.time[order], time])
    # Asked times go before equal ones, so the number of tuples before an asked time is its place.
    asked = np.concatenate([np.ones(n, np.int64), np.zeros(len(key), np.int64)])
    ranked = np.lexsort((asked, both_time, both_key))
    before = np.cumsum(ranked < n)
    place = np.empty(n + len(key), np.int64)
    place[ranked] = before
    return place[n:]


def _moved(time: Ints, by: int) -> Ints:
    """Times and a number of any size, as far as int64 goes: they must not wrap around."""
    end = _LAST if by > 0 else _NEVER
    if abs(by) > _LAST:
        return np.full_like(time, end)
    inside: Ints = np.minimum(time, end - by) if by > 0 else np.maximum(time, end - by)
    return inside + by


def _widened(by_key: Ints, key: Ints) -> Ints:
    """Room for every key that came; what is not known is before all times."""
    return _reaching(by_key, int(key.max()) + 1 if len(key) else 0)


def _reaching(by_key: Ints, count: int) -> Ints:
    if count <= len(by_key):
        return by_key
    return np.concatenate([by_key, np.full(2 * count - len(by_key), _NEVER)])
