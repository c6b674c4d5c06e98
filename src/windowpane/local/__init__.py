"""Layer 6: run a plan in this process over Arrow batches: tests, notebooks, embedding, small jobs."""

from windowpane.local.runner import QueryRunner, Runner
from windowpane.local.results import Counts, Result, Step
from windowpane.local.run import run, start

__all__ = ["Counts", "QueryRunner", "Result", "Runner", "Step", "run", "start"]
