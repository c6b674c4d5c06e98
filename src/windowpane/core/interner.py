"""Text and binary values become int64 ids, so that aggregates work on numbers alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from windowpane.core.arrays import Bools, Ints
from windowpane.core.keys import KeyIndex

_NAMES = ("value",)


class Interner:
    """The distinct values of one text or binary column; a null has an id as well."""

    __slots__ = ("_index",)

    def __init__(self, kind: pa.DataType) -> None:
        self._index = KeyIndex(_NAMES, (kind,))

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return self._index.types[0]

    def __len__(self) -> int:
        return len(self._index)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._index.nbytes

    def encode(self, array: Any) -> tuple[Ints, Ints]:
        """The id of each value, and a hash of its content that orders values alike in every run."""
        return self._index.encode_with_order([array])

    def values(self, ids: Ints) -> pa.Array:
        """The values of these ids."""
        return self._index.values(ids)[0]

    def compact(self, live: Bools) -> Ints:
        """Forget the ids that are not live; the new id of each old one, -1 where forgotten."""
        return self._index.compact(live)

    def blocks(self) -> dict[str, bytes]:
        """The values as Arrow IPC, as `KeyIndex.blocks`."""
        return self._index.blocks()

    @classmethod
    def restore(cls, kind: pa.DataType, blocks: Mapping[str, bytes]) -> Interner:
        """The interner that `blocks` was called on, with the same ids."""
        interner = cls(kind)
        interner._index = KeyIndex.restore(_NAMES, (kind,), blocks)
        return interner
