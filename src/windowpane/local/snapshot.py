"""Snapshots of a run: a small header and the blocks of its state, as a value or as bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowpane.core.blocks import FORMAT, read_json, unseal, write_json
from windowpane.core.lane_blocks import Blocks
from windowpane.values.errors import BadState

_MAGIC = b"windowpane snapshot\n"
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Snapshot:
    """The state of a run between two batches.

    `header` has the plan's fingerprint, the clock and the counts as plain values; it is small and changes
    always. `blocks` has the rest by name: a store that keeps blocks one by one asks `blocks.changed(...)`
    what to write, and makes `Snapshot(header, Blocks(stored))` of what it holds.
    """

    header: dict[str, Any]
    blocks: Blocks

    def to_bytes(self) -> bytes:
        """All of it in one piece."""
        lengths = {name: len(block) for name, block in self.blocks.items()}
        head = write_json({**self.header, "blocks": lengths})
        return b"".join([_MAGIC, _LENGTH.pack(len(head)), head, *self.blocks.values()])

    @classmethod
    def from_bytes(cls, data: bytes) -> Snapshot:
        """The snapshot that was written; an error that names the first block that is damaged."""
        at = len(_MAGIC) + _LENGTH.size
        if len(data) < at or data[: len(_MAGIC)] != _MAGIC:
            raise BadState("these bytes are no snapshot of windowpane: they do not begin as one does.")
        (length,) = _LENGTH.unpack_from(data, len(_MAGIC))
        header = read_json("header", data[at : at + length])
        at += length
        blocks: dict[str, bytes] = {}
        for name, size in header.pop("blocks").items():
            blocks[name] = data[at : at + size]
            unseal(name, blocks[name])
            at += size
        if at != len(data):
            raise BadState(f"the snapshot has {len(data)} bytes, but should have {at}. Restore an older one.")
        return cls(header, Blocks(blocks))


def check_format(header: Mapping[str, Any]) -> None:
    """An error if another version of windowpane wrote the snapshot."""
    found = header.get("format")
    if found != FORMAT:
        raise BadState(f"the snapshot has format {found}, but this windowpane reads format {FORMAT}.")
