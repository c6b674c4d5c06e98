"""The errors that a caller can act on. Every message names the column, the value and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


class WindowpaneError(Exception):
    """Base of every error that windowpane raises on purpose."""


class UnknownColumn(WindowpaneError, LookupError):
    """A query names a column that its stream does not have."""


class WrongType(WindowpaneError, TypeError):
    """A column has a type that the query cannot use."""


class BadWindow(WindowpaneError, ValueError):
    """A window definition that makes no sense, such as a slide of zero."""


class BadAggregate(WindowpaneError, ValueError):
    """An aggregate that cannot be computed as declared."""


class BadQuery(WindowpaneError, ValueError):
    """A query whose parts do not fit together."""


class Overflow(WindowpaneError, ArithmeticError):
    """An integer aggregate left the range of int64; windowpane never wraps."""


class TooManyWindows(WindowpaneError, ValueError):
    """A step of the punctuation that would close more windows than could be answered."""


class OutOfMemory(WindowpaneError, MemoryError):
    """A queue needs more room than the memory that was set aside for it."""


class BadState(WindowpaneError, ValueError):
    """Stored state that is damaged or belongs to another plan."""


class SpillFailed(WindowpaneError, OSError):
    """The disk did not take or give a block of a window's store."""


class DiskFull(SpillFailed):
    """There is no room on the disk for a window's store."""


class OverBudget(WindowpaneError, MemoryError):
    """A run needs more memory than `memory=` allows it."""


class QueueClosed(WindowpaneError, RuntimeError):
    """A queue that was closed is used once more."""


def unknown_column(name: object, stream: str, columns: Sequence[str]) -> UnknownColumn:
    """The error for a misspelt column, with the nearest name as a hint."""
    near = get_close_matches(name, columns, n=1) if isinstance(name, str) else []
    hint = f"Did you mean {near[0]!r}?" if near else "Add the column to the rows first."
    if not isinstance(name, str):
        hint = "Columns go by their names, which are texts."
    return UnknownColumn(f"{stream} has no column {name!r}; it has {', '.join(columns)}. {hint}")


def wrong_type(name: str, found: object, wanted: str, remedy: str) -> WrongType:
    """The error for a column whose type does not serve."""
    return WrongType(f"column {name!r} has type {found}, but {wanted} is needed. {remedy}")
