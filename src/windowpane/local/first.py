"""The first row of a stream, as long as it is alone and nothing tells whether its time is absurd."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class First:
    """A row that waits for another one near it: a batch of one row, its time, and the clock when it came."""

    row: pa.RecordBatch
    time: int
    now: int | None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        sink = pa.BufferOutputStream()
        # taken, since a slice would be written with all that it is cut from
        row = self.row.take(pa.array([0]))
        with pa.ipc.new_stream(sink, row.schema) as writer:
            writer.write_batch(row)
        return {"row": b64encode(sink.getvalue()).decode(), "time": self.time, "now": self.now}


def read_first(state: Mapping[str, Any]) -> First:
    """What `to_json` gave."""
    with pa.ipc.open_stream(pa.py_buffer(b64decode(state["row"]))) as reader:
        (row,) = reader
    return First(row, int(state["time"]), state["now"])
