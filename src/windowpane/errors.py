"""The errors that windowpane raises on purpose; `WindowpaneError` is the base of them all."""

from windowpane.values.errors import (
    BadAggregate,
    BadQuery,
    BadState,
    BadWindow,
    DiskFull,
    OutOfMemory,
    OverBudget,
    Overflow,
    QueueClosed,
    SpillFailed,
    TooManyWindows,
    UnknownColumn,
    WindowpaneError,
    WrongType,
)

__all__ = [
    "BadAggregate",
    "BadQuery",
    "BadState",
    "BadWindow",
    "DiskFull",
    "OutOfMemory",
    "OverBudget",
    "Overflow",
    "QueueClosed",
    "SpillFailed",
    "TooManyWindows",
    "UnknownColumn",
    "WindowpaneError",
    "WrongType",
]
