"""Blocks: columns as bytes that tell by themselves whether they are whole.

A block is a frame of 16 bytes (magic, format, digest of the content) and its content: columns of one length
as Arrow IPC, or JSON. Nothing in a block is code: reading one cannot run anything. What is read back is
copied, so that the arrays can be written to and the block can go.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Cells, Column, Ragged, Tuples, Values
from windowpane.core.ledger import Ledger, Windows
from windowpane.core.rows import Layout, Rows
from windowpane.values.errors import BadState

FORMAT = 1
_MAGIC = b"WPB\n"
_FRAME = struct.Struct("<4sI8s")
_REMEDY = "Restore an older snapshot."
_OBJECTS: dict[type, pa.DataType] = {
    bytes: pa.large_binary(),
    str: pa.large_string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}
Table = dict[str, Cells]
"""Columns of one length by name."""


def seal(content: Any) -> bytes:
    """A block with this content."""
    return b"".join((_FRAME.pack(_MAGIC, FORMAT, blake2b(content, digest_size=8).digest()), content))


def unseal(name: str, block: bytes) -> memoryview:
    """The content of a block; an error if a byte of it changed."""
    if len(block) < _FRAME.size:
        raise BadState(f"block {name!r} is cut short: it has {len(block)} bytes. {_REMEDY}")
    magic, version, digest = _FRAME.unpack_from(block)
    if magic != _MAGIC:
        raise BadState(f"block {name!r} is damaged: it does not begin as a block does. {_REMEDY}")
    if version != FORMAT:
        raise BadState(f"block {name!r} has format {version}, but this windowpane reads format {FORMAT}.")
    content = memoryview(block)[_FRAME.size :]
    if blake2b(content, digest_size=8).digest() != digest:
        raise BadState(f"block {name!r} is damaged: its bytes do not match its checksum. {_REMEDY}")
    return content


def digest_of(block: bytes) -> str:
    """The digest that a block carries: equal for equal contents."""
    return block[8 : _FRAME.size].hex()


def write_json(value: object) -> bytes:
    """A block of plain values."""
    return seal(json.dumps(value, separators=(",", ":")).encode())


def read_json(name: str, block: bytes) -> Any:
    """The values of such a block."""
    try:
        return json.loads(bytes(unseal(name, block)))
    except ValueError as error:
        if isinstance(error, BadState):
            raise
        raise BadState(f"block {name!r} does not hold what it should: {error}. {_REMEDY}") from error


def write_table(table: Mapping[str, Cells]) -> bytes:
    """A block of columns of one length."""
    arrays = [_to_arrow(name, cells) for name, cells in table.items()]
    # What Arrow has no type for travels as raw bytes, or as values that were objects; the field says so.
    fields = [
        pa.field(name, array.type, metadata={"numpy": _kind(cells)})
        for (name, cells), array in zip(table.items(), arrays, strict=True)
    ]
    batch = pa.record_batch(arrays, schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return seal(sink.getvalue())


def read_table(name: str, block: bytes) -> Table:
    """The columns of a block."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(unseal(name, block))) as reader:
            (batch,) = reader
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, BadState):
            raise
        raise BadState(f"block {name!r} does not hold columns: {error}. {_REMEDY}") from error
    return {
        field.name: _from_arrow(column, field.metadata[b"numpy"].decode())
        for field, column in zip(batch.schema, batch.columns, strict=True)
    }


def _kind(cells: Cells) -> str:
    return "ragged" if isinstance(cells, Ragged) else cells.dtype.str


def _to_arrow(name: str, cells: Cells) -> pa.Array:
    if isinstance(cells, Ragged):
        parts = [_to_arrow(name, cells.values), _to_arrow(name, cells.weights)]
        pairs = pa.StructArray.from_arrays(parts, ["value", "weight"])
        return pa.LargeListArray.from_arrays(pa.array(cells.offsets), pairs)
    if cells.dtype == np.object_:
        return _objects(name, cells)
    if cells.dtype.hasobject or cells.dtype.names is not None:
        raise _unfit(name, str(cells.dtype))
    if cells.dtype.kind in "biuf" and cells.dtype.isnative and cells.dtype.itemsize <= 8:
        return pa.array(cells, from_pandas=False)
    raw = pa.py_buffer(cells.tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(cells.dtype.itemsize), len(cells), [None, raw])


