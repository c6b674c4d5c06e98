"""Stored: buckets between micro-batches, in the state store and in the memory of the worker.

State: one map from block name to bytes, in which the header has the empty name. A micro-batch writes the
blocks that changed and removes those that are gone. The bucket itself is kept in the worker's memory between
micro-batches. Where another worker had the bucket in between, only the blocks it changed are read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import pandas as pd

from windowpane.core.lane_blocks import Blocks
from windowpane.spark.carried import loaded
from windowpane.spark.received import Received
from windowpane.spark.worker import settled
from windowpane.values.errors import BadState

FORMAT = 3
_MOST_ROWS = 1 << 16
"""Rows that are handed to Spark at once."""
_HEADER = ("",)
WINDOWS, SPILLED, QUEUES = "windows without memory=", "windows within memory=", "update queues"
"""Kinds of programs, whose states have nothing in common."""
_PROGRAMS = 256
"""Programs that a worker keeps: of the queries that run, and of some that ended."""


class Stateful(Protocol):
    """A bucket as seen here; `reusable` if it can still write blocks once another went on."""

    reusable: bool

    def leads_to(self, header: Mapping[str, Any]) -> bool:
        """Whether it can itself go on from stored state, of which it then reads what came since its own."""

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
    def kind(self) -> str:
        """WINDOWS, SPILLED or QUEUES."""

    @property
    def sharing(self) -> str:
        """How rows are shared out, in words; state is only good for the same sharing."""

    @property
    def paged(self) -> bool:
        """Whether buckets have blocks that are too many to be held at once."""

    def identity(self) -> dict[str, Any]:
        """What the state depends on."""

    def need_same(self, stored: dict[str, Any]) -> None:
        """Fail with the difference unless the stored identity is this one."""

    def bucket(self) -> Stateful:
        """A bucket that has seen nothing."""


@dataclass
class Recent:
    """A bucket that this worker had: the newest header, digests and version it knows, and when that was."""

    header: bytes
    bucket: Stateful
    digests: dict[str, str]
    version: int
    used: float


_RECENT: dict[tuple[str, Any], Recent] = {}
"""By query and bucket, the least recently used first."""
_MOST_RECENT = 1024
_FORGOTTEN = 600.0
"""Seconds after which a bucket that was not used is of a query that ended, or of another worker now."""


def handled(
    packed: bytes, token: str, maps: tuple[Any, Any], key: Any, rows: Iterator[pd.DataFrame]
) -> Iterator[pd.DataFrame]:
    """One bucket in one micro-batch; `maps` are its blocks and its pages in the state store."""
    received = Received()
    for frame in rows:
        received.add(frame["part"], frame["payload"])
    stored = _Stored(_unpacked(packed), token, maps)
    answers = stored.step(key, received)
    if len(answers) <= _MOST_ROWS:
        yield answers
    else:
        yield from (answers.iloc[at : at + _MOST_ROWS] for at in range(0, len(answers), _MOST_ROWS))
    settled()


@lru_cache(_PROGRAMS)
def _unpacked(packed: bytes) -> Program:
    """The program, made once in every worker."""
    program: Program = loaded(packed)
    return program


class _Single(Mapping[str, bytes]):
    """The blocks in the state store, each read when it is asked for."""

    def __init__(self, names: Collection[str], blocks: Any) -> None:
        self._names, self._blocks = names, blocks

    def __getitem__(self, name: str) -> bytes:
        found = self._blocks.getValue((name,))
        if found is None:
            raise KeyError(name)
        return bytes(found[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _kind(header: Mapping[str, Any]) -> str:
    """The kind of program that wrote a header, by what only that kind stores."""
    return SPILLED if "stores" in header else QUEUES if "queues" in header else WINDOWS


class _Stored:
    """The state of a task's buckets."""

    def __init__(self, program: Program, token: str, maps: tuple[Any, Any]) -> None:
        self._program, self._token = program, token
        self._blocks, self._pages = maps

    def step(self, key: Any, received: Received) -> pd.DataFrame:
        bucket, digests, version = self._load(key)
        answers = bucket.answer(received)
        self._store(key, bucket, digests, version + 1)
        return answers

    def _load(self, key: Any) -> tuple[Stateful, dict[str, str], int]:
        found = self._blocks.getValue(_HEADER)
        if found is None:
            return self._new(), {}, 0
        stored = bytes(found[0])
        recent = _RECENT.pop((self._token, key), None)
        if recent is not None and recent.header == stored:
            recent.bucket.attach(self._pages)
            return recent.bucket, recent.digests, recent.version
        header = json.loads(stored)
        self._check(header)
        if recent is not None and recent.bucket.leads_to(header):
            bucket = recent.bucket
            bucket.attach(self._pages)
            bucket.restore(header, _Single(header["digests"], self._blocks))
        else:
            bucket = self._new()
            bucket.restore(header, self._stored(header["digests"], recent))
        return bucket, header["digests"], int(header["version"])

    def _new(self) -> Stateful:
        bucket = self._program.bucket()
        bucket.attach(self._pages)
        return bucket

    def _stored(self, digests: dict[str, str], recent: Recent | None) -> Mapping[str, bytes]:
        """The blocks in the state store; those that an older bucket of this worker has are not read."""
        if recent is None or not recent.bucket.reusable:
            return {name[0]: bytes(data[0]) for name, data in self._blocks.iterator() if name != _HEADER}
        known, found = recent.bucket.blocks(), Blocks()
        for name, digest in digests.items():
            same = known.digests.get(name) == digest
            stored = None if same else self._blocks.getValue((name,))
            if same or stored is not None:  # a missing block is told of when it is asked for
                found.add(name, known[name] if stored is None else bytes(stored[0]))
        return found

    def _check(self, header: dict[str, Any]) -> None:
        if header["format"] != FORMAT:
            raise BadState(f"the state has format {header['format']}; this version reads {FORMAT}.")
        if _kind(header) != self._program.kind:
            raise BadState(
                f"the state was written by {_kind(header)}, but is now to be read by {self._program.kind}. "
                "Restart as it was then, or with a new checkpoint."
            )
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
        text = json.dumps(header).encode()
        self._blocks.updateValue(_HEADER, (text,))
        now = time.monotonic()
        for old, recent in list(_RECENT.items()):
            if len(_RECENT) < _MOST_RECENT and now - recent.used < _FORGOTTEN:
                break
            del _RECENT[old]
        _RECENT[self._token, key] = Recent(text, bucket, dict(blocks.digests), version, now)
