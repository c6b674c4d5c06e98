"""Lanes as named parts, and parts as blocks of some thousand rows.

Blocks of slices, rows, tuples and answers are named by their content, so that what did not change keeps its
name and bytes wherever it now stands; the manifest has their order. Small arrays are named by their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from windowpane.core import blocks as codec
from windowpane.core.arrays import Tuples, Values, concat_tuples, no_tuples
from windowpane.core.ledger import Ledger, joined
from windowpane.core.mark_lane import Markers, MarkLane
from windowpane.core.ordered_lane import OrderedLane
from windowpane.core.pending import TIE
from windowpane.core.rank_lane import RankLane
from windowpane.core.rows import Layout, Rows, no_rows, stack
from windowpane.core.slice_lane import SliceLane
from windowpane.core.slices import Segment, SliceTable
from windowpane.core.tuple_lane import TupleLane
from windowpane.values.errors import BadState

CHUNK = 8192
"""Rows in a block, about."""
Piece = tuple[int, int, str]
"""Rows of a segment that share a block, from and to, and the block's digest."""
_pieces: WeakKeyDictionary[Segment, tuple[Piece, ...]] = WeakKeyDictionary()
"""A segment never changes, so that its digests, once known, save writing it out again to compare."""
_MIXERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))
_FOLD, _SHIFT = np.uint64(32), np.uint64(64 - 13)


class Blocks(Mapping[str, bytes]):
    """Named blocks, each with its digest; a block whose digest is known is written when first asked for."""

    def __init__(self, written: Mapping[str, bytes] | None = None) -> None:
        self._written: dict[str, bytes] = dict(written or {})
        self._writers: dict[str, Callable[[], bytes]] = {}
        self.digests = {name: codec.digest_of(block) for name, block in self._written.items()}

    def add(self, name: str, block: bytes) -> None:
        """Put a block."""
        self._written[name] = block
        self.digests[name] = codec.digest_of(block)

    def defer(self, name: str, digest: str, write: Callable[[], bytes]) -> None:
        """Put a block whose digest is known."""
        self._writers[name] = write
        self.digests[name] = digest

    def keep(self, name: str, digest: str) -> None:
        """Put a block that is stored, of which only the digest is known here."""
        self.digests[name] = digest

    def include(self, prefix: str, others: Blocks) -> None:
        """Put all blocks of another, under names with a prefix."""
        for name, digest in others.digests.items():
            self.defer(prefix + name, digest, partial(others.__getitem__, name))

    def __getitem__(self, name: str) -> bytes:
        if name not in self._written:
            self._written[name] = self._writers[name]()
        return self._written[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.digests)

    def __len__(self) -> int:
        return len(self.digests)

    def changed(self, previous: Mapping[str, str]) -> tuple[dict[str, bytes], list[str]]:
        """What to put and which names to delete in a store that holds blocks with the `previous` digests."""
        put = {name: self[name] for name, digest in self.digests.items() if previous.get(name) != digest}
        return put, [name for name in previous if name not in self.digests]


