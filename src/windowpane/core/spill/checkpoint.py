"""A store as a checkpoint: its blocks stay where they are on disk, and a small state names them.

Blocks never change once written: a block that is filled further is written to another place, and places that
the last checkpoint names are not reused before the next one. So a checkpoint writes only what is not on disk
yet, at most the blocks in memory, and a crash at any moment leaves the last one whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windowpane.core.spill.codec import BlockLayout, Stamp, verify
from windowpane.core.spill.medium import Medium
from windowpane.core.spill.numbers import FreeList, SlotRing
from windowpane.core.spill.store import BlockStore, Cursor
from windowpane.values.errors import BadState


def flush(store: BlockStore) -> dict[str, Any]:
    """Put every block to disk; the state from which `revive` goes on. Call `settle` once it is stored."""
    for number in sorted(store._frames):
        frame = store._frames[number]
        if frame.dirty:
            store._write(frame)
    store.medium.sync()
    return {
        "identity": store.identity.hex(),
        "columns": [list(pair) for pair in store.layout.columns],
        "block_bytes": store.layout.block_bytes,
        "epochs": [list(pair) for pair in store.epochs],
        "first": store.slots.first,
        "slots": store.slots.to_array().tolist(),
        "rows": store._recent.rows,
        "end": store.free.end,
        "windows": {str(name): [cursor.number, cursor.row] for name, cursor in store.windows.items()},
        "named": store._named,
    }


def settle(store: BlockStore) -> None:
    """The state is stored for good: places that only the checkpoint before it named are free now."""
    store.checkpointed = store._recent.number
    store.free.unhold()


def revive(layout: BlockLayout, medium: Medium, state: dict[str, Any], frames: int) -> BlockStore:
    """The store that was flushed, in a new life; every block that it reads at once is checked."""
    columns = tuple((name, kind) for name, kind in state["columns"])
    if columns != layout.columns or state["block_bytes"] != layout.block_bytes:
        raise BadState(
            f"the checkpoint holds blocks of {state['block_bytes']} bytes with the columns {columns}, but "
            f"the query needs {layout.block_bytes} bytes with {layout.columns}: another query wrote it."
        )
    epochs = [(int(number), int(epoch)) for number, epoch in state["epochs"]]
    store = BlockStore(layout, medium, frames, identity=bytes.fromhex(state["identity"]))
    store.epochs = epochs
    slots = np.array(state["slots"], np.int32)
    store.slots = SlotRing(state["first"], slots)
    unused = np.ones(state["end"], np.bool_)
    unused[slots[slots >= 0]] = False
    store.free = FreeList(state["end"], np.flatnonzero(unused).tolist())
    last, rows = store.slots.end - 1, state["rows"]
    store._spare.append(store._frames.pop(0))
    _read_recent(store, last, rows)
    for name, (number, row) in state["windows"].items():
        store.windows[int(name)] = Cursor(number, row)
        store.residency.place(number)
    store._named = state["named"]
    for number in {cursor.number for cursor in store.windows.values()} - {last}:
        store._load(number)
    # from here on blocks are of a new epoch, so that what a lost life wrote after this is not taken for ours
    epochs.append((last + (rows == layout.capacity), epochs[-1][1] + 1))
    store.epochs = _needed(epochs, store.slots.first)
    store.checkpointed = last
    if 0 < rows < layout.capacity:
        store._touch(store._recent)
    return store


def _needed(epochs: list[tuple[int, int]], first: int) -> list[tuple[int, int]]:
    """The epochs of the blocks from `first` on: of several that begin with one block, the last."""
    known = dict(epochs)
    before = max((number for number in known if number <= first), default=first)
    return [(number, epoch) for number, epoch in known.items() if number >= before]


def _read_recent(store: BlockStore, number: int, rows: int) -> None:
    frame = store._fresh(number)
    slot = store.slots[number]
    if slot >= 0:
        store.medium.read(slot, frame.buffer)
        epoch = store._stamp(number, rows).epoch
        stamp = Stamp(store.identity, epoch, number, rows)
        verify(frame.buffer, store.layout, stamp, store.medium.where(slot))
    elif rows:
        raise BadState("the checkpoint names no place for the newest block. Restore an older checkpoint.")
    frame.rows = rows
    store._frames[number] = store._recent = frame
