"""Run queries over their source, to the end."""

from __future__ import annotations

from windowpane.local.results import Result
from windowpane.local.runner import QueryRunner, Runner, joined
from windowpane.local.snapshot import Snapshot
from windowpane.query import RUNTIMES, Query, together


def run(*queries: Query) -> Result:
    """Run queries over the one stream they read, in one pass, and close every window at its end."""
    plan, source = together(queries)
    runner = Runner(plan)
    steps = [runner.push(batch) for batch in source.take()]
    whole = joined([*steps, runner.close()])
    return Result(whole.tables, whole.late, whole.rejects, whole.counts)


def start(*queries: Query) -> Runner:
    """Start a run of one or more queries, to push batches and punctuation to."""
    plan, _ = together(queries)
    return QueryRunner(plan) if len(queries) == 1 else Runner(plan)


def resume(snapshot: Snapshot | bytes, *queries: Query) -> Runner:
    """Go on with a run of these queries where its snapshot was taken."""
    plan, _ = together(queries)
    kind = QueryRunner if len(queries) == 1 else Runner
    return kind.restore(plan, snapshot)


RUNTIMES["run"] = run
RUNTIMES["start"] = start
RUNTIMES["resume"] = resume