class Writer:
    """Puts the parts of one lane."""

    def __init__(self, label: str, blocks: Blocks, parts: dict[str, list[str]]) -> None:
        self._label, self._blocks, self._parts = label, blocks, parts

    def table(self, part: str, table: SliceTable) -> None:
        """A block for each segment, or several where one slice has very many keys."""
        for segment in table.segments:
            rows, known = segment.rows, _pieces.get(segment)
            if known is None:
                _pieces[segment] = tuple(
                    (low, high, self._content(part, _write_span(rows, low, high)))
                    for low, high in pairwise(_within_slices(rows))
                )
                continue
            for low, high, digest in known:
                self.lasting(part, digest, partial(_write_span, rows, low, high))

    def lasting(self, part: str, digest: str | None, write: Callable[[], bytes]) -> str:
        """A block of what never changes; where its digest is known, it is written when first asked for."""
        if digest is None:
            return self._content(part, write())
        self._blocks.defer(self._note(part, digest), digest, write)
        return digest

    def rows(self, part: str, rows: Rows) -> None:
        """Rows that are sorted by key and start, in blocks by start: the newest change, the others stay."""
        if len(rows) >= CHUNK:
            rows = rows.take(np.argsort(rows.start, kind="stable"))
        for low, high in pairwise(_cuts(rows.start, rows.key)):
            self._content(part, _write_span(rows, low, high))

    def tuples(self, part: str, tuples: Tuples) -> None:
        """Tuples, cut where their content says, so that what arrives does not move the other cuts."""
        marks = _cuts(tuples.time, tuples.key, tuples.columns[TIE].values) if len(tuples) else []
        for low, high in pairwise(marks):
            some = tuples if len(marks) == 2 else tuples.take(np.arange(low, high))
            self._content(part, codec.write_tuples(some))

    def ledger(self, ledger: Ledger) -> None:
        """Answers, cut as tuples are: new ones are at the end, and old ones go at the beginning."""
        windows = ledger.windows
        for low, high in pairwise(_cuts(windows.end, windows.key, windows.definition)):
            self._content("ledger", codec.write_ledger(ledger.span(low, high)))

    def arrays(self, part: str, arrays: Mapping[str, Values]) -> None:
        """Arrays of one length, one entry per key or scope."""
        n = len(next(iter(arrays.values())))
        for at in range(0, n, CHUNK):
            table = {name: array[at : at + CHUNK] for name, array in arrays.items()}
            self._placed(part, at // CHUNK, codec.write_table(table))

    def blocks(self, part: str, blocks: Mapping[str, bytes]) -> None:
        """Blocks that something else wrote, which get a checksum here."""
        for place, name in enumerate(sorted(blocks)):
            self._placed(part, place, codec.seal(blocks[name]))

    def _placed(self, part: str, place: int, block: bytes) -> None:
        self._blocks.add(self._note(part, str(place)), block)

    def _content(self, part: str, block: bytes) -> str:
        digest = codec.digest_of(block)
        self._blocks.add(self._note(part, digest), block)
        return digest

    def _note(self, part: str, last: str) -> str:
        name = f"{self._label}/{part}/{last}"
        self._parts.setdefault(f"{self._label}/{part}", []).append(name)
        return name


class Reader:
    """Gives the parts of one lane back."""

    def __init__(self, label: str, blocks: Mapping[str, bytes], manifest: Mapping[str, Any]) -> None:
        self._label, self._blocks, self._manifest = label, blocks, manifest

    def table(self, part: str, layout: Layout) -> SliceTable:
        """A segment of each block, or of several that share a slice: no two segments do."""
        found: list[list[tuple[Rows, str]]] = []
        for name, block in self._each(part):
            rows = codec.read_rows(name, block, layout)
            if not found or found[-1][-1][0].start[-1] < rows.start[0]:
                found.append([])
            found[-1].append((rows, codec.digest_of(block)))
        return SliceTable(layout, tuple(_segment(layout, some) for some in found))

    def rows(self, part: str, layout: Layout) -> Rows:
        """Rows of all blocks, sorted by key and start."""
        found = [codec.read_rows(name, block, layout) for name, block in self._each(part)]
        rows = stack(found) if found else no_rows(layout)
        return rows if len(found) < 2 else rows.take(np.lexsort((rows.start, rows.key)))

    def tuples(self, part: str) -> Tuples:
        """Tuples of all blocks."""
        found = no_tuples()
        for name, block in self._each(part):
            found = concat_tuples(found, codec.read_tuples(name, block))
        return found

    def ledger(self) -> Ledger:
        """The answers."""
        return joined([codec.read_ledger(name, block) for name, block in self._each("ledger")])

    def arrays(self, part: str, empty: Mapping[str, Values]) -> dict[str, Values]:
        """The arrays by name; `empty` tells names and types."""
        tables = [table for table, _ in self.tables(part)]
        return {
            name: np.concatenate([codec.plain(table, name) for table in tables]) if tables else none
            for name, none in empty.items()
        }

    def tables(self, part: str) -> list[tuple[codec.Table, str]]:
        """The columns of each block, and its digest."""
        return [(codec.read_table(name, block), codec.digest_of(block)) for name, block in self._each(part)]

    def blocks(self, part: str) -> list[tuple[str, bytes]]:
        """The names and contents of blocks that something else wrote."""
        return [(name, bytes(codec.unseal(name, block))) for name, block in self._each(part)]

    def _each(self, part: str) -> Iterator[tuple[str, bytes]]:
        for name in self._manifest["parts"].get(f"{self._label}/{part}", []):
            block = self._blocks.get(name)
            if block is None:
                raise BadState(f"block {name!r} is missing. Restore an older snapshot.")
            if codec.digest_of(block) != self._manifest["digests"].get(name):
                codec.unseal(name, block)  # an error of its own if the block is damaged
                raise BadState(f"block {name!r} is whole but not of this snapshot: it is older or newer.")
            yield name, block


def _within_slices(rows: Rows) -> list[int]:
    """Where to cut rows sorted by start and key: within slices of many keys, between ranges of keys.

    The ranges stay the same while a slice does not double, so that a new row changes one block.
    """
    marks = [0, len(rows)]
    if len(rows) <= 2 * CHUNK:
        return marks
    heads = [0, *(np.flatnonzero(np.diff(rows.start)) + 1).tolist(), len(rows)]
    for low, high in pairwise(heads):
        if high - low > 2 * CHUNK:
            key = rows.key[low:high]
            keys_for_each = max(1, (int(key[-1]) + 1) // (high - low))
            width = CHUNK << (keys_for_each.bit_length() - 1)
            marks += (low + 1 + np.flatnonzero(np.diff(key // width))).tolist()
    return sorted(marks)


def _write_span(rows: Rows, low: int, high: int) -> bytes:
    return codec.write_rows(rows.span(low, high))


def _segment(layout: Layout, pieces: Sequence[tuple[Rows, str]]) -> Segment:
    """The segment of these blocks' rows, with their digests."""
    ends = np.cumsum([0, *(len(rows) for rows, _ in pieces)]).tolist()
    made = Segment(layout, pieces[0][0] if len(pieces) == 1 else stack([rows for rows, _ in pieces]))
    _pieces[made] = tuple(
        (low, high, digest) for (low, high), (_, digest) in zip(pairwise(ends), pieces, strict=True)
    )
    return made


def _cuts(*columns: Values) -> Sequence[int]:
    """Where to cut rows: at one in some thousand, chosen by what it holds and not by where it stands."""
    n = len(columns[0])
    if n < CHUNK:
        return [0, n] if n else []
    mixed = np.zeros(n, np.uint64)
    for values, mixer in zip(columns, _MIXERS, strict=False):
        mixed = (mixed ^ values.view(np.uint64)) * mixer
        mixed ^= mixed >> _FOLD
    return [0, *(np.nonzero((mixed[1:] >> _SHIFT) == 0)[0] + 1).tolist(), n]


def write_lane(lane: object, write: Writer) -> None:
    """Put all parts of a lane."""
    match lane:
        case SliceLane():
            write.table("table", lane.table)
            for (number, _, _), sessions in zip(lane.spec.sessions, lane.sessions, strict=True):
                write.rows(f"sessions {number}", sessions.rows)
        case OrderedLane():
            write_lane(lane.slices, write)
            write.tuples("pending", lane.pending)
            return
        case RankLane():
            write.table("table", lane.table)
            write.tuples("pending", lane.pending)
            write.arrays("counters", {"settled": lane.settled, "done": lane.done})
        case MarkLane():
            write.rows("rows", lane.rows)
            write.tuples("pending", lane.pending)
            write.arrays("markers", _arrays_of(lane.markers))
        case TupleLane():
            write.tuples("kept", lane.kept)
            write.arrays("counters", {"arrived": lane.arrived, "forgotten": lane.forgotten})
        case _:
            raise BadState(f"a lane of type {type(lane).__name__} cannot be stored.")
    write.ledger(lane.ledger)


def read_lane(lane: Any, read: Reader) -> Any:
    """The lane, freshly compiled, with the stored parts."""
    match lane:
        case SliceLane():
            sessions = tuple(
                replace(s, rows=read.rows(f"sessions {number}", s.layout))
                for (number, _, _), s in zip(lane.spec.sessions, lane.sessions, strict=True)
            )
            table = read.table("table", lane.spec.layout)
            return replace(lane, table=table, sessions=sessions, ledger=read.ledger())
        case OrderedLane():
            return OrderedLane(read_lane(lane.slices, read), read.tuples("pending"))
        case RankLane():
            counters = read.arrays("counters", {"settled": lane.settled, "done": lane.done})
            table, pending = read.table("table", lane.spec.layout), read.tuples("pending")
            settled, done = counters["settled"], counters["done"]
            return replace(
                lane, table=table, pending=pending, settled=settled, done=done, ledger=read.ledger()
            )
        case MarkLane():
            markers = Markers(**read.arrays("markers", _arrays_of(lane.markers)))
            rows, pending = read.rows("rows", lane.layout), read.tuples("pending")
            return replace(lane, rows=rows, pending=pending, markers=markers, ledger=read.ledger())
        case TupleLane():
            counters = read.arrays("counters", {"arrived": lane.arrived, "forgotten": lane.forgotten})
            arrived, forgotten = counters["arrived"], counters["forgotten"]
            kept = read.tuples("kept")
            return replace(lane, kept=kept, arrived=arrived, forgotten=forgotten, ledger=read.ledger())
        case _:
            raise BadState(f"a lane of type {type(lane).__name__} cannot be stored.")


def _arrays_of(markers: Markers) -> dict[str, Values]:
    return {name: getattr(markers, name) for name in ("is_open", "ordinal", "begin", "latest")}