def _objects(name: str, cells: Values) -> pa.Array:
    kinds = {type(value) for value in cells if value is not None} or {bytes}
    if len(kinds) > 1 or not kinds <= _OBJECTS.keys():
        raise _unfit(name, " and ".join(sorted(kind.__name__ for kind in kinds)))
    (kind,) = kinds
    try:
        return pa.array(cells.tolist(), _OBJECTS[kind], from_pandas=False)
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise _unfit(name, kind.__name__) from error


def _unfit(name: str, found: str) -> BadState:
    return BadState(
        f"column {name!r} of the state holds {found}, which cannot be stored. "
        "Keep numbers, text or bytes, one type for each part, in the partial of your aggregate."
    )


def _from_arrow(array: pa.Array, kind: str) -> Cells:
    if kind == "ragged":
        offsets = _own(array.offsets)
        inner = array.flatten()
        return Ragged(offsets - offsets[0], _own(inner.field(0)), _own(inner.field(1)))
    if kind == "|O":
        out = np.empty(len(array), np.object_)
        out[:] = array.to_pylist()
        return out
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        data = array.buffers()[1].to_pybytes()[array.offset * width : (array.offset + len(array)) * width]
        return np.frombuffer(data, np.dtype(kind)).copy()
    return _own(array)


def _own(array: pa.Array) -> Values:
    """The numbers in memory of their own: compiled kernels take read-only arrays for another type."""
    values: Values = array.to_numpy(zero_copy_only=False)
    return values if values.flags.writeable else values.copy()


def write_rows(rows: Rows) -> bytes:
    """A block of rows."""
    table: Table = {"start": rows.start, "key": rows.key}
    for i, columns in enumerate(rows.partials):
        table |= {f"{i}.{j}": cells for j, cells in enumerate(columns)}
    return write_table(table)


def read_rows(name: str, block: bytes, layout: Layout) -> Rows:
    """The rows of a block, whose partials must be those of the layout."""
    table = read_table(name, block)
    wanted = {
        f"{i}.{j}": isinstance(cells, Ragged)
        for i, partial in enumerate(layout)
        for j, cells in enumerate(partial.identity(0))
    }
    found = {column: isinstance(table[column], Ragged) for column in list(table)[2:]}
    if found != wanted:
        raise BadState(f"block {name!r} holds other partials than the plan's: another plan wrote it.")
    sizes = [len(partial.identity(0)) for partial in layout]
    partials = tuple(tuple(table[f"{i}.{j}"] for j in range(size)) for i, size in enumerate(sizes))
    return Rows(plain(table, "start"), plain(table, "key"), partials)


def write_tuples(tuples: Tuples) -> bytes:
    """A block of tuples."""
    table: Table = {"time": tuples.time, "key": tuples.key}
    for name, column in tuples.columns.items():
        table[f"values.{name}"] = column.values
        if column.valid is not None:
            table[f"valid.{name}"] = column.valid
        if column.order is not None:
            table[f"order.{name}"] = column.order
    return write_table(table)


def read_tuples(name: str, block: bytes) -> Tuples:
    """The tuples of a block."""
    table = read_table(name, block)
    names = [column.removeprefix("values.") for column in table if column.startswith("values.")]
    columns = {
        n: Column(plain(table, f"values.{n}"), _optional(table, f"valid.{n}"), _optional(table, f"order.{n}"))
        for n in names
    }
    return Tuples(plain(table, "time"), plain(table, "key"), columns)


def write_ledger(ledger: Ledger) -> bytes:
    """A block of answers that may be revised."""
    w = ledger.windows
    columns = {"definition": w.definition, "key": w.key, "start": w.start, "end": w.end}
    return write_table({**columns, "revision": ledger.revision, "closes": ledger.closes})


def read_ledger(name: str, block: bytes) -> Ledger:
    """The answers of a block."""
    table = read_table(name, block)
    windows = Windows(*(plain(table, n) for n in ("definition", "key", "start", "end")))
    return Ledger(windows, plain(table, "revision"), plain(table, "closes"))


def plain(table: Table, name: str) -> Values:
    """One column that is no list."""
    cells = table.get(name)
    if not isinstance(cells, np.ndarray):
        raise BadState(f"the state has no plain column {name!r}, but {', '.join(table)}. {_REMEDY}")
    return cells


def _optional(table: Table, name: str) -> Values | None:
    return plain(table, name) if name in table else None
