"""The state of one sliding window by key: slid over arrivals and expirations, it gives answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Ints, Ragged, Values
from windowpane.core.kernels.exact import CHUNKS, MOST, carry_all
from windowpane.core.kernels.rolling import EMITTED, FREE_NODE, N_FREE, N_NODES, Small, roll
from windowpane.core.partials.base import concat
from windowpane.core.partials.runs import ragged
from windowpane.core.replay import Replay
from windowpane.core.spill.feed import Answers, Feed, Lifted
from windowpane.core.spill.multisets import Moved, Multisets, Read
from windowpane.values.errors import BadState

_SMALLEST = 16
_BY_KEY = ("counts", "sums", "chunks", "spans", "specials", "rows", "active", "place", "stamp", "queue")
_BY_NODE = ("links", "nodes")


@dataclass(frozen=True)
class Flow:
    """Rows in time order: their times, keys and contributions."""

    time: Ints
    key: Small
    lifted: Lifted

    def __len__(self) -> int:
        return len(self.time)

    def part(self, low: int, high: int) -> Flow:
        """The rows `low .. high-1`."""
        return Flow(self.time[low:high], self.key[low:high], self.lifted.part(low, high))

    @property
    def moved(self) -> Moved:
        """What of the rows values are counted by."""
        return Moved(self.time, self.key, self.lifted.values)


class Found:
    """Answers as they are found: for which key and end, and of what sums. One table for many calls."""

    __slots__ = ("_arrays", "_feed", "_runs", "n", "n_values", "replays")

    def __init__(self, feed: Feed, room: int) -> None:
        self._feed, self.n, self.n_values = feed, 0, 0
        self._runs: list[list[Ragged]] = [[] for _ in feed.values]
        self.replays: tuple[Replay, ...] = ()
        self._arrays = self._fresh(room)

    def _fresh(self, room: int) -> tuple[Values, ...]:
        feed = self._feed
        return (
            np.empty(room, np.int32),
            np.empty(room, np.int64),
            np.empty((len(feed.counts), room), np.int64),
            np.empty((len(feed.sums), 2, room), np.int64),
            np.empty((len(feed.floats), 1 + feed.paired, room), np.float64),
            np.empty((len(feed.extremes), room), np.int64),
        )

    def make_room(self, more: int) -> tuple[Values, ...]:
        """The arrays, with room for so many more."""
        have = len(self._arrays[0])
        if self.n + more > have:
            old, self._arrays = self._arrays, self._fresh(max(self.n + more, have * 3 // 2))
            for mine, theirs in zip(self._arrays, old, strict=True):
                mine[..., : self.n] = theirs[..., : self.n]
        return self._arrays

    def note(self, runs: list[Ragged]) -> None:
        """The values of the answers that came last, of every column."""
        for pieces, more in zip(self._runs, runs, strict=True):
            pieces.append(more)
            self.n_values += len(more.values)

    @property
    def key(self) -> Small:
        """The keys."""
        return self._arrays[0][: self.n]

    @property
    def end(self) -> Ints:
        """Where the windows end."""
        return self._arrays[1][: self.n]

    @property
    def answers(self) -> Answers:
        """The sums, and the values where they are kept."""
        counts, sums, floats, codes = (array[..., : self.n] for array in self._arrays[2:])
        runs = tuple(ragged(concat([(piece,) for piece in pieces])) for pieces in self._runs if pieces)
        return Answers(counts, sums, floats, codes, runs, self.replays)


class Rolling:
    """Sums, counts, extremes and values of the rows in one window, by key."""

    def __init__(
        self, feed: Feed, target: Ints, *, own: bool, by_tuple: bool = False, values: bool = True
    ) -> None:
        """`target` says which sum each column of floats goes to; `own`: answer only for keys just seen.

        `by_tuple`: a result for every tuple. `values`: whether they are kept, if the feed has any.
        """
        self.feed, self.target, self.own, self.by_tuple = feed, target, own, by_tuple
        self.values = Multisets(len(feed.values)) if feed.values and values else None
        self.state: Ints = np.zeros(5, np.int64)
        self.state[FREE_NODE] = -1
        n_counts, n_sums, n_floats, n_codes = (
            len(part) for part in (feed.counts, feed.sums, feed.floats, feed.extremes)
        )
        self.counts: Ints = np.zeros((0, n_counts), np.int64)
        self.sums: Ints = np.zeros((0, n_sums, 2), np.int64)
        self.chunks: Ints = np.zeros((0, n_floats, CHUNKS), np.int64)
        self.spans: Small = np.zeros((0, n_floats, 2), np.int32)
        self.specials: Small = np.zeros((0, n_floats, 3), np.int32)
        self.rows: Ints = np.zeros((0, 2), np.int64)
        self.active: Small = np.zeros(0, np.int32)
        self.place: Small = np.zeros(0, np.int32)
        self.stamp: Ints = np.zeros(0, np.int64)
        self.queue: Small = np.zeros((0, n_codes, 2), np.int32)
        self.links: Small = np.zeros((0, 2), np.int32)
        self.nodes: Ints = np.zeros((0, 2), np.int64)
        self._changes = 0
        self._keys = 0

    @property
    def nbytes(self) -> int:
        """Memory held: a constant for each key, 24 bytes for each row that may yet be an extreme, values."""
        values = 0 if self.values is None else self.values.nbytes
        return values + sum(int(getattr(self, name).nbytes) for name in (*_BY_KEY, *_BY_NODE))

    @staticmethod
    def key_bytes(feed: Feed) -> int:
        """Memory for one key: `s` in formula 2.2, for all its aggregates together, without its values."""
        sums = 8 * len(feed.counts) + 16 * len(feed.sums) + (8 * CHUNKS + 20) * len(feed.floats)
        return sums + 8 * len(feed.extremes) + 8 * len(feed.values) + 32

    @property
    def n_active(self) -> int:
        """How many keys have rows."""
        return int(self.state[0])

    def most_active(self, n_keys: int, n_rows: int) -> int:
        """How many keys can have rows after `n_rows` more, all of keys below `n_keys`."""
        return min(max(self._keys, n_keys), self.n_active + n_rows)

    def holds(self, n_keys: int) -> Values:
        """Which keys have rows."""
        held = np.zeros(n_keys, np.bool_)
        held[self.active[: self.n_active]] = True
        return held

    def make_room(self, n_keys: int, n_rows: int) -> None:
        """Grow for so many keys, and so many more rows."""
        if n_keys > len(self.place):
            size = max(_SMALLEST, n_keys, len(self.place) * 3 // 2)
            old = len(self.place)
            for name in _BY_KEY:
                setattr(self, name, _grown(getattr(self, name), size))
            self.place[old:] = -1
            self.queue[old:] = -1
            self.spans[old:] = (CHUNKS, -1)
        need = int(self.state[N_NODES] - self.state[N_FREE]) + n_rows * len(self.feed.extremes)
        if need > len(self.links):
            size = max(_SMALLEST, need, len(self.links) * 3 // 2)
            for name in _BY_NODE:
                setattr(self, name, _grown(getattr(self, name), size))

    def shrink(self, n_keys: int) -> None:
        """Give back the memory of keys from `n_keys` on, none of which has rows, if they are most."""
        if 2 * n_keys + _SMALLEST < len(self.place):
            for name in _BY_KEY:
                setattr(self, name, getattr(self, name)[: n_keys + _SMALLEST].copy())
            self._keys = min(self._keys, n_keys)
            if self.values is not None:
                self.values.shrink(n_keys + _SMALLEST)

    def slide(self, arrivals: Flow, expired: Flow, high: Ints, low: Ints, found: Found) -> None:
        """Add the arrivals, take out the expired, and put the answer of every `[low, high)` on the way.

        Where values are kept, the one point comes last: they are those after all that arrived and expired.
        Only by tuple there may be many, if nothing was found before.
        """
        feed, fresh = self.feed, len(arrivals)
        n_keys = int(arrivals.key.max(initial=-1)) + 1
        self.make_room(n_keys, fresh)
        self._changes += (fresh + len(expired)) * max(1, len(self.target))
        if self._changes >= MOST:
            carry_all(self.chunks.reshape(-1), self.spans.reshape(-1))
            self._changes = 0
        out = found.make_room(fresh if self.own else len(high) * self.most_active(n_keys, fresh))
        self._keys = max(self._keys, n_keys)
        a, e = arrivals.lifted, expired.lifted
        answered = found.n
        found.n = roll(
            arrivals.time, arrivals.key, a.ints, a.bits, a.codes, a.has,
            expired.time, expired.key, e.ints, e.bits,
            high, low, self.own, found.n,
            self.target, feed.largest, feed.paired,
            self.state, self.counts, self.sums,
            self.chunks.reshape(-1), self.spans.reshape(-1), self.specials.reshape(-1),
            self.rows, self.active, self.place, self.stamp,
            self.queue, self.links, self.nodes,
            *out,
        )  # fmt: skip
        if self.values is not None and self.by_tuple and found.n:
            assert answered == 0
            read = Read(high, low, np.searchsorted(high, found.end), found.key)
            found.replays = self.values.follow(arrivals.moved, expired.moved, self._keys, read)
        elif self.values is not None:
            assert len(high) <= 1 or found.n == answered
            self.values.slide(arrivals.moved, expired.moved, self._keys)
            if found.n > answered:
                found.note(self.values.of(found.key[answered:]))

    def arrays(self) -> dict[str, Values]:
        """All state as flat arrays."""
        shapes = {name: getattr(self, name) for name in ("state", *_BY_KEY, *_BY_NODE)}
        values = {} if self.values is None else self.values.arrays()
        return {name: np.ascontiguousarray(array).reshape(-1) for name, array in shapes.items()} | values

    def width(self, name: str) -> int:
        """Entries of an array for one key (or row that may be an extreme, or value)."""
        if not hasattr(self, name):
            return 1
        return int(np.prod(getattr(self, name).shape[1:], dtype=np.int64))

    def restore(self, arrays: dict[str, Values]) -> None:
        """Go on from the state that `arrays` gave."""
        for name in ("state", *_BY_KEY, *_BY_NODE):
            own, given = getattr(self, name), arrays[name]
            width = self.width(name)
            if given.dtype != own.dtype or (width and len(given) % width):
                raise BadState(
                    f"the state {name!r} of a window does not fit the query: another one wrote it."
                )
            n = len(arrays["place"]) if name in _BY_KEY else len(given) // max(width, 1)
            setattr(self, name, given.reshape((n, *own.shape[1:])).copy())
        if self.values is not None:
            self.values.restore(arrays)
        self._changes, self._keys = MOST, len(self.place)
        self.state[EMITTED] += 1


def _grown(array: Values, size: int) -> Values:
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
