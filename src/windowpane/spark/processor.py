"""The processor: Spark's calls, decoded to a bucket and encoded again. No window logic here.

State: one header value and one map from block name to bytes. A micro-batch writes the blocks that
changed and removes those that are gone. The bucket itself is kept in the worker's memory between
micro-batches. Where another worker had the bucket in between, only the blocks it changed are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from windowpane.core.lane_blocks import Blocks
from windowpane.plan.fingerprint import fingerprint, need_same
from windowpane.plan.nodes import Plan
from windowpane.spark.bucket import Bucket, Received, Work
from windowpane.spark.outputs import tagged
from windowpane.values.errors import BadState

FORMAT = 2
_RECENT: dict[tuple[str, Any], tuple[str, Bucket, dict[str, str]]] = {}
"""Per query and bucket: the newest header that this worker knows, the bucket, and its blocks' digests."""
_MOST_RECENT = 64


class WindowProcessor(StatefulProcessor):
    """Runs a plan on the buckets of one task."""

    def __init__(self, plan: Plan, work: Work, sharing: str, token: str) -> None:
        self._plan, self._work, self._sharing, self._token = plan, work, sharing, token

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
        received = Received()
        for frame in rows:
            received.add(frame["part"], frame["payload"])
        bucket, digests, version = self._load(key)
        tables, counts = bucket.step(received)
        self._store(key, bucket, digests, version + 1)
        yield tagged(tables, counts, bucket.progress.bound, bucket.nbytes)

    def _load(self, key: Any) -> tuple[Bucket, dict[str, str], int]:
        stored = self._header.get()
        if stored is None:
            return Bucket(self._work), {}, 0
        recent = _RECENT.pop((self._token, key), None)
        header = json.loads(stored[0])
        if recent is not None and recent[0] == stored[0]:
            return recent[1], recent[2], int(header["version"])
        self._check(header)
        bucket = Bucket(self._work)
        bucket.restore(header, self._stored(header["digests"], recent))
        return bucket, header["digests"], int(header["version"])

    def _stored(
        self, digests: dict[str, str], recent: tuple[str, Bucket, dict[str, str]] | None
    ) -> Mapping[str, bytes]:
        """The blocks in the state store; those that an older bucket of this worker has are not read."""
        if recent is None:
            return {name[0]: bytes(data[0]) for name, data in self._blocks.iterator()}
        known, found = recent[1].blocks(), Blocks()
        for name, digest in digests.items():
            same = known.digests.get(name) == digest
            stored = None if same else self._blocks.getValue((name,))
            if same or stored is not None:  # a missing block is told of when it is asked for
                found.add(name, known[name] if stored is None else bytes(stored[0]))
        return found

    def _check(self, header: dict[str, Any]) -> None:
        if header["format"] != FORMAT:
            raise BadState(f"the state has format {header['format']}; this version reads {FORMAT}.")
        need_same(header["plan"], self._plan)
        if header["sharing"] != self._sharing:
            raise BadState(
                f"the state was written with rows shared out {header['sharing']}, but now {self._sharing}: "
                "keys would not find their state. Restart with as many buckets (shuffle partitions) as then."
            )

    def _store(self, key: Any, bucket: Bucket, digests: dict[str, str], version: int) -> None:
        blocks = bucket.blocks()
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
