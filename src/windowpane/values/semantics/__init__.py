"""What each window means: the three functions of Li 2008 (WID thesis), section 5.1.1.

`windows` gives the ids, `extent` the tuples of an id, `wids` the ids of a tuple; for every id w of
`windows`, `t in extent(w)` exactly if `w in wids(t)`. They are plain Python over a sequence of `Tuple`
values, written to be read and to test the engine against, and no part of the engine calls them.

| window | id | holds |
|---|---|---|
| Sliding | any integer w | `[origin + (w+1)*slide - size, origin + (w+1)*slide)` |
| Landmark | any integer w | `[start, origin + (w+1)*slide)` |
| Cumulative | any integer w | from its period's start to `origin + (w+1)*step` |
| Rows | w = 0, 1, ... | positions `[(w+1)*slide - size, (w+1)*slide)` |
| PerRow | a time t | `(t - size, t]` |
| LastRows | any integer k | the last `size` tuples below `origin + k*every` |
| Session | (key, first time) | tuples at most `gap` apart |
| Delimited | (key, start, ordinal) | what its markers enclose |
| ContextFreeWindow | (start, end) | `[start, end)` |
| ContextAwareWindow | (key, start, end) | the key's tuples in `[start, end)` |

Rows, PerRow and LastRows with `.per` have the id (id, partition).

Where a family of windows is infinite, `windows` gives the ids of those that hold a tuple. Landmark
and LastRows windows hold tuples for ever after, so theirs end with the first that has seen all tuples
of the stream, or with the last that ends at or before `upto` if that is later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windowpane.values.errors import BadWindow
from windowpane.values.semantics.base import Bounds, Meaning, WindowId
from windowpane.values.semantics.contextual import ContextAwareMeaning, DelimitedMeaning, SessionMeaning
from windowpane.values.semantics.counted import LastRowsMeaning, PerRowMeaning, RowsMeaning
from windowpane.values.semantics.periodic import (
    ContextFreeMeaning,
    CumulativeMeaning,
    LandmarkMeaning,
    SlidingMeaning,
)
from windowpane.values.semantics.tuples import Stream, Tuple
from windowpane.values.windows import (
    ContextAwareWindow,
    ContextFreeWindow,
    Cumulative,
    Delimited,
    Landmark,
    LastRows,
    PerRow,
    Rows,
    Session,
    Sliding,
    Window,
)

__all__ = ["Bounds", "Meaning", "Tuple", "WindowId", "bounds", "extent", "meaning", "wids", "windows"]

_MEANINGS: dict[type, type[Meaning[Any]]] = {
    Sliding: SlidingMeaning,
    Landmark: LandmarkMeaning,
    Cumulative: CumulativeMeaning,
    Rows: RowsMeaning,
    PerRow: PerRowMeaning,
    LastRows: LastRowsMeaning,
    Session: SessionMeaning,
    Delimited: DelimitedMeaning,
    ContextFreeWindow: ContextFreeMeaning,
    ContextAwareWindow: ContextAwareMeaning,
}


def meaning(window: Window, tuples: Sequence[Tuple], upto: int | None = None) -> Meaning[Any]:
    """All four functions bound to one window and stream, so that many calls share the sorting."""
    for kind, made in _MEANINGS.items():
        if isinstance(window, kind):
            return made(window, Stream(tuple(tuples)), upto)
    raise BadWindow(f"{window!r} is no window. Use a windowpane window, or subclass ContextFreeWindow.")


def windows(window: Window, tuples: Sequence[Tuple], upto: int | None = None) -> frozenset[WindowId]:
    """The ids of the windows that hold a tuple."""
    return meaning(window, tuples, upto).windows()


def extent(window: Window, tuples: Sequence[Tuple], wid: WindowId) -> tuple[Tuple, ...]:
    """The tuples that the window with this id holds, by (time, tie, arrival)."""
    return meaning(window, tuples).extent(wid)


def wids(window: Window, tuples: Sequence[Tuple], t: Tuple, upto: int | None = None) -> frozenset[WindowId]:
    """The ids of the windows that hold this tuple, which must be one of `tuples`."""
    return meaning(window, tuples, upto).wids(t)


def bounds(window: Window, tuples: Sequence[Tuple], wid: WindowId) -> Bounds:
    """The start and end that a result of this window reports."""
    return meaning(window, tuples).bounds(wid)
