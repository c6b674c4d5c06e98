"""Layer 6: run a plan in this process over Arrow batches: tests, notebooks, embedding, small jobs."""

from windowpane.local.freshness import Freshness
from windowpane.local.results import Counts, Result, Step
from windowpane.local.run import resume, run, start
from windowpane.local.runner import QueryRunner, Runner
from windowpane.local.snapshot import Snapshot
from windowpane.local.update_queue import UpdateQueue
from windowpane.local.update_windows import UpdateWindows, WindowFreshness
from windowpane.local.updates import Updates

__all__ = [
    "Counts",
    "Freshness",
    "QueryRunner",
    "Result",
    "Runner",
    "Snapshot",
    "Step",
    "UpdateQueue",
    "UpdateWindows",
    "Updates",
    "WindowFreshness",
    "resume",
    "run",
    "start",
]
