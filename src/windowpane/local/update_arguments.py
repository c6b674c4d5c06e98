"""What a user says of operators on update streams, checked where it is said."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from numbers import Integral
from typing import Any

import numpy as np

from windowpane.core.columns import TIME_LIMIT
from windowpane.core.measure import as_measure, whole
from windowpane.values.durations import microseconds
from windowpane.values.errors import BadQuery, BadWindow
from windowpane.values.punctuation import LONGEST
from windowpane.values.windows import Window

_MOST = 2**62


def names_of(columns: object, what: str, remedy: str = "Give a name, or a list of names.") -> tuple[str, ...]:
    """The columns that an argument names: one, or several."""
    some = columns if isinstance(columns, Collection) and not isinstance(columns, str) else (columns,)
    names = tuple(some)
    if not all(isinstance(name, str) for name in names):
        raise BadQuery(f"{what}={columns!r} names no column. {remedy}")
    return names


def need_callable(function: object, what: str, remedy: str) -> None:
    """Refuse what is no function before rows come."""
    if not callable(function):
        raise BadQuery(f"{what}={function!r} cannot be called. Give a function of {remedy}.")


def need_options(options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse options of windows that there are not."""
    for name in options:
        if name not in known:
            raise BadQuery(f"window() has no option {name!r}. There are by, {', '.join(known)}.")


def lengths_of(span: tuple[Any, Any]) -> tuple[int, int, bool]:
    """Size and slide of windows, and whether they are lengths of time (in microseconds), not rows."""
    counts = [whole(length) for length in span]
    for length, count in zip(span, counts, strict=True):
        if isinstance(length, Window):
            raise BadWindow(
                "window() of updates takes a size and a slide, not a window. Give them, as in "
                "window('10 s', '1 s'), or numbers of rows."
            )
        if count is None and not isinstance(length, str | timedelta):
            raise BadWindow(f"window{span}: {length!r} is no length. Give a number of rows, or '10 s'.")
    timed = counts[0] is None
    if timed != (counts[1] is None):
        raise BadQuery(f"window{span}: size and slide must both be rows or both be times.")
    size, slide = (microseconds(length) if timed else int(length) for length in span)
    for name, found in (("size", size), ("slide", slide)):
        if found > LONGEST:
            raise BadWindow(
                f"window{span}: {name} is {found}, but it must be at most {LONGEST}. Give a smaller one."
            )
    return size, slide, timed


def rows_to_process(rows: object) -> int:
    """How many rows a `get` may process."""
    found = whole(rows)
    if found is None:
        raise BadQuery(f"get({rows!r}) does not say how many rows to process. Give a whole number.")
    if found < 0:
        raise BadQuery(f"get({rows}) would process less than nothing. Give a number of rows.")
    return min(found, _MOST)


def at_least_one(most: object, what: str = "tuple") -> int:
    """How many tuples to get at most: `get_batch` waits for one, so that none cannot be asked for."""
    if not isinstance(most, Integral) or most < 1:
        raise BadQuery(f"most={most!r}, but what is got is at least one {what}. Give a number from 1 on.")
    return int(most)


def bound_of(bound: int | date | np.datetime64, time: str) -> int:
    """A bound as a whole number; below all times none is lower than another."""
    given = bound.astype("datetime64[us]").item() if isinstance(bound, np.datetime64) else bound
    return max(as_measure(given, repr(time)), -TIME_LIMIT)
