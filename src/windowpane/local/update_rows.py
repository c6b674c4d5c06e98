"""The rows that a join keeps, or that wait in a queue on Spark, by their numbers in order of arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.arrays import Ints
from windowpane.core.upstream.kept import with_piece
from windowpane.local.update_tables import stacked


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows with rising numbers."""

    numbers: Ints
    rows: pa.Table

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows in few pieces, so that finding some costs what they are; `came` counts all ever."""

    came: int = 0
    like: pa.Table | None = None
    """No rows, with the columns that all have."""
    pieces: tuple[_Piece, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def with_rows(self, rows: pa.Table, numbers: Ints | None = None) -> KeptRows:
        """These and new rows, whose columns fit; their numbers go on from `came`, or are given and rise."""
        like = rows.schema.empty_table() if self.like is None else self.like
        new = pa.concat_tables([like, rows], promote_options="default").combine_chunks()
        found = np.arange(self.came, self.came + len(new)) if numbers is None else numbers
        pieces = with_piece(self.pieces, _Piece(found, new), _joined)
        came = int(found[-1]) + 1 if len(found) else self.came
        return KeptRows(came, new.schema.empty_table(), pieces)

    def take(self, numbers: Ints) -> pa.Table:
        """The rows with these numbers."""
        starts = np.array([piece.numbers[0] for piece in self.pieces], np.int64)
        which = np.searchsorted(starts, numbers, side="right") - 1
        parts = [self.like]
        for i in np.unique(which):
            at = np.searchsorted(self.pieces[i].numbers, numbers[which == i])
            assert np.array_equal(self.pieces[i].numbers[at], numbers[which == i]), "rows that are not kept"
            parts.append(_with_own_values(self.pieces[i].rows.take(pa.array(at))))
        made = pa.concat_tables(parts, promote_options="default")
        if len(parts) <= 2:  # all of them lay in one piece
            return made
        return made.take(pa.array(np.argsort(np.argsort(which, kind="stable"))))

    def only(self, numbers: Ints) -> KeptRows:
        """The rows with these numbers, which rise, as one piece."""
        piece = _Piece(numbers, self.take(numbers).combine_chunks())
        return replace(self, pieces=(piece,) if len(piece) else ())


def with_side(kept: KeptRows, rows: pa.Table, side: str, keys: Sequence[str]) -> KeptRows:
    """What is kept of a side of a join, and new rows, which must fit."""
    like = rows.schema.empty_table() if kept.like is None else kept.like
    return kept.with_rows(stacked([like, rows], [f"what was {side} before", f"what is {side} now"], keys))


def _joined(a: _Piece, b: _Piece) -> _Piece:
    rows = pa.concat_tables([a.rows, b.rows], promote_options="default").combine_chunks()
    return _Piece(np.concatenate([a.numbers, b.numbers]), rows)


def _with_own_values(rows: pa.Table) -> pa.Table:
    """The rows with dictionaries of no other values than theirs: else they would hold all that ever came."""
    for i, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            chunks = [_own_values(chunk) for chunk in rows.column(i).chunks]
            rows = rows.set_column(i, field, pa.chunked_array(chunks, field.type))
    return rows


def _own_values(column: pa.DictionaryArray) -> pa.DictionaryArray:
    used = pc.unique(column.indices).drop_null()
    used = used.take(pc.sort_indices(used))  # where they are ordered, by their place
    at = pc.index_in(column.indices, value_set=used).cast(column.type.index_type)
    return pa.DictionaryArray.from_arrays(at, column.dictionary.take(used), ordered=column.type.ordered)
