"""Windows larger than a worker's memory: SlideM's blocks live in Spark's state store.

A bucket holds a few blocks, sums and keys within its budget. The other blocks are read from the state store
when a window expires them and written there when they are full, so a micro-batch touches the newest and the
oldest blocks only, and a restart finds all of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from windowpane.core.arrays import Ints
from windowpane.core.keys import KeyIndex
from windowpane.core.lane_blocks import Blocks
from windowpane.core.spill.checkpoint import flush, revive, settle
from windowpane.core.spill.codec import BlockLayout, Buffer, damaged
from windowpane.core.spill.medium import IoCounts
from windowpane.core.spill.operator import SpillOperator
from windowpane.core.spill.state import read_operator, write_operator
from windowpane.core.spill.store import BlockStore
from windowpane.plan.fingerprint import fingerprint, need_same
from windowpane.plan.nodes import Plan
from windowpane.planner.spill import (
    SpillChoice,
    assemble_spill,
    choose,
    groupings_of,
    need_technique,
    pane_of,
    seen_in,
    share_budget,
    spans_of,
)
from windowpane.spark.bucket import Counts, Sorted, Work, sort_strays, unsent
from windowpane.spark.progress import Progress
from windowpane.spark.received import Beginning, Due, Received
from windowpane.spark.seen import Seen
from windowpane.spark.stored import SPILLED
from windowpane.values.sizes import Budget


class StateMedium:
    """Blocks of one lane in a map of Spark's state store, by lane and slot."""

    def __init__(self, lane: int, slots: Sequence[int] = ()) -> None:
        """`slots` are the places that hold blocks already."""
        self.counts = IoCounts()
        self._lane = lane
        self._written = {slot for slot in slots if slot >= 0}
        self.pages: Any = None

    def read(self, slot: int, into: Buffer) -> None:
        """Fill the buffer with the block at a place."""
        found = self.pages.getValue((self._lane, slot))
        if found is None or len(found[0]) != len(into):
            raise damaged(self.where(slot), "the state store does not have it whole")
        into[:] = np.frombuffer(found[0], np.uint8)
        self.counts.reads += 1
        self.counts.bytes_read += len(into)

    def write(self, slot: int, block: Buffer) -> None:
        """Put a block at a place."""
        self.pages.updateValue((self._lane, slot), (block.tobytes(),))
        self._written.add(slot)
        self.counts.writes += 1
        self.counts.bytes_written += len(block)

    def keep(self, slots: Sequence[int]) -> None:
        """Remove all blocks but those at these places."""
        used = {slot for slot in slots if slot >= 0}
        for slot in self._written - used:
            self.pages.removeKey((self._lane, slot))
        self._written = used

    def reserve(self, slots: int) -> None:
        """The state store needs no reservation."""

    def sync(self) -> None:
        """Spark commits the state with the micro-batch."""

    def where(self, slot: int) -> str:
        """A place in words."""
        return f"block {slot} of lane {self._lane} in Spark's state"


@dataclass(frozen=True)
class SpillProgram:
    """Windows within a memory budget in every bucket; `strays` as of other buckets."""

    kind: ClassVar[str] = SPILLED
    paged: ClassVar[bool] = True
    work: Work
    budget: Budget
    sharing: str

    def __post_init__(self) -> None:
        need_technique(self.work.judge.plan, self.budget)

    def identity(self) -> dict[str, Any]:
        """What the state depends on; the budget may change."""
        return fingerprint(self.work.judge.plan)

    def need_same(self, stored: dict[str, Any]) -> None:
        """Fail with the difference unless the stored plan is this one."""
        need_same(stored, self.work.judge.plan)

    def bucket(self) -> SpillBucket:
        """A bucket that has seen nothing."""
        return SpillBucket(self.work, self.budget)


