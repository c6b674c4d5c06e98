"""Durations: "10 minutes", `timedelta` or int microseconds become int microseconds. Nothing else."""

from __future__ import annotations

import re
from datetime import timedelta

from windowpane.values.errors import BadWindow

Duration = str | int | timedelta

_UNITS = {
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000_000),
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def microseconds(duration: Duration) -> int:
    """The length in microseconds.

    >>> microseconds("1 min 30 s")
    90000000
    """
    if isinstance(duration, bool) or not isinstance(duration, str | int | timedelta):
        raise BadWindow(f"{duration!r} is no duration. Write '10 minutes', a timedelta or int microseconds.")
    if isinstance(duration, int):
        return duration
    if isinstance(duration, timedelta):
        return duration // timedelta(microseconds=1)
    return _parse(duration)


def _parse(text: str) -> int:
    total, at = 0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2].lower() not in _UNITS:
            raise BadWindow(
                f"{text!r} is no duration. Write a number and a unit, such as '10 minutes' or '1 h 30 min'."
            )
        total += (
            round(float(part[1]) * _UNITS[part[2].lower()])
            if "." in part[1]
            else int(part[1]) * _UNITS[part[2].lower()]
        )
        at = part.end()
    if at == 0:
        raise BadWindow("an empty text is no duration. Write a number and a unit, such as '10 minutes'.")
    return total


def render(length: int) -> str:
    """The shortest exact text for a length in microseconds.

    >>> render(90_000_000)
    '90 s'
    """
    for unit in ("d", "h", "min", "s", "ms"):
        size = _UNITS[unit]
        if length and length % size == 0:
            return f"{length // size} {unit}"
    return f"{length} us"
