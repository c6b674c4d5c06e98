"""Run queries over their source, to the end."""

from __future__ import annotations

from pathlib import Path

from windowpane.local.results import Result
from windowpane.local.runner import QueryRunner, Runner, joined
from windowpane.local.snapshot import Snapshot
from windowpane.local.spill import SpillRunner, start_within
from windowpane.query import RUNTIMES, Query, together
from windowpane.values.errors import BadQuery
from windowpane.values.sizes import Memory, budget_of


def run(*queries: Query, memory: Memory | None = None, spill_dir: str | Path | None = None) -> Result:
    """Run queries over the one stream they read, in one pass, and close every window at its end.

    With `memory`, the state keeps to it; see `start`.
    """
    _, source = together(queries)
    with start(*queries, memory=memory, spill_dir=spill_dir) as runner:
        steps = [runner.push(batch) for batch in source.take()]
        whole = joined([*steps, runner.close()])
    return Result(whole.tables, whole.late, whole.rejects, whole.counts)


def start(*queries: Query, memory: Memory | None = None, spill_dir: str | Path | None = None) -> Runner:
    """Start a run of one or more queries, to push batches and punctuation to.

    With `memory`, such as "64 MB", windows that need more go to disk: into `spill_dir`, where checkpoints can
    be written too, or into a temporary directory.
    """
    plan, _ = together(queries)
    if memory is not None:
        return start_within(plan, budget_of(memory), spill_dir)
    if spill_dir is not None:
        raise BadQuery("spill_dir= is for a run within memory=. Give memory='64 MB' too, or leave it out.")
    return QueryRunner(plan) if len(queries) == 1 else Runner(plan)


def resume(snapshot: Snapshot | bytes | str | Path, *queries: Query, memory: Memory | None = None) -> Runner:
    """Go on with a run of these queries where its snapshot was taken; or its checkpoint, by the directory.

    A run from a checkpoint keeps its budget, or gets the `memory` that is given now.
    """
    plan, _ = together(queries)
    if isinstance(snapshot, str | Path):
        return SpillRunner.restore_from(plan, Path(snapshot), None if memory is None else budget_of(memory))
    if memory is not None:
        raise BadQuery("memory= is for a run that goes on from a checkpoint. Give its directory instead.")
    kind = QueryRunner if len(queries) == 1 else Runner
    return kind.restore(plan, snapshot)


RUNTIMES["run"] = run
RUNTIMES["start"] = start
RUNTIMES["resume"] = resume
