"""What an update queue of windows hands to the operator: tuples with marks, and windows that are done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.kernels import update_windows as steps


@dataclass(frozen=True, slots=True)
class Served:
    """What one call of `serve` brought.

    The dequeued tuples in order: key ids, marks and rows. A mark is the end of a window that is to be opened
    with this tuple, `NOT_OPENED` for the start of one that is not, and `NO_START` else; both are below every
    end, and the tuple goes to the window of its key that is open. Then the windows that are complete, in
    order: `done_keys`, `done_windows`, of how many tuples, when they were committed and when done.
    """

    keys: Ints
    marks: Ints
    rows: Ints
    done_keys: Ints
    done_windows: Ints
    done_tuples: Ints
    committed: Floats
    done: Floats

    @property
    def tuples(self) -> int:
        """How many tuples were dequeued."""
        return len(self.keys)


def new_dequeued(tuples: int, width: int) -> steps.Dequeued:
    """Room for what the operator is handed."""
    keys, marks = (np.empty(tuples, np.int64) for _ in range(2))
    return steps.Dequeued(keys, marks, np.empty((tuples, width), np.int64), np.zeros(1, np.int64))


def new_delivered(windows: int) -> steps.Delivered:
    """Room for windows that are complete."""
    keys, numbers, tuples = (np.empty(windows, np.int64) for _ in range(3))
    return steps.Delivered(keys, numbers, tuples, np.empty(windows), np.empty(windows), np.zeros(1, np.int64))
