"""Envelopes: the rows that are shuffled, each with one payload to one bucket; and what buckets give back.

`part` says whose payload it is: the plan's parts by number, or SEEN for what a task saw.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import pyarrow as pa

ENVELOPE = pa.schema([("bucket", pa.int32()), ("part", pa.int32()), ("payload", pa.binary())])
ENVELOPE_DDL = "bucket int, part int, payload binary"
SEEN = -1
_MOST_ROWS = 1 << 16
"""Rows in one payload of answers."""


def envelopes(labels: list[int], part: int, payloads: list[bytes]) -> pa.RecordBatch:
    """Rows that carry payloads to buckets."""
    columns = [
        pa.array(labels, pa.int32()),
        pa.array([part] * len(labels), pa.int32()),
        pa.array(payloads, pa.binary()),
    ]
    return pa.record_batch(columns, schema=ENVELOPE)


def write_batch(batch: pa.RecordBatch | pa.Table) -> bytes:
    """A batch as Arrow bytes; the schema is known on the other side but costs little."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_batches(data: bytes) -> list[pa.RecordBatch]:
    """The batches of a payload."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return list(reader)


def tagged(tables: Mapping[str, list[pa.Table]], notes: Mapping[str, int]) -> pd.DataFrame:
    """The outputs of one bucket in one micro-batch, and its notes in a row of their own."""
    names: list[str | None] = []
    payloads: list[bytes | None] = []
    for name, found in tables.items():
        for table in found:
            for at in range(0, table.num_rows, _MOST_ROWS):
                names.append(name)
                payloads.append(write_batch(table.slice(at, _MOST_ROWS).combine_chunks()))
    blank = [None] * len(names)
    columns = {name: pd.array([*blank, value], dtype="Int64") for name, value in notes.items()}
    return pd.DataFrame({"output": [*names, None], "payload": [*payloads, None], **columns})
