"""The sums, keys and waiting tuples of an operator over stores as blocks, for a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any

import numpy as np

from windowpane.core import blocks as codec
from windowpane.core.arrays import Values
from windowpane.core.keys import KeyIndex
from windowpane.core.lane_blocks import Blocks
from windowpane.core.spill.feed import Answers
from windowpane.core.spill.keyslots import KeySlots
from windowpane.core.spill.lane import Lane, Slider, Span
from windowpane.core.spill.operator import SpillOperator
from windowpane.core.spill.rolling import Rolling
from windowpane.core.spill.shapes import Slices, SliceShape
from windowpane.core.spill.waiting import Piece
from windowpane.values.errors import BadState

FORMAT = 2
MANIFEST = "manifest"
SLOTS = 2048
"""Keys whose sums are in one block."""
_OPEN = ("start", "key", "counts", "sums", "floats", "codes")


def write_operator(operator: SpillOperator | None) -> Blocks:
    """All state besides the stores; a manifest lists the blocks with their digests."""
    blocks = Blocks()
    if operator is None:
        return blocks
    lanes = [_write_lane(i, lane, blocks) for i, lane in enumerate(operator.lanes)]
    for prefix, slots in _numbered(operator).items():
        for name, array in slots.arrays().items():
            blocks.add(f"{prefix} {name}", codec.write_table({name: array}))
        for name, block in slots.index.blocks().items():
            blocks.add(f"{prefix} values {name}", codec.seal(block))
    for at, piece in enumerate(operator.pending):
        blocks.add(f"pending {at}", codec.write_tuples(piece.rows))
    pending = [piece.first for piece in operator.pending]
    blocks.add(MANIFEST, codec.write_json({"lanes": lanes, "pending": pending, "digests": blocks.digests}))
    return blocks


def _numbered(operator: SpillOperator) -> dict[str, KeySlots]:
    """Keys and texts, by what their blocks are called."""
    keys = {f"keys {g}": slots for g, slots in enumerate(operator.keys)}
    return keys | {f"texts {at}": slots for at, slots in enumerate(operator.texts.values())}


def _write_lane(i: int, lane: Lane, blocks: Blocks) -> dict[str, Any]:
    pieces = lane.open_slices
    for at, piece in enumerate(pieces):
        for name, array in _open_arrays(piece.rows).items():
            blocks.add(f"open {i} {at} {name}", codec.write_table({name: array}))
    sliders = []
    for slider in lane.sliders:
        for g, sums in slider.sums.items():
            _write_sums(f"sums {i} {slider.window} {g}", sums, blocks)
        sliders.append(
            {
                "span": list(astuple(slider.span)),
                "window": slider.window,
                "last": slider.last,
                "groupings": list(slider.sums),
            }
        )
    return {"sliders": sliders, "open": [piece.first for piece in pieces]}


def _write_sums(prefix: str, sums: Rolling, blocks: Blocks) -> None:
    """Some thousand keys to a block, so that blocks of keys without rows stay as they are."""
    for name, array in sums.arrays().items():
        step = SLOTS * sums.width(name)
        for at, low in enumerate(range(0, len(array), max(step, 1))):
            blocks.add(f"{prefix} {name} {at}", codec.write_table({name: array[low : low + step]}))


def _read_sums(prefix: str, sums: Rolling, blocks: Mapping[str, bytes]) -> dict[str, Values]:
    found = {}
    for name, own in sums.arrays().items():
        parts: list[Values] = [own[:0]]
        while f"{prefix} {name} {len(parts) - 1}" in blocks:
            parts.append(_array(blocks, f"{prefix} {name} {len(parts) - 1}", name))
        found[name] = np.concatenate(parts)
    return found


def _open_arrays(slices: Slices) -> dict[str, Values]:
    a = slices.answers
    arrays = (slices.start, slices.key, a.counts, a.sums, a.floats, a.codes)
    return {n: np.ascontiguousarray(v).reshape(-1) for n, v in zip(_OPEN, arrays, strict=True)}


def read_operator(blocks: Mapping[str, bytes], build: Callable[[], SpillOperator]) -> SpillOperator:
    """The operator whose state was written; `build` gives one of the same plan, with its stores revived."""
    manifest = codec.read_json(MANIFEST, _block(blocks, MANIFEST))
    for name, digest in manifest["digests"].items():
        if codec.digest_of(_block(blocks, name)) != digest:
            raise BadState(f"block {name!r} of the checkpoint is not the one that was written with it.")
    operator = build()
    for i, (lane, stored) in enumerate(zip(operator.lanes, manifest["lanes"], strict=True)):
        if isinstance(lane.shape, SliceShape):
            lane.shape.keep(
                tuple(
                    Piece(_read_open(i, at, lane.shape, blocks), first)
                    for at, first in enumerate(stored["open"])
                )
            )
        for each in stored["sliders"]:
            lane.sliders.append(_read_slider(i, lane, each, blocks))
    for prefix, slots in _numbered(operator).items():
        arrays = {name: _array(blocks, f"{prefix} {name}", name) for name in ("slot_of", "id_of")}
        values = {
            name.removeprefix(f"{prefix} values "): bytes(codec.unseal(name, block))
            for name, block in blocks.items()
            if name.startswith(f"{prefix} values ")
        }
        types = [operator.types[name] for name in slots.index.names]
        slots.restore(arrays, KeyIndex.restore(slots.index.names, types, values))
    operator.pending = tuple(
        Piece(codec.read_tuples(f"pending {at}", _block(blocks, f"pending {at}")), first)
        for at, first in enumerate(manifest["pending"])
    )
    return operator


def _read_slider(i: int, lane: Lane, stored: dict[str, Any], blocks: Mapping[str, bytes]) -> Slider:
    span = Span(*stored["span"])
    sums: dict[int, Rolling] = {}
    for g in stored["groupings"]:
        rolling = lane.rolling(span, g)
        rolling.restore(_read_sums(f"sums {i} {stored['window']} {g}", rolling, blocks))
        sums[g] = rolling
    return Slider(span, stored["window"], sums, stored["last"])


def _read_open(i: int, at: int, shape: SliceShape, blocks: Mapping[str, bytes]) -> Slices:
    flat = {name: _array(blocks, f"open {i} {at} {name}", name) for name in _OPEN}
    n, feed = len(flat["start"]), shape.feed
    answers = Answers(
        flat["counts"].reshape(len(feed.counts), n),
        flat["sums"].reshape(len(feed.sums), 2, n),
        flat["floats"].reshape(len(feed.floats), 2, n),
        flat["codes"].reshape(len(feed.extremes), n),
    )
    return Slices(flat["start"], flat["key"], answers)


def _array(blocks: Mapping[str, bytes], block: str, column: str) -> Values:
    return codec.plain(codec.read_table(block, _block(blocks, block)), column)


def _block(blocks: Mapping[str, bytes], name: str) -> bytes:
    if name not in blocks:
        raise BadState(f"block {name!r} of the checkpoint is missing. Restore an older checkpoint.")
    return blocks[name]
