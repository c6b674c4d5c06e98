"""A bound that a caller gives by hand, as a whole number on the measure of a stream."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np

from windowpane.core.arrays import ALWAYS, NEVER
from windowpane.values.errors import BadQuery


def as_measure(bound: object, measure: str) -> int:
    """The bound as an int64; times without a zone are UTC. `measure` is how a message calls the measure.

    >>> as_measure(date(1970, 1, 2), "'ts'")
    86400000000
    """
    if isinstance(bound, date) and isinstance(bound.year, int):  # pandas' NaT is a datetime without a year
        return _microseconds(bound)
    found = whole(bound)
    if found is None:
        raise BadQuery(
            f"the bound is {bound!r}. Give a datetime, a date, or a whole number in the measure of {measure} "
            "(for times: microseconds since 1970)."
        )
    return max(min(found, int(ALWAYS)), int(NEVER))


def whole(value: object) -> int | None:
    """The value if it is a whole number, also one of numpy's; True and 1.0 are none."""
    return int(value) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


def _microseconds(moment: date) -> int:
    if not isinstance(moment, datetime):
        return (moment - date(1970, 1, 1)).days * 86_400_000_000
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds
