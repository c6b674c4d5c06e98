"""The processor: Spark's calls, decoded to a bucket and encoded again. No window logic here.

State: one header value and one map from block name to bytes. A micro-batch writes the blocks that
changed and removes those that are gone. The bucket itself is kept in the worker's memory between
micro-batches and used again if the stored header says that it is still the newest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from windowpane.plan.fingerprint import fingerprint, need_same
from windowpane.plan.nodes import Plan
from windowpane.spark.bucket import Bucket, Received
from windowpane.spark.pack import Packer
from windowpane.values.errors import BadState

FORMAT = 1
_RECENT: dict[tuple[str, Any], tuple[str, Bucket, dict[str, str]]] = {}
"""Per query and bucket: the version of the newest state, the bucket, and the digests of its blocks."""
_MOST_RECENT = 64


class WindowProcessor(StatefulProcessor):
    """Runs a plan on the buckets of one task."""

    def __init__(self, plan: Plan, packer: Packer, token: str) -> None:
        self._plan, self._rule, self._token = plan, packer.rule, token
        self._sharing = packer.sharing()

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark calls this once per task."""
        self._header = handle.getValueState("header", "json string")
        self._blocks = handle.getMapState("blocks", "name string", "bytes binary")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name, and there are no timers
    ) -> Iterator[pd.DataFrame]:
        """Spark calls this once per bucket and micro-batch."""
        bucket, digests, version = self._load(key)
        received = Received()
        for frame in rows:
            received.add(frame)
        tables = bucket.step(received)
        self._store(key, bucket, digests, version + 1)
        for table in tables.values():
            if table.num_rows:
                yield to_frame(table)

    def _load(self, key: Any) -> tuple[Bucket, dict[str, str], int]:
        stored = self._header.get()
        if stored is None:
            return Bucket(self._plan, self._rule), {}, 0
        text = stored[0]
        recent = _RECENT.pop((self._token, key), None)
        header = json.loads(text)
        if recent is not None and recent[0] == text:
            return recent[1], recent[2], int(header["version"])
        if header["format"] != FORMAT:
            raise BadState(f"the state has format {header['format']}; this version reads {FORMAT}.")
        need_same(header["plan"], self._plan)
        if header["sharing"] != self._sharing:
            raise BadState(
                f"the state was written with rows shared out {header['sharing']}, but now {self._sharing}: "
                "keys would not find their state. Restart with as many buckets (shuffle partitions) as then."
            )
        blocks = {name[0]: bytes(data[0]) for name, data in self._blocks.iterator()}
        bucket = Bucket(self._plan, self._rule)
        bucket.restore(header, blocks)
        return bucket, header["digests"], int(header["version"])

    def _store(self, key: Any, bucket: Bucket, digests: dict[str, str], version: int) -> None:
        blocks = bucket.operator.blocks()
        put, gone = blocks.changed(digests)
        for name, data in put.items():
            self._blocks.updateValue((name,), (data,))
        for name in gone:
            self._blocks.removeKey((name,))
        header = {
            "format": FORMAT,
            "version": version,
            "plan": fingerprint(self._plan),
            "sharing": self._sharing,
            "digests": dict(blocks.digests),
            **bucket.header(),
        }
        text = json.dumps(header)
        self._header.update((text,))
        while len(_RECENT) >= _MOST_RECENT:
            _RECENT.pop(next(iter(_RECENT)))
        _RECENT[self._token, key] = (text, bucket, dict(blocks.digests))

    def close(self) -> None:
        """Nothing is held outside the state."""


def flat_schema(schema: pa.Schema) -> pa.Schema:
    """The result with the window as two columns, which pandas carries without an object per row."""
    fields: list[pa.Field] = []
    for f in schema:
        if f.name == "window":
            fields += [
                pa.field("window_start", f.type.field("start").type),
                pa.field("window_end", f.type.field("end").type),
            ]
        else:
            fields.append(f)
    return pa.schema(fields)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """A result table as Spark wants it: flat, in pandas, with nulls kept apart from NaN where types allow."""
    window = table["window"].combine_chunks()
    columns: list[Any] = []
    for name in table.schema.names:
        columns += [window.field("start"), window.field("end")] if name == "window" else [table[name]]
    flat = pa.Table.from_arrays(columns, schema=flat_schema(table.schema))
    return flat.to_pandas(types_mapper=_nullable.get)


_nullable = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}
"""Integers with nulls must not pass through floats."""
