"""The state of an update queue as blocks, of which only those that changed are written.

Keys are in blocks of some thousand by id, rows that wait in pieces by number. A block whose keys and rows
were not touched since it was last stored keeps its digest, and is written again only for another worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from windowpane.core import blocks as codec
from windowpane.core.arrays import Ints, Values
from windowpane.core.keys import BLOCK, KeyIndex
from windowpane.core.lane_blocks import CHUNK, Blocks
from windowpane.query import NUMBER
from windowpane.spark.envelope import read_batches, write_batch
from windowpane.spark.zones import UTC, in_zone

PIECE = 4096
"""Numbers of rows in a piece of those that wait."""


@dataclass
class Touched:
    """What changed since the state was last stored: chunks of keys, pieces of rows, or all of it.

    `keys` is how many keys there were then. Rows that wait are held in bytes too, since Arrow may write the
    same rows in other bytes once their neighbours are gone.
    """

    all: bool = True
    chunks: set[int] = field(default_factory=set)
    pieces: set[int] = field(default_factory=set)
    keys: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    rows: dict[str, bytes] = field(default_factory=dict)

    def note_keys(self, ids: Ints) -> None:
        """These keys changed."""
        self.chunks.update(np.unique(ids // CHUNK).tolist())

    def note_rows(self, numbers: Ints) -> None:
        """These rows came or went."""
        self.pieces.update(np.unique(numbers // PIECE).tolist())

    def stored(self, keys: int, digests: Mapping[str, str]) -> None:
        """All is stored now."""
        self.all, self.keys, self.digests = False, keys, dict(digests)
        self.chunks.clear()
        self.pieces.clear()


class Pieces:
    """Puts the parts of one queue; those that did not change are only named."""

    def __init__(self, label: str, blocks: Blocks, touched: Touched) -> None:
        self._label, self._blocks, self._touched = label, blocks, touched
        self.parts: dict[str, list[str]] = {}
        self._rows: dict[str, bytes] = {}

    @property
    def digests(self) -> dict[str, str]:
        """The digest of every block that was put."""
        return {name: self._blocks.digests[name] for names in self.parts.values() for name in names}

    def index(self, index: KeyIndex) -> None:
        """The keys. A block of them changes only while it fills."""
        before = self._touched.keys
        for place in range(-(-len(index) // BLOCK)):
            same = min(len(index), (place + 1) * BLOCK) <= before
            self._put("keys", place, partial(_keys, index, place), same=same)

    def arrays(self, part: str, arrays: Mapping[str, Values], *, by_key: bool) -> None:
        """Arrays of one length, by key id if `by_key`; others are taken to be new."""
        n = len(next(iter(arrays.values()))) if arrays else 0
        for place in range(-(-n // CHUNK)):
            some = {name: array[place * CHUNK : (place + 1) * CHUNK] for name, array in arrays.items()}
            same = by_key and place not in self._touched.chunks
            self._put(part, place, partial(codec.write_table, some), same=same)

    def held(self, rows: pa.Table | None, numbers: Ints) -> None:
        """The rows that wait, with their numbers in rising order."""
        pieces, first = np.unique(numbers // PIECE, return_index=True)
        ends = np.append(first, len(numbers))[1:]
        for piece, low, high in zip(pieces, first, ends, strict=True):
            name = f"{self._label}/held/{piece}"
            known = self._touched.rows.get(name)
            same = piece not in self._touched.pieces and known is not None and not self._touched.all
            block = known if same and known is not None else _rows(rows, numbers, int(low), int(high))
            self._rows[name] = block
            self._put("held", int(piece), partial(bytes, block), same=same)
        self._touched.rows = self._rows

    def _put(self, part: str, place: int, write: Callable[[], bytes], *, same: bool) -> None:
        name = f"{self._label}/{part}/{place}"
        self.parts.setdefault(f"{self._label}/{part}", []).append(name)
        digest = None if self._touched.all or not same else self._touched.digests.get(name)
        if digest is None:
            self._blocks.add(name, write())
        else:
            self._blocks.defer(name, digest, write)


def _keys(index: KeyIndex, place: int) -> bytes:
    (block,) = index.blocks(place, place + 1).values()
    return codec.seal(block)


def _rows(rows: pa.Table | None, numbers: Ints, low: int, high: int) -> bytes:
    assert rows is not None
    some = rows.slice(low, high - low).append_column(NUMBER, pa.array(numbers[low:high]))
    return codec.seal(write_batch(some.combine_chunks()))


def read_rows(blocks: Iterable[bytes]) -> pa.Table | None:
    """Rows that wait from their blocks, with their numbers; None where there are no blocks.

    Versions of before kept instants in the session's time zone of then.
    """
    tables = [
        in_zone(pa.Table.from_batches([batch]), UTC) for block in blocks for batch in read_batches(block)
    ]
    return joined(tables).combine_chunks() if tables else None


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Rows that wait, with those that came after them.

    Whether a column may have nulls is no part of the stream, and may be otherwise after a restart.
    """
    return pa.concat_tables(tables, promote_options="default")
