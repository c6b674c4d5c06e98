"""What concerns the Python worker of Spark that a task runs in."""

from __future__ import annotations

import gc

from pyspark import TaskContext

_MANY = 10_000
"""Objects that are a worker's modules and kernels, rather than those of a task."""


def settled() -> None:
    """The work of a task is done: let what it loaded for good be no more looked at for garbage.

    A worker collects garbage after every task, and would go through all objects of all modules each time,
    which takes longer than the work itself: 50 to 100 ms. What is frozen is still freed, unless in a cycle.
    """
    if len(gc.get_objects()) > _MANY:
        gc.collect()
        gc.freeze()


def this_task() -> int:
    """The number of the running task within its stage; 0 outside of Spark."""
    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
