"""The processor: Spark's calls, decoded to a bucket and encoded again. No window logic here.

State: one header value and one map from block name to bytes. A micro-batch writes the blocks that
changed and removes those that are gone. The bucket itself is kept in the worker's memory between
micro-batches. Where another worker had the bucket in between, only the blocks it changed are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from windowpane.core.lane_blocks import Blocks
from windowpane.spark.bucket import Received
from windowpane.values.errors import BadState

FORMAT = 2


class Stateful(Protocol):
    """A bucket as the processor sees it; `reusable` if it can still write blocks once another went on."""

    reusable: bool

    def attach(self, pages: Any) -> None:
        """Use this map of the state store for blocks that are not held; it is that of the task that runs."""

    def header(self) -> dict[str, Any]:
        """What is stored beside the blocks; taken after `blocks`."""

    def blocks(self) -> Blocks:
        """The state."""

    def restore(self, header: Mapping[str, Any], blocks: Mapping[str, bytes]) -> None:
        """Go on from stored state."""

    def answer(self, received: Received) -> pd.DataFrame:
        """Take a micro-batch in; its outputs as a tagged frame."""


class Program(Protocol):
    """What runs in the buckets; it is sent to the workers."""

    @property
    def sharing(self) -> str:
        """How rows are shared out, in words; state is only good for the same sharing."""

    def identity(self) -> dict[str, Any]:
        """What the state depends on."""

    def need_same(self, stored: dict[str, Any]) -> None:
        """Fail with the difference unless the stored identity is this one."""

    def bucket(self) -> Stateful:
        """A bucket that has seen nothing."""


Recent = tuple[str, Stateful, dict[str, str]]
_RECENT: dict[tuple[str, Any], Recent] = {}
"""Per query and bucket: the newest header that this worker knows, the bucket, and its blocks' digests."""
_MOST_RECENT = 64


class Processor(StatefulProcessor):
    """Runs a program in the buckets of one task."""

    def __init__(self, program: Program, token: str) -> None:
        self._program, self._token = program, token

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark calls this once per task."""
        self._header = handle.getValueState("header", "json string")
        self._blocks = handle.getMapState("blocks", "name string", "bytes binary")
        # blocks that are too many to be held at once, read one by one
        self._pages = handle.getMapState("pages", "lane int, slot int", "bytes binary")

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
        answers = bucket.answer(received)
        self._store(key, bucket, digests, version + 1)
        yield answers

    def _load(self, key: Any) -> tuple[Stateful, dict[str, str], int]:
        stored = self._header.get()
        if stored is None:
            return self._new(), {}, 0
        recent = _RECENT.pop((self._token, key), None)
        header = json.loads(stored[0])
        if recent is not None and recent[0] == stored[0]:
            recent[1].attach(self._pages)
            return recent[1], recent[2], int(header["version"])
        self._check(header)
        bucket = self._new()
        bucket.restore(header, self._stored(header["digests"], recent))
        return bucket, header["digests"], int(header["version"])

    def _new(self) -> Stateful:
        bucket = self._program.bucket()
        bucket.attach(self._pages)
        return bucket

    def _stored(self, digests: dict[str, str], recent: Recent | None) -> Mapping[str, bytes]:
        """The blocks in the state store; those that an older bucket of this worker has are not read."""
        if recent is None or not recent[1].reusable:
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
        self._program.need_same(header["plan"])
        if header["sharing"] != self._program.sharing:
            raise BadState(
                f"the state was written with rows shared out {header['sharing']}, but now "
                f"{self._program.sharing}: "
                "keys would not find their state. Restart with as many buckets (shuffle partitions) as then."
            )

    def _store(self, key: Any, bucket: Stateful, digests: dict[str, str], version: int) -> None:
        blocks = bucket.blocks()
        put, gone = blocks.changed(digests)
        for name, data in put.items():
            self._blocks.updateValue((name,), (data,))
        for name in gone:
            self._blocks.removeKey((name,))
        header = {
            "format": FORMAT,
            "version": version,
            "plan": self._program.identity(),
            "sharing": self._program.sharing,
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
