"""Snapshot: an operator as named blocks, and back.

One block, the manifest, lists all others with their digests, so that a missing, stale or foreign block is
found before it can change an answer. The other blocks are those of the lanes, keys, scopes and interners.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windowpane.core.blocks import read_json, write_json
from windowpane.core.interner import Interner
from windowpane.core.keys import KeyIndex
from windowpane.core.lane_blocks import Blocks, Reader, Writer, read_lane, write_lane
from windowpane.values.errors import BadState

if TYPE_CHECKING:
    import pyarrow as pa

    from windowpane.core.operator import Operator

MANIFEST = "operator"
Parts = dict[str, list[str]]


def operator_blocks(operator: Operator) -> Blocks:
    """All state of an operator."""
    blocks, parts = Blocks(), Parts()
    for entry in operator.lanes:
        write_lane(entry.lane, Writer(f"lane {entry.name}", blocks, parts))
    for names, index in operator.keys.items():
        Writer(_keys_label(names), blocks, parts).blocks("keys", index.blocks())
    for pair, scope in operator.scopes.items():
        Writer(_scopes_label(pair), blocks, parts).arrays("scopes", {"scope": scope})
    for column, interner in operator.interners.items():
        Writer(f"text {column}", blocks, parts).blocks("values", interner.blocks())
    manifest = {
        "lanes": _kinds(operator),
        "keys": [list(names) for names in operator.keys],
        "scopes": [[list(names) for names in pair] for pair in operator.scopes],
        "parts": parts,
        "digests": blocks.digests,
    }
    blocks.add(MANIFEST, write_json(manifest))
    return blocks


def restore_operator(operator: Operator, blocks: Mapping[str, bytes]) -> None:
    """Give a freshly compiled operator the state that an operator of the same plan wrote."""
    if MANIFEST not in blocks:
        raise BadState(f"block {MANIFEST!r} is missing. Restore an older snapshot.")
    manifest = read_json(MANIFEST, blocks[MANIFEST])
    _check_lanes(manifest["lanes"], _kinds(operator))

    def reader(label: str) -> Reader:
        return Reader(label, blocks, manifest)

    lanes = [replace(e, lane=read_lane(e.lane, reader(f"lane {e.name}"))) for e in operator.lanes]
    keys = {}
    for listed in manifest["keys"]:
        names = tuple(listed)
        types = [operator.types[name] for name in names]
        keys[names] = read_keys(names, types, reader(_keys_label(names)))
    none = {"scope": np.empty(0, np.int64)}
    scopes = {}
    for grouping, scope in manifest["scopes"]:
        pair = tuple(grouping), tuple(scope)
        scopes[pair] = reader(_scopes_label(pair)).arrays("scopes", none)["scope"]
    interners = {
        column: Interner.restore(operator.types[column], _numbered(reader(f"text {column}").blocks("values")))
        for column in operator.interners
    }
    # all was read: from here on nothing can fail, so that a damaged block leaves the operator as it was
    operator.lanes, operator.keys, operator.scopes, operator.interners = lanes, keys, scopes, interners


def read_keys(names: Sequence[str], types: Sequence[pa.DataType], read: Reader) -> KeyIndex:
    """The key index whose blocks these are."""
    return KeyIndex.restore(names, types, _numbered(read.blocks("keys")))


def _numbered(blocks: list[tuple[str, bytes]]) -> dict[str, bytes]:
    return {f"keys-{place:06d}": content for place, (_, content) in enumerate(blocks)}


def _keys_label(names: Sequence[str]) -> str:
    return f"keys {json.dumps(list(names))}"


def _scopes_label(pair: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    return f"scopes {json.dumps([list(names) for names in pair])}"


def _kinds(operator: Operator) -> dict[str, str]:
    return {entry.name: type(entry.lane).__name__ for entry in operator.lanes}


def _check_lanes(stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    if stored != wanted:
        raise BadState(
            f"the blocks hold the lanes {stored}, but the plan has {wanted}: another plan wrote them. "
            "Restore with the queries that were running."
        )
