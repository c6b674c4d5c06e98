"""Envelopes: the rows that are shuffled. Each carries one payload to one bucket.

`part` says whose payload it is: the plan's parts by number, or SEEN for what a task saw.
"""

from __future__ import annotations

import pyarrow as pa

ENVELOPE = pa.schema([("bucket", pa.int32()), ("part", pa.int32()), ("payload", pa.binary())])
ENVELOPE_DDL = "bucket int, part int, payload binary"
SEEN = -1


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
