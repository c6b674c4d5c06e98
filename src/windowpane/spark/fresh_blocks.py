"""What a queue keeps, as named blocks and back.

`keys` has the keys by id, in blocks that change only while they fill. `known` has what is known of some keys,
`rows` their rows that wait; `line` and `line rows` have a line of all rows, in pieces by their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core import blocks as codec
from windowpane.core.arrays import Ints, Values
from windowpane.core.keys import BLOCK, KeyIndex
from windowpane.core.lane_blocks import Blocks, Reader
from windowpane.core.upstream.append import LINE
from windowpane.local.update_rows import KeptRows
from windowpane.query import NUMBER
from windowpane.spark.envelope import read_batches, write_batch
from windowpane.spark.fresh_journal import Journal, ids_of
from windowpane.spark.zones import UTC, in_zone
from windowpane.values.errors import BadState

PIECE = 4096
"""Numbers of rows in a piece of a line."""
IN_LINE = tuple(f"line {name}" for name in LINE)
_ROWS_IN_LINE = IN_LINE[LINE.index("rows")]
_KEPT_IN_LINE = IN_LINE[LINE.index("kept")]
_ID = "id"
_NOBODY: Ints = np.empty(0, np.int64)
_NO_LINE: Mapping[str, Values] = dict(
    zip(IN_LINE, (_NOBODY, _NOBODY, np.empty(0), np.empty(0, np.bool_)), strict=True)
)
_ROWS = ("rows", "line rows")


@dataclass(frozen=True)
class Contents:
    """All that a queue keeps: its keys, arrays by their ids, the rows that wait, and the line if it has one.

    The arrays may end before the last key. `waits` has the number of the row of each key that waits, -1 of
    the others; it is empty where there is a line. Where only some keys were read `ids` has these.
    """

    index: KeyIndex
    known: dict[str, Values] = field(default_factory=dict)
    rows: KeptRows = field(default_factory=KeptRows)
    waits: Ints = field(default_factory=lambda: _NOBODY)
    line: dict[str, Values] = field(default_factory=dict)
    ids: Ints | None = None

    @property
    def first(self) -> int:
        """The number of the first row in the line; of the next one that comes if there is none."""
        numbers = self.line.get(_ROWS_IN_LINE, _NOBODY)
        return int(numbers[0]) if len(numbers) else self.rows.came


class BlockWriter:
    """Puts the blocks of one queue; those that did not change, which `stored` has the digests of, by name."""

    def __init__(self, label: str, blocks: Blocks, given: Contents, stored: Mapping[str, str]) -> None:
        self._label, self._blocks, self._given, self._stored = label, blocks, given, stored
        self.digests: dict[str, str] = {}

    def keys(self, before: int) -> None:
        """The keys, of which so many are stored."""
        index = self._given.index
        for place in range(-(-len(index) // BLOCK)):
            same = min(len(index), (place + 1) * BLOCK) <= before
            self._put("keys", place, None if same else partial(_keys, index, place))

    def journal(self, journal: Journal, chunks: Container[int]) -> None:
        """What is known of keys: these chunks and the newest entry, the others are stored."""
        keys = len(self._given.index)
        for place, at in enumerate(journal.written):
            if at:
                self._known(_chunk(place), ids_of(place, keys) if place in chunks else None)
        for at, ids in journal.entries.items():
            self._known(_entry(at), ids if at == journal.now else None)

    def _known(self, place: str, ids: Ints | None) -> None:
        """What is known of some keys, and the rows of those that wait; None: it is stored."""
        if ids is None:
            self._put("known", place, None)
            self._put("rows", place, None)
            return
        columns = {name: _padded(array, ids, 0) for name, array in self._given.known.items()}
        self._put("known", place, lambda: codec.write_table({_ID: ids, **columns}))
        numbers = np.sort(_padded(self._given.waits, ids, -1))
        self._put_rows("rows", place, numbers[np.searchsorted(numbers, 0) :])

    def line(self, since: int) -> None:
        """The line, of which rows from this number on are not stored."""
        numbers = self._given.line.get(_ROWS_IN_LINE, _NOBODY)
        if (np.diff(numbers) <= 0).any():
            raise BadState(
                "the rows of a line do not wait in the order of their numbers: some would be lost."
            )
        begins = np.flatnonzero(np.diff(numbers // PIECE, prepend=-1))
        for low, high in pairwise([*begins.tolist(), len(numbers)]):
            piece = int(numbers[low]) // PIECE
            if (piece + 1) * PIECE <= since:
                self._put("line", piece, None)
                self._put("line rows", piece, None)
                continue
            some = {name: self._given.line[name][low:high] for name in IN_LINE}
            self._put("line", piece, partial(codec.write_table, some))
            self._put_rows("line rows", piece, numbers[low:high][some[_KEPT_IN_LINE]])

    def _put_rows(self, part: str, place: object, numbers: Ints) -> None:
        if len(numbers):
            rows = self._given.rows.take(numbers).append_column(NUMBER, pa.array(numbers))
            self._put(part, place, lambda: codec.seal(write_batch(rows.combine_chunks())))

    def _put(self, part: str, place: object, write: Callable[[], bytes] | None) -> None:
        name = f"{self._label}/{part}/{place}"
        if write is not None:
            self._blocks.add(name, write())
        elif name in self._stored or part not in _ROWS:  # rows are not where none waits
            self._blocks.keep(name, self._stored[name])
        else:
            return
        self.digests[name] = self._blocks.digests[name]


def read_contents(
    label: str, header: Mapping[str, Any], blocks: Mapping[str, bytes], before: Contents, since: int
) -> tuple[Contents, dict[int, Ints]]:
    """What was put, and the keys of each entry that was read.

    `before` is what was at the store `since`, of which only what came later is read; nothing where that is 0.
    Where entries of then are gone what is known of keys is read whole, and so is a line that was rearranged.
    """
    places = _places(header["journal"], since if since >= header["journal"]["complete"] else 0)
    in_line, keys = before.rows.came if since >= header["whole"] else 0, int(header["keys"])
    pieces = _pieces(label, header, max(header["first"], in_line))
    read = _reader(label, header, blocks, {"known": places, "line": pieces}, len(before.index))
    for number, (name, content) in enumerate(read.blocks("keys"), len(before.index) // BLOCK):
        before.index.read(number, name, content)
    tables = [table for table, _ in read.tables("known")]
    found = {place: codec.plain(table, _ID) for place, table in zip(places, tables, strict=True)}
    entries = {at: found[_entry(at)] for at in header["journal"]["entries"] if _entry(at) in found}
    order = sorted(range(len(tables)), key=list(places.values()).__getitem__)
    ids, known = _last_of_each([tables[i] for i in order], header["columns"], keys)
    rows = _with_rows(before.rows, [content for part in _ROWS for _, content in read.blocks(part)])
    line = _line(before.line if in_line else {}, read, header["first"], in_line) if header["line"] else {}
    rows = replace(rows, came=int(header["came"]))
    return Contents(before.index, known, rows, line=line, ids=ids), entries


def _places(journal: Mapping[str, Any], since: int) -> dict[str, int]:
    """The chunks and entries to read, and when each was written."""
    chunks = {_chunk(place): at for place, at in enumerate(journal["written"]) if at and not since}
    return chunks | {_entry(at): at for at in journal["entries"] if at > since}


def _pieces(label: str, header: Mapping[str, Any], since: int) -> list[int]:
    """The pieces of the line that have rows from this number on."""
    names = (name.removeprefix(f"{label}/line/") for name in header["digests"])
    return sorted(int(name) for name in names if name.isdecimal() and (int(name) + 1) * PIECE > since)


def _reader(
    label: str,
    header: Mapping[str, Any],
    blocks: Mapping[str, bytes],
    wanted: Mapping[str, Collection[object]],
    keys: int,
) -> Reader:
    """Reads what is wanted, with the rows there, and keys but for so many that are known."""
    digests = header["digests"]
    more = range(keys // BLOCK, -(-header["keys"] // BLOCK)) if keys < header["keys"] else ()
    wanted = {**wanted, "keys": more, "rows": wanted["known"], "line rows": wanted["line"]}
    parts = {
        f"{label}/{part}": [f"{label}/{part}/{place}" for place in some] for part, some in wanted.items()
    }
    for part in _ROWS:  # which are not where none waits
        parts[f"{label}/{part}"] = [name for name in parts[f"{label}/{part}"] if name in digests]
    return Reader(label, blocks, {"parts": parts, "digests": digests})


def _last_of_each(
    tables: Sequence[codec.Table], columns: Mapping[str, str], keys: int
) -> tuple[Ints, dict[str, Values]]:
    """The keys in some tables, and of each what the last table says."""
    ids = [codec.plain(table, _ID) for table in tables]
    place = np.full(keys, -1)
    for some, begin in zip(ids, np.cumsum([0, *map(len, ids)]), strict=False):
        place[some] = np.arange(begin, begin + len(some))
    found = np.flatnonzero(place >= 0)
    known = {
        name: np.concatenate([np.empty(0, kind), *(codec.plain(table, name) for table in tables)])
        for name, kind in columns.items()
    }
    return found, {name: array[place[found]] for name, array in known.items()}


def _with_rows(before: KeptRows, blocks: Sequence[bytes]) -> KeptRows:
    """The rows, and those in the blocks that came later. Some are in several blocks."""
    tables = [in_zone(pa.Table.from_batches(read_batches(block)), UTC) for block in blocks]
    if not tables:
        return before
    rows = pa.concat_tables(tables, promote_options="default")
    numbers, at = np.unique(rows[NUMBER].to_numpy(), return_index=True)
    new = numbers >= before.came
    return before.with_rows(rows.drop_columns([NUMBER]).take(pa.array(at[new])), numbers[new])


def _line(before: Mapping[str, Values], read: Reader, first: int, came: int) -> dict[str, Values]:
    """The line from its first row on, with what came behind it."""
    found = read.arrays("line", _NO_LINE)
    rest, new = (
        {name: array[part[_ROWS_IN_LINE] >= least] for name, array in part.items()}
        for part, least in ((before or _NO_LINE, first), (found, max(first, came)))
    )
    return {name: np.concatenate([rest[name], new[name]]) for name in IN_LINE}


def _chunk(place: int) -> str:
    return f"chunk {place}"


def _entry(at: int) -> str:
    return f"entry {at}"


def _padded(array: Values, ids: Ints, rest: int) -> Values:
    """The entries of these ids, which rise; those beyond the end are `rest`."""
    inside = ids[: np.searchsorted(ids, len(array))]
    return np.concatenate([array[inside], np.full(len(ids) - len(inside), rest, array.dtype)])


def _keys(index: KeyIndex, place: int) -> bytes:
    (block,) = index.blocks(place, place + 1).values()
    return codec.seal(block)