class SpillBucket:
    """One share of the keys, with most of its state elsewhere."""

    reusable = False

    def __init__(self, work: Work, budget: Budget) -> None:
        self._work, self._part, self._budget = work, work.judge, budget
        self._plan: Plan = work.judge.plan
        self._operator: SpillOperator | None = None
        self._choice: SpillChoice | None = None
        self._progress = Progress(self._plan.stream)
        self._beginning = Beginning(self._progress)
        self._media: list[StateMedium] = []
        self._pages: Any = None
        self._stores: list[dict[str, Any]] = []
        self._block_bytes = budget.block_bytes  # of the stores: those of a stored bucket keep theirs

    def leads_to(self, header: Mapping[str, Any]) -> bool:  # noqa: ARG002 - others can
        """A bucket cannot itself go on from what another stored."""
        return False

    def attach(self, pages: Any) -> None:
        """Use this map of the state store, which is that of the task that runs now."""
        self._pages = pages
        for medium in self._media:
            medium.pages = pages

    @property
    def nbytes(self) -> int:
        """Memory held by the state."""
        return 0 if self._operator is None else self._operator.nbytes

    def answer(self, received: Received) -> pd.DataFrame:
        """Take a micro-batch in; its outputs as a tagged frame, with notes on rows, state and bound."""
        tables: dict[str, list[pa.Table]] = {}
        counts = Counts()
        for due in self._beginning.due(received):
            for name, some in self._step(due, counts).items():
                tables.setdefault(name, []).extend(some)
        bound, high = self._progress.bound, self._progress.high
        return self._work.given(tables, counts, state_bytes=self.nbytes, bound=bound, high=high)

    def _step(self, due: Due, counts: Counts) -> dict[str, list[pa.Table]]:
        received, before = due.received, self._progress.bound
        limit = self._progress.take(Seen.merged(received.seen), due.start)
        bound = self._progress.bound
        arrived = Sorted(received.payloads.get(0, []), self._part, before, limit)
        batch, time = arrived.rows()
        counts.add(unsent(received.seen, limit))
        counts.add(arrived.counts)
        if self._operator is None and len(time):
            self._operator = self._start(batch, time)
        tables: dict[str, list[pa.Table]] = {}
        if self._operator is not None:
            taken = self._operator.take(batch, time, bound)
            tables = self._operator.answer(taken, before, bound)
            share_budget(self._operator, self._budget)
        if self._work.strays:
            stream, strays = self._work.stream, received.payloads.get(1, [])
            cutoff = self._part.cutoff(before)
            tables |= sort_strays(stream, self._work.strays, strays, cutoff, limit)[0]
        return tables

    def blocks(self) -> Blocks:
        """Sums, keys and waiting tuples; blocks of the stores go to their places."""
        lanes = [] if self._operator is None else self._operator.lanes
        self._stores = [flush(lane.store) for lane in lanes]
        for lane, medium in zip(lanes, self._media, strict=True):
            settle(lane.store)
            medium.keep(lane.store.slots.to_array().tolist())
        return write_operator(self._operator)

    def header(self) -> dict[str, Any]:
        """What is stored beside the blocks."""
        choice = None if self._choice is None else asdict(self._choice)
        return {
            "progress": self._progress.to_json(),
            **self._beginning.to_json(),
            "stores": self._stores,
            "technique": choice,
            "block_bytes": self._block_bytes,
        }

    def restore(self, header: Mapping[str, Any], blocks: Mapping[str, bytes]) -> None:
        """Go on from stored state; only the oldest and the newest blocks are read."""
        self._progress.restore(header["progress"])
        self._beginning.restore(header)
        if header["technique"] is None:
            return
        self._choice = SpillChoice(**header["technique"])
        stores, blocks_held = header["stores"], self._budget.blocks or 2

        def make(lane: int, layout: BlockLayout) -> BlockStore:
            return revive(layout, self._medium(lane, stores[lane]["slots"]), stores[lane], blocks_held)

        technique = self._choice.technique
        size = self._block_bytes = int(header["block_bytes"])
        self._operator = read_operator(
            blocks, lambda: assemble_spill(self._plan, technique, size, make, fresh=False)
        )
        share_budget(self._operator, self._budget)

    def _start(self, batch: pa.RecordBatch, time: Ints) -> SpillOperator:
        """Choose the technique by what the first rows tell."""
        types = dict(self._plan.stream.types)
        keys = [
            KeyIndex(names, [types[n] for n in names]).encode([batch.column(n) for n in names], len(time))
            for names in groupings_of(self._plan)
        ]
        self._choice = choose(self._plan, self._budget, seen_in(time, keys, pane_of(spans_of(self._plan))))

        def make(lane: int, layout: BlockLayout) -> BlockStore:
            frames = self._budget.blocks or 2
            return BlockStore(layout, self._medium(lane), frames, identity=secrets.token_bytes(16))

        operator = assemble_spill(self._plan, self._choice.technique, self._block_bytes, make)
        share_budget(operator, self._budget)
        return operator

    def _medium(self, lane: int, slots: Sequence[int] = ()) -> StateMedium:
        medium = StateMedium(lane, slots)
        medium.pages = self._pages
        self._media.append(medium)
        return medium
