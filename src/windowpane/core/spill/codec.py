"""The block format: a header of 64 bytes and fixed-width columns, told whole or damaged by itself.

    bytes  field
    0-3    magic `WPSB`                     4-7    rows in use
    8-9    version of the format            10-11  number of columns
    12-27  id of the store                  28-35  epoch: which life of the store wrote it
    36-43  number of the block in its chain 44-47  zero
    48-55  fingerprint of the columns       56-63  checksum of all other bytes (`kernels/checksum.py`)
    64-    the columns one after the other, the widest first, each with room for `capacity` rows

All numbers are little-endian. Text and binary values are not in blocks: a key or a text is an id into a
dictionary (`core/keys.py`, `core/interner.py`), which is kept in memory and stored with checkpoints. A null
is a cleared bit in a column of bits. Pure: no file is touched here.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from windowpane.core.arrays import Values
from windowpane.core.kernels.checksum import checksum
from windowpane.values.errors import BadQuery, BadState

VERSION = 2
BLOCK_BYTES = 64 * 1024
HEADER_BYTES = 64
_MAGIC = b"WPSB"
_HEADER = struct.Struct("<4sIHH16sQQ4xQQ")
_CHECKSUM = struct.Struct("<Q")
_CHECKSUM_AT = 56
Buffer = npt.NDArray[np.uint8]
"""The bytes of one block."""
_REMEDY = "Restore an older checkpoint, or run the query again."


@dataclass(frozen=True)
class BlockLayout:
    """Which columns a block holds, and where."""

    columns: tuple[tuple[str, str], ...]
    """(name, NumPy type such as `<i8`), the widest first."""
    block_bytes: int = BLOCK_BYTES

    def __post_init__(self) -> None:
        widths = [np.dtype(kind).itemsize for _, kind in self.columns]
        if widths != sorted(widths, reverse=True):
            raise ValueError("columns must stand with the widest first, so that each is aligned")
        if self.block_bytes % 8 or self.capacity < 1:
            raise BadQuery(
                f"a block of {self.block_bytes} bytes has no room for a row of {self.row_bytes} bytes after "
                f"its header of {HEADER_BYTES}. Give a larger multiple of 8."
            )

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return sum(np.dtype(kind).itemsize for _, kind in self.columns)

    @cached_property
    def capacity(self) -> int:
        """Rows in a full block: the block factor of the paper."""
        return (self.block_bytes - HEADER_BYTES) // self.row_bytes

    @cached_property
    def fingerprint(self) -> int:
        """A number that other columns, or others in size, do not have."""
        return zlib.crc32(repr((self.columns, self.block_bytes)).encode())

    def views(self, buffer: Buffer) -> tuple[Values, ...]:
        """The columns of a block, without copying."""
        found, at = [], HEADER_BYTES
        for _, kind in self.columns:
            dtype = np.dtype(kind)
            size = dtype.itemsize * self.capacity
            found.append(buffer[at : at + size].view(dtype))
            at += size
        return tuple(found)


def block_layout(types: dict[str, npt.DTypeLike], block_bytes: int = BLOCK_BYTES) -> BlockLayout:
    """The layout for these columns, the widest first and otherwise in the order given."""
    named = [(name, np.dtype(kind).newbyteorder("<").str) for name, kind in types.items()]
    named.sort(key=lambda pair: -np.dtype(pair[1]).itemsize)
    return BlockLayout(tuple(named), block_bytes)


@dataclass(frozen=True)
class Stamp:
    """What a block must say of itself: of which store and life, which block, how many rows."""

    store: bytes
    epoch: int
    number: int
    rows: int


def seal(buffer: Buffer, layout: BlockLayout, stamp: Stamp) -> None:
    """Write the header of a block whose columns are filled."""
    _HEADER.pack_into(
        buffer.data, 0, _MAGIC, stamp.rows, VERSION, len(layout.columns), stamp.store, stamp.epoch,
        stamp.number, layout.fingerprint, 0,
    )  # fmt: skip
    _CHECKSUM.pack_into(buffer.data, _CHECKSUM_AT, checksum(buffer.view("<u8")))


def verify(buffer: Buffer, layout: BlockLayout, expected: Stamp, where: str) -> None:
    """Fail unless this is exactly the block that is expected; `where` names the file and the place."""
    if len(buffer) != layout.block_bytes:
        raise damaged(where, f"it has {len(buffer)} of {layout.block_bytes} bytes")
    fields = _HEADER.unpack_from(buffer.data)
    magic, rows, version, columns, store, epoch, number, fingerprint, told = fields
    if magic != _MAGIC:
        raise damaged(where, "it does not begin as a block does")
    if checksum(buffer.view("<u8")) != told:
        raise damaged(where, "its bytes do not match its checksum")
    if version != VERSION:
        raise BadState(f"{where} has format {version}, but this windowpane reads format {VERSION}.")
    if store != expected.store:
        raise damaged(where, f"it is of another store, {store.hex()}")
    if (columns, fingerprint) != (len(layout.columns), layout.fingerprint):
        raise damaged(where, "it holds other columns")
    if (number, epoch, rows) != (expected.number, expected.epoch, expected.rows):
        raise damaged(
            where,
            f"it holds block {number} of epoch {epoch} with {rows} rows instead of block {expected.number} "
            f"of epoch {expected.epoch} with {expected.rows}",
        )


def damaged(where: str, what: str) -> BadState:
    """The error for a block that cannot be used."""
    return BadState(f"{where} is damaged: {what}. {_REMEDY}")
