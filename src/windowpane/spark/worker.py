"""What concerns the Python worker of Spark that a task runs in."""

from __future__ import annotations

import gc
from itertools import count

from pyspark import TaskContext

_TASKS = count(1)
_LEARNING = 3
"""Tasks after which all modules are imported and all kernels loaded, about."""


def settled() -> None:
    """The work of a task is done: let what the first tasks loaded be no more looked at for garbage.

    A worker collects garbage after every task, and would go through all objects of all modules each time,
    which takes longer than the work itself: 50 to 100 ms.
    """
    if next(_TASKS) <= _LEARNING:
        gc.collect()
        gc.freeze()


def this_task() -> int:
    """The number of the running task within its stage; 0 outside of Spark."""
    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
