"""What update queues on Spark write and read in a micro-batch, as ever more keys are known or rows wait.

The operator of a bucket without Spark around it, with a clock of its own. Two workers take turns with the
bucket, as they do on Spark: each reads what the other wrote since, and writes what it changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from windowpane.bench.report import Claim, Report, Row
from windowpane.bench.runner import Progress
from windowpane.core import blocks as codec
from windowpane.core.lane_blocks import Blocks
from windowpane.spark.envelope import write_batch
from windowpane.spark.fresh import Fresh
from windowpane.spark.queue_spec import QueueSpec

POLICIES = ("freshest", "in_place", "append")
SIZES, QUICK = (50_000, 200_000, 1_000_000), (30_000, 150_000)
UPDATES, TURNS, FEW_KEYS = 1_000, 40, 1_000
"""Rows of a micro-batch, micro-batches that are measured, and keys where all rows are kept."""
COST, BUDGET = 0.001, 0.5
MOST = 1.5
"""How many times as much may be written or read where far more is known."""
_TYPES = (("ts", pa.int64()), ("key", pa.string()), ("value", pa.int64()))
_ANSWER = pa.schema([("key", pa.string()), ("value", pa.int64())])
_LOADED = 200_000
"""Rows of a micro-batch before those that are measured."""


@dataclass
class Kept(Mapping[str, bytes]):
    """The blocks of a bucket in the state store, and how many bytes were read and written."""

    blocks: dict[str, bytes] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    read: int = 0
    written: int = 0

    def __getitem__(self, name: str) -> bytes:
        self.read += len(self.blocks[name])
        return self.blocks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def put(self, fresh: Fresh) -> None:
        """Store what changed."""
        blocks = Blocks()
        header = json.dumps(fresh.store(0, blocks))
        put, gone = blocks.changed({name: codec.digest_of(block) for name, block in self.blocks.items()})
        self.blocks |= put
        for name in gone:
            del self.blocks[name]
        self.header = json.loads(header)
        self.written += len(header) + sum(map(len, put.values()))

    def give(self, fresh: Fresh) -> Fresh:
        """Let a worker go on from here: with what it had if it may, else anew."""
        known = fresh if fresh.leads_to(self.header) else Fresh(fresh.spec, fresh.types, ticks=fresh.ticks)
        known.restore(0, self.header, self)
        return known


@dataclass
class Hands:
    """A clock that goes on with the work of the function, and between micro-batches."""

    now: float = 1e9

    def __call__(self) -> float:
        """The time."""
        return self.now

    def work(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The function behind the queue."""
        self.now += COST * len(frame)
        return frame[_ANSWER.names]


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Every policy, with ever more known."""
    rows: list[Row] = []
    cases = [(policy, size) for policy in POLICIES for size in (QUICK if quick else SIZES)]
    for policy, size in cases:
        progress(len(rows), len(cases), f"{policy}, {size:,}")
        rows.append(measured(policy, size))
    parameters: Row = {"updates": UPDATES, "micro_batches": TURNS, "served": round(BUDGET / COST)}
    return Report("latest-state", parameters, rows, claims(rows))


def measured(policy: str, size: int) -> Row:
    """What micro-batches cost where so many keys are known (append: so many rows wait)."""
    rng, hands, kept = np.random.default_rng(size), Hands(), Kept()
    spec = QueueSpec("queue", ("key",), "ts", policy, BUDGET, hands.work, _ANSWER)
    keys = FEW_KEYS if policy == "append" else size
    fresh = Fresh(spec, _TYPES, ticks=hands)
    for at, ids in enumerate(np.array_split(np.arange(size), -(-size // _LOADED))):
        fresh.step([_payload(ids % keys, at)], hands)
        kept.put(fresh)
        hands.now += 1.0
    whole = sum(map(len, kept.blocks.values()))
    workers = [fresh, kept.give(Fresh(spec, _TYPES, ticks=hands))]
    kept.read = kept.written = 0
    seconds = np.zeros(3)
    for turn in range(TURNS):
        payload = _payload(rng.integers(0, keys, UPDATES), 100 + turn)
        hands.now += 1.0
        began = time.process_time()
        worker = kept.give(workers[turn % 2]) if turn else fresh
        loaded = time.process_time()
        _, notes = worker.step([payload], hands)
        stepped = time.process_time()
        kept.put(worker)
        seconds += np.diff([began, loaded, stepped, time.process_time()])
        workers[turn % 2] = worker
    each = {
        name: round(1e3 * value / TURNS, 1)
        for name, value in zip(("read", "step", "write"), seconds, strict=True)
    }
    return {
        "policy": policy,
        "keys": keys,
        "waiting": notes.waiting,
        "state_mb": round(whole / 1e6, 2),
        "written_mb": round(kept.written / TURNS / 1e6, 3),
        "read_mb": round(kept.read / (TURNS - 1) / 1e6, 3),
        **{f"{name}_ms": value for name, value in each.items()},
    }


def claims(rows: list[Row]) -> list[Claim]:
    """What is written and read goes by what changed, not by what is known."""
    made = []
    for policy in POLICIES:
        first, *_, last = (row for row in rows if row["policy"] == policy)
        times = float(str(last["state_mb"])) / float(str(first["state_mb"]))
        for what in ("written", "read"):
            ratio = float(str(last[f"{what}_mb"])) / float(str(first[f"{what}_mb"]))
            made.append(
                Claim(
                    f"{policy}: bytes {what}, where the state is {times:.0f} times as large",
                    ratio,
                    MOST,
                    at_most=True,
                )
            )
    return made


def _payload(ids: Any, at: int) -> bytes:
    columns = [
        pa.array(np.full(len(ids), at)),
        pa.array([f"key {key}" for key in ids.tolist()]),
        pa.array(ids),
    ]
    return write_batch(pa.record_batch(columns, names=[name for name, _ in _TYPES]))
