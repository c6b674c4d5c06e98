"""The state of an update queue as versions of before stored it, so that their checkpoints go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Values
from windowpane.core.keys import KeyIndex
from windowpane.core.lane_blocks import Reader
from windowpane.core.snapshot import read_keys
from windowpane.query import NUMBER
from windowpane.spark.envelope import read_batches
from windowpane.spark.fresh_blocks import IN_LINE, Contents
from windowpane.spark.zones import UTC, in_zone


def contents_before(
    label: str, header: Mapping[str, Any], blocks: Mapping[str, bytes], index: KeyIndex
) -> Contents:
    """What was stored; `index` is empty and tells the columns of keys."""
    read = Reader(label, blocks, header)
    known: dict[str, Values] = {}
    for part in ("newest", "ties"):
        found = read.arrays(part, {part: np.empty(0, np.int64)})
        known |= found if len(found[part]) else {}
    known |= read.arrays("by key", dict.fromkeys(header["columns"]["by key"], np.empty(0, np.int64)))
    line = read.arrays("line", dict.fromkeys(header["columns"]["line"], np.empty(0, np.int64)))
    if line:
        # Rows were given new numbers at times, but not those that were shed.
        kept = np.flatnonzero(line["line kept"])
        order = kept[np.argsort(line["line rows"][kept])]
        line = {name: line[name][order] for name in IN_LINE}
    made = Contents(read_keys(index.names, index.types, read), known, line=line)
    # Instants were kept in the session's time zone of then.
    held = [in_zone(pa.Table.from_batches(read_batches(block)), UTC) for _, block in read.blocks("held")]
    rows = made.rows
    if held:
        table = pa.concat_tables(held, promote_options="default")
        rows = rows.with_rows(table.drop_columns([NUMBER]), table[NUMBER].to_numpy())
    return replace(made, rows=replace(rows, came=int(header["next"])))
