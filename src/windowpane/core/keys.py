"""Keys of any columns become dense int64 ids, a batch at a time.

A key is found by 128 bits of its content hash; its values are kept as Arrow arrays by id. A key of one
64-bit column cannot collide at all. A null is a key like any other (as Spark groups nulls together), NaNs
are one key, and -0.0 is the key 0.0. Times are told apart, and kept, by their microsecond, as in Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.arrays import Bools, Ints
from windowpane.core.columns import flat, microseconds, valid_mask
from windowpane.core.hashing import hash_columns, words_of
from windowpane.core.kernels.hashing import Words
from windowpane.core.kernels.keys import DONE, FOUND, Slots, encode_pairs, fill_slots
from windowpane.core.key_types import coarse, fitted, stored
from windowpane.values.errors import BadState

BLOCK = 4096
"""Keys in one block of stored state: blocks of old keys keep their bytes while new keys come."""
_SMALLEST = 1024
_PIECE_BYTES = 2**30
_MOST = 2**30
_FEW = 256
"""One in so many keys is read sooner by itself than with a copy of all."""
_NO_NULLS: Words = np.zeros(0, np.uint64)


class KeyTable:
    """Hashes to dense ids in order of first appearance; knows nothing of values."""

    __slots__ = ("_count", "_known", "_slots")

    def __init__(self) -> None:
        self._count = 0
        self._slots: Slots = np.full(_SMALLEST, -1, np.int32)
        self._known: Words = np.empty(_SMALLEST, np.uint64)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._slots.nbytes + self._known.nbytes

    def encode(self, first: Words, second: Words) -> tuple[Ints, Ints]:
        """The id of each row's pair of words, and the rows at which new keys came, in order.

        An empty `second` stands for zeros.
        """
        ids, new = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
        state = np.array([self._count, 0, 0])
        while True:
            # Scalars of NumPy warn when they wrap; without Numba the kernels run on them.
            with np.errstate(over="ignore"):
                encode_pairs(first, second, self._slots, self._known, state, ids, new)
            if state[DONE] == len(first):
                break
            self._resize(self._count + int(state[FOUND]), 4 * len(self._slots))
        self._count += int(state[FOUND])
        return ids, new[: state[FOUND]].copy()

    def keep(self, live: Bools) -> None:
        """Forget the ids that are not live and renumber the others in order."""
        self._known = self._known[: 2 * self._count].reshape(-1, 2)[live].reshape(-1)
        self._count = int(live.sum())
        size = _SMALLEST
        while size < 4 * self._count:
            size *= 2
        self._resize(self._count, size)

    def _resize(self, count: int, size: int) -> None:
        if size > _MOST:
            raise BadState(f"more than {_MOST // 2} keys in one partition. Use more partitions.")
        known = np.empty(size, np.uint64)
        known[: 2 * count] = self._known[: 2 * count]
        self._known, self._slots = known, np.full(size, -1, np.int32)
        with np.errstate(over="ignore"):
            fill_slots(self._slots, self._known, count)


class KeyIndex:
    """The keys seen so far: dense ids for a batch's rows, and the key values for ids.

    `types` are those of the values given back: the value type of a dictionary, microseconds for
    nanoseconds. Without columns (no grouping) there is one key, 0, for ever.
    """

    __slots__ = ("_pieces", "_table", "names", "types")

    def __init__(self, names: Sequence[str], types: Sequence[pa.DataType]) -> None:
        self.names = tuple(names)
        self.types = tuple(stored(name, kind) for name, kind in zip(names, types, strict=True))
        self._table = KeyTable()
        self._pieces: list[pa.RecordBatch] = []

    def __len__(self) -> int:
        return len(self._table) if self.names else 1

    @property
    def nbytes(self) -> int:
        """Bytes held by the table and the key values."""
        return self._table.nbytes + sum(int(piece.nbytes) for piece in self._pieces)

    def encode(self, arrays: Sequence[Any], rows: int | None = None) -> Ints:
        """The id of each row's key; new keys get the next ids in order of first appearance.

        `rows` is needed only where there are no key columns to tell the number of rows.
        """
        if not self.names:
            return np.zeros(rows or 0, np.int64)
        return self._place(self.fitted(arrays))

    def encode_with_order(self, arrays: Sequence[Any]) -> tuple[Ints, Ints]:
        """As `encode`, and a content hash of each row that is the same in every run and partition."""
        columns = self.fitted(arrays)
        hashes = hash_columns(columns, self.names)
        return self._place(columns, hashes), hashes[0].view(np.int64)

    def fitted(self, arrays: Sequence[Any]) -> list[pa.Array]:
        """The key columns in the types of the index; refused where a value would become another."""
        if len(arrays) != len(self.names):
            raise ValueError(f"{len(arrays)} arrays for the {len(self.names)} key columns {self.names}")
        return [
            fitted(name, flat(array), kind)
            for name, array, kind in zip(self.names, arrays, self.types, strict=True)
        ]

    def _place(self, columns: list[pa.Array], hashes: tuple[Words, Words] | None = None) -> Ints:
        # A single column of words needs no hash: the word itself tells keys apart.
        words = words_of(columns[0]) if len(columns) == 1 else None
        if words is not None:
            pairs = _with_nulls(words, valid_mask(columns[0]))
        else:
            pairs = hashes or hash_columns(columns, self.names)
        ids, new = self._table.encode(*pairs)
        if len(new):
            at = pa.array(new)
            self._append([_canonical(column.take(at)) for column in columns])
        return ids

    def values(self, ids: Ints) -> list[pa.Array]:
        """The key columns of these ids."""
        if not self.names:
            return []
        if not self._pieces:
            return [pa.nulls(len(ids), kind) for kind in self.types]
        if len(self._pieces) == 1:
            return list(self._pieces[0].take(pa.array(ids)).columns)
        if 0 < _FEW * len(ids) <= len(self):
            return self._few_values(ids)
        return [flat(column) for column in pa.Table.from_batches(self._pieces).take(pa.array(ids)).columns]

    def _few_values(self, ids: Ints) -> list[pa.Array]:
        """As `values`, piece by piece: to take from several at once Arrow copies all of them into one."""
        starts = np.cumsum([0, *(piece.num_rows for piece in self._pieces)])
        of = np.searchsorted(starts, ids, "right") - 1
        found = [self._pieces[i].take(pa.array(ids[of == i] - starts[i])) for i in np.unique(of)]
        place = np.empty(len(ids), np.int64)
        place[np.argsort(of, kind="stable")] = np.arange(len(ids))
        return list(pa.concat_batches(found).take(pa.array(place)).columns)

    def compact(self, live: Bools) -> Ints:
        """Forget the ids that are not live; the new id of each old one, -1 where forgotten.

        The others keep their order and are dense again; memory shrinks with them.
        """
        if not self.names:
            return np.zeros(1, np.int64)
        remap = np.where(live, np.cumsum(live) - 1, -1)
        if not bool(live.all()):
            kept = self.values(np.flatnonzero(live))
            self._table.keep(live)
            self._pieces = []
            if len(self._table):
                self._append(kept)
        return remap

    def blocks(self, first: int = 0, last: int | None = None) -> dict[str, bytes]:
        """The keys as Arrow IPC, `BLOCK` keys each; a block changes only while it fills, or by `compact`.

        From the block `first` on, up to and without `last` (default: all).
        """
        if not self.names or not len(self):
            return {}
        table = pa.Table.from_batches(self._pieces)
        end = len(self) if last is None else min(last * BLOCK, len(self))
        starts = range(first * BLOCK, end, BLOCK)
        return {f"keys-{at // BLOCK:06d}": _written(table.slice(at, BLOCK)) for at in starts}

    @classmethod
    def restore(
        cls, names: Sequence[str], types: Sequence[pa.DataType], blocks: Mapping[str, bytes]
    ) -> KeyIndex:
        """The index that `blocks` was called on, with the same ids."""
        index = cls(names, types)
        for place, name in enumerate(sorted(blocks)):
            if name != f"keys-{place:06d}":
                raise BadState(f"block {name!r} does not belong here: it is number {place} of the keys.")
            index.read(place, name, blocks[name])
        return index

    def read(self, place: int, name: str, block: bytes) -> None:
        """Take in the keys of a block: the first that has keys that are not known, or one before it."""
        batch = _read(name, block)
        if batch.schema != self._schema():
            raise BadState(f"block {name!r} does not belong here: it holds {batch.schema.to_string()!r}.")
        ids = self.encode(batch.columns)
        if not np.array_equal(ids, np.arange(place * BLOCK, place * BLOCK + len(ids))):
            raise BadState(f"block {name!r} repeats a key or is not full. Restore an older checkpoint.")

    def _schema(self) -> pa.Schema:
        return pa.schema(list(zip(_labels(len(self.types)), self.types, strict=True)))

    def _append(self, columns: list[pa.Array]) -> None:
        """Add the values of new keys, merging pieces of like size so that there are few of them."""
        pieces = [*self._pieces, pa.record_batch(columns, schema=self._schema())]
        while len(pieces) > 1 and _worth_merging(pieces[-2], pieces[-1]):
            pieces[-2:] = [pa.concat_batches(pieces[-2:])]
        self._pieces = pieces


def _worth_merging(a: pa.RecordBatch, b: pa.RecordBatch) -> bool:
    small = a.num_rows + b.num_rows <= BLOCK
    return bool(small or a.num_rows < 2 * b.num_rows) and int(a.nbytes + b.nbytes) < _PIECE_BYTES


def _labels(n: int) -> list[str]:
    # Names of the user's columns may repeat or be odd; the state does not need them.
    return [f"k{i}" for i in range(n)]


def _with_nulls(words: Words, valid: Bools | None) -> tuple[Words, Words]:
    """The words and their null flags; what a null row holds must not matter."""
    if valid is None:
        return words, _NO_NULLS
    return np.where(valid, words, np.uint64(0)), (~valid).astype(np.uint64)


def _canonical(array: pa.Array) -> pa.Array:
    """One form for all values that are one key, so that the first to come does not show in the results."""
    if pa.types.is_dictionary(array.type):
        return flat(array.dictionary_decode())
    if pa.types.is_floating(array.type):
        words = words_of(array)
        wide = pa.array(words.view(np.float64), from_pandas=False) if words is not None else array
        return pc.if_else(array.is_valid(), wide, None).cast(array.type)
    if coarse(array.type) != array.type:
        floored = pa.array(microseconds(array)[0])
        return pc.if_else(array.is_valid(), floored, None).view(coarse(array.type))
    return array


def _written(table: pa.Table) -> bytes:
    # Taking every row makes fresh buffers: slices would carry bytes of their neighbours into the block.
    batch = table.combine_chunks().to_batches()[0].take(pa.array(np.arange(table.num_rows)))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _as_bytes(array: pa.Array) -> pa.Array:
    if pa.types.is_string(array.type):
        return array.view(pa.binary())
    return array.view(pa.large_binary()) if pa.types.is_large_string(array.type) else array


def _read(name: str, data: bytes) -> pa.RecordBatch:
    try:
        with pa.ipc.open_stream(data) as reader:
            (batch,) = reader
        for column in batch.columns:
            # Offsets are followed blindly by the kernels; bad UTF-8 is none of our business.
            _as_bytes(column).validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadState(f"block {name!r} of keys is damaged: {error}. Restore an older checkpoint.") from error
    return batch
