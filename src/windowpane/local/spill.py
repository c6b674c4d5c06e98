"""A run within a memory budget: windows slide over stores on disk, and checkpoints outlive the process."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Ints
from windowpane.core.keys import KeyIndex
from windowpane.core.spill.checkpoint import flush, revive, settle
from windowpane.core.spill.codec import BlockLayout
from windowpane.core.spill.folder import SpillFolder
from windowpane.core.spill.medium import SET_ASIDE, FileMedium, IoCounts
from windowpane.core.spill.operator import SpillOperator
from windowpane.core.spill.state import FORMAT, read_operator, write_operator
from windowpane.core.spill.store import BlockStore
from windowpane.local.admission import Admitted
from windowpane.local.results import Counts, Step
from windowpane.local.runner import QueryRunner
from windowpane.local.snapshot import Snapshot
from windowpane.plan.fingerprint import fingerprint, need_same
from windowpane.plan.nodes import Plan
from windowpane.planner.spill import (
    Seen,
    SpillChoice,
    add_query,
    always_fits,
    assemble_spill,
    choose,
    groupings_of,
    need_same_rows,
    need_spillable,
    need_technique,
    pane_of,
    seen_in,
    share_budget,
    spans_of,
)
from windowpane.planner.spill_text import explain_choice
from windowpane.values.errors import BadQuery, BadState, OverBudget, SpillFailed
from windowpane.values.sizes import Budget


class SpillRunner(QueryRunner):
    """A run whose state keeps to a budget.

    The budget covers blocks in memory, sums, keys and tuples that wait for the punctuation. It does not cover
    the batch that is being pushed and its answers, which are the caller's.
    """

    def __init__(self, plan: Plan, budget: Budget, folder: SpillFolder) -> None:
        super().__init__(plan)
        self.budget, self.folder = budget, folder
        self.choice: SpillChoice | None = None
        self.seen: Seen | None = None
        self._spill: SpillOperator | None = None
        self._since: dict[str, int] = {}
        self._media: list[FileMedium] = []
        self._failed: BaseException | None = None
        self._discarded = False

    @property
    def io(self) -> IoCounts:
        """The requests to the disk so far."""
        total = IoCounts()
        for medium in self._media:
            for name, value in asdict(medium.counts).items():
                setattr(total, name, getattr(total, name) + value)
        return total

    @property
    def state_bytes(self) -> int:
        """Memory that the state takes now."""
        return 0 if self._spill is None else self._spill.nbytes

    @property
    def disk_bytes(self) -> int:
        """How long the files of blocks are."""
        return sum(medium.file_bytes for medium in self._media)

    def explain(self) -> str:
        """The technique and the numbers it was chosen by; known once the first rows came."""
        if self.choice is None or self.seen is None:
            return "no rows came yet, so that no technique is chosen.\n"
        return explain_choice(self.plan, self.budget, self.choice, self.seen)

    def checkpoint(self) -> Path:
        """Make the run as it is now outlive this process; `query.resume(directory)` goes on from it.

        Writes the blocks that are only in memory and the sums; blocks that are on disk stay where they are.
        """
        self._check_open()
        if self.folder.temporary:
            raise BadQuery("a checkpoint needs a directory that stays. Start the query with spill_dir=...")
        if self._held:
            raise BadQuery("answers of a push that failed have not been taken yet. Push or punctuate first.")
        stores = [] if self._spill is None else [flush(lane.store) for lane in self._spill.lanes]
        blocks = write_operator(self._spill)
        header = {
            "format": FORMAT,
            "plan": fingerprint(self.plan),
            "budget": asdict(self.budget),
            "technique": None if self.choice is None else asdict(self.choice),
            "seen": None if self.seen is None else asdict(self.seen),
            "stores": stores,
            "since": self._since,
            "gate": self.gate.snapshot(blocks),
            "counts": asdict(self.counts),
        }
        path = self.folder.write_checkpoint(Snapshot(header, blocks).to_bytes())
        for lane in [] if self._spill is None else self._spill.lanes:
            settle(lane.store)
        return path.parent

    @classmethod
    def restore_from(cls, plan: Plan, directory: Path, budget: Budget | None = None) -> Self:
        """Go on from the checkpoint in a directory; the plan must be the one that was running."""
        folder = SpillFolder(directory, resume=True)
        try:
            return cls._restored(plan, folder, budget)
        except BaseException:
            folder.leave()
            raise

    @classmethod
    def _restored(cls, plan: Plan, folder: SpillFolder, budget: Budget | None) -> Self:
        snapshot = Snapshot.from_bytes(folder.read_checkpoint())
        header = snapshot.header
        if header.get("format") != FORMAT:
            raise BadState(
                f"{folder.path} has a checkpoint of format {header.get('format')}; this is {FORMAT}."
            )
        need_same(header["plan"], plan)
        folder.keep_lanes(len(header["stores"]))
        stored = Budget(**header["budget"])
        budget = stored if budget is None else Budget(budget.memory, stored.block_bytes, budget.blocks)
        runner = cls(plan, budget, folder)
        if header["technique"] is not None:
            runner.choice = SpillChoice(**header["technique"])
            seen = header["seen"]
            runner._since = header.get("since", {})
            runner.seen = Seen(seen["rate"], tuple(seen["groups"]), tuple(seen["active_groups"]))
            runner._revive(header["stores"], snapshot)
        runner.gate.restore(header["gate"], snapshot.blocks)
        runner.counts = Counts(**header["counts"])
        return runner

    def _revive(self, stores: list[dict[str, Any]], snapshot: Snapshot) -> None:
        assert self.choice is not None

        def make(lane: int, layout: BlockLayout) -> BlockStore:
            medium = FileMedium(self.folder.blocks(lane), layout.block_bytes, create=False)
            self._media.append(medium)
            store = revive(layout, medium, stores[lane], self.budget.blocks or 2)
            medium.shorten(store.free.end)
            return store

        technique, size = self.choice.technique, self.budget.block_bytes
        self._spill = read_operator(
            snapshot.blocks,
            lambda: assemble_spill(self.plan, technique, size, make, fresh=False, since=self._since),
        )
        share_budget(self._spill, self.budget)

    def _check_open(self) -> None:
        if self._failed is not None:
            raise BadState(
                f"this run failed after its rows were stored: {self._failed} Go on from its last checkpoint, "
                "or start anew."
            ) from self._failed
        super()._check_open()
        if self._discarded:
            raise BadQuery(
                "this run was discarded: its files are gone. Go on from its checkpoint with "
                "query.resume(...), or start anew."
            )

    def _take(self, whole: object, now: int | None, steps: list[tuple[int, Step]]) -> None:
        """Take a table or batch in, each piece all or nothing: rows that went into sums do not come out."""
        self._keep_to_budget()
        for given, piece in self._pieces(whole):
            with self._or_nothing():
                waited = self._waited(piece)
            steps += waited
            steps.append((given, self._push(piece, now)))
            # after the answers are noted: those of rows that are in sums must not be lost
            self._keep_to_budget()

    def _push(self, batch: pa.RecordBatch, now: int | None) -> Step:
        with self._or_nothing():
            return super()._push(batch, now)

    def _taken(self, admitted: Admitted, before: int) -> Step:
        tables = self._step(admitted.kept, admitted.time, before, rising=admitted.rising)
        self.counts += admitted.counts
        return Step(self._tables(tables), admitted.late, admitted.rejects, admitted.counts)

    def _advance(self, before: int) -> Step:
        empty = self._schema.empty_table().to_batches() or [
            pa.RecordBatch.from_arrays([pa.array([], f.type) for f in self._schema], schema=self._schema)
        ]
        tables = self._step(empty[0], np.empty(0, np.int64), before, rising=True)
        # nothing came, so that there is nothing to refuse
        with suppress(OverBudget):
            self._keep_to_budget()
        return Step(self._tables(tables), self.gate.no_late, self.gate.no_rejects, Counts())

    def _step(
        self, batch: pa.RecordBatch, time: Ints, before: int, *, rising: bool
    ) -> dict[str, list[pa.Table]]:
        if self._spill is None:
            if len(time) == 0:
                return {}
            self._start(batch, time)
        assert self._spill is not None
        bound = self.gate.clock.bound
        taken = self._spill.take(batch, time, bound, rising=rising, before=before)
        try:
            return self._spill.answer(taken, before, bound)
        except BaseException as error:
            self._failed = error
            raise

    def _keep_to_budget(self) -> None:
        """Share the budget anew after sums grew; an error if they leave too little of it for the blocks.

        Blocks that the disk does not take now stay in memory; the next push needs room too, and says so.
        """
        if self._spill is not None:
            with suppress(SpillFailed):
                share_budget(self._spill, self.budget)
                for lane, medium in zip(self._spill.lanes, self._media, strict=True):
                    medium.shorten(lane.store.places, spare=2 * SET_ASIDE)

    def _start(self, batch: pa.RecordBatch, time: Ints) -> None:
        """Choose by what the first rows tell, and make the stores."""
        types = dict(self.plan.stream.types)
        keys = [
            KeyIndex(names, [types[name] for name in names]).encode(
                [batch.column(name) for name in names], len(time)
            )
            for names in groupings_of(self.plan)
        ]
        self.seen = seen_in(time, keys, pane_of(spans_of(self.plan)))
        self.choice = choose(self.plan, self.budget, self.seen)

        def make(lane: int, layout: BlockLayout) -> BlockStore:
            medium = FileMedium(self.folder.blocks(lane), layout.block_bytes)
            self._media.append(medium)
            return BlockStore(layout, medium, self.budget.blocks or 2, identity=secrets.token_bytes(16))

        try:
            self._spill = assemble_spill(self.plan, self.choice.technique, self.budget.block_bytes, make)
            share_budget(self._spill, self.budget)
        except BaseException:
            # as if nothing had been begun, so that the push can be repeated
            for lane, medium in enumerate(self._media):
                medium.close()
                self.folder.blocks(lane).unlink(missing_ok=True)
            self._spill, self._media, self.choice, self.seen = None, [], None, None
            raise

    def close(self) -> Step:
        """End the stream: every window that holds a row comes out, and the files go."""
        step = super().close()
        self.discard()
        return step

    def discard(self) -> None:
        """Let go of the run without ending the stream: its files go, those of a checkpoint stay."""
        self._discarded = True
        for medium in self._media:
            medium.close()
        if self.closed:
            self.folder.remove()
        else:
            self.folder.leave()

    def snapshot(self) -> Snapshot:
        """Not for a run over stores: its blocks are too large for a value."""
        raise BadQuery("a run within memory= has checkpoint() instead of snapshot(): its state is on disk.")

    def _change(self, plan: Plan, since: int) -> None:
        """Add or remove a query whose keys and aggregates those of others are, so that rows serve all."""
        if self._held:
            raise BadQuery("answers of a push that failed have not been taken yet. Push or punctuate first.")
        names = [query.name for query in plan.queries]
        fresh = [query for query in plan.queries if query not in self.plan.queries]
        if self._spill is None or self.choice is None:
            need_spillable(plan)
            need_technique(plan, self.budget)
        else:
            gone = next((query.name for query in self.plan.queries if query.name not in names), "")
            need_same_rows(self.plan, plan, self.choice.technique, fresh[0].name if fresh else gone)
            self._spill.keep(names)
            for query in fresh:
                add_query(self._spill, plan, query, since)
            try:
                self._keep_to_budget()
            except OverBudget:
                self._spill.keep([query.name for query in self.plan.queries])
                raise
            self._since = {n: at for n, at in self._since.items() if n in names}
            self._since |= {query.name: since for query in fresh}
        super()._change(plan, since)


def start_within(plan: Plan, budget: Budget, spill_dir: str | Path | None) -> QueryRunner:
    """A run within a budget: over stores, or in memory where slices are known to fit.

    With a directory always over stores, since only these have checkpoints.
    """
    need_spillable(plan)
    need_technique(plan, budget)
    if spill_dir is None and budget.technique == "auto" and always_fits(plan, budget):
        return QueryRunner(plan)
    return SpillRunner(plan, budget, SpillFolder(None if spill_dir is None else Path(spill_dir)))
