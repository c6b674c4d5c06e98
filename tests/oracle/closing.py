"""When a punctuation p (no later tuple is below p) closes a window."""

from functools import singledispatch
from typing import Any

from windowpane.values.semantics import Meaning, WindowId
from windowpane.values.windows import Delimited, PerRow, Rows, Session


def closed(means: Meaning[Any], wid: WindowId, p: int) -> bool:
    """True if no tuple that may still come can change this window."""
    return _closed(means.window, means, wid, p)


@singledispatch
def _closed(_window: object, means: Meaning[Any], wid: WindowId, p: int) -> bool:
    """Half-open windows on the measure: once the punctuation reaches the end."""
    return means.bounds(wid)[1] <= p


@_closed.register
def _(_window: PerRow, means: Meaning[Any], wid: WindowId, p: int) -> bool:
    """The end belongs to the window."""
    return means.bounds(wid)[1] < p


@_closed.register
def _(_window: Session, means: Meaning[Any], wid: WindowId, p: int) -> bool:
    """A tuple exactly a gap after the last would still join."""
    return means.bounds(wid)[1] < p


@_closed.register
def _(window: Rows, means: Meaning[Any], wid: WindowId, p: int) -> bool:
    """Positions by arrival are final at once, positions by rank once they lie below the punctuation."""
    part = [t for t in means.stream.tuples if not window.partition or t.partition == wid[1]]
    settled = len(part) if window.order == "arrival" else sum(t.time < p for t in part)
    return settled >= means.bounds(wid)[1]


@_closed.register
def _(_window: Delimited, means: Meaning[Any], wid: WindowId, p: int) -> bool:
    """The closing marker must lie below the punctuation: only then no earlier one can come."""
    closing = means.cuts[wid][1].closing
    return closing is not None and closing < p
