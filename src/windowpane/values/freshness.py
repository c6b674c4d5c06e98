"""How a queue in front of an overloaded consumer chooses what to serve (Moga et al. 2009, section 5)."""

from __future__ import annotations

import math
import threading
from datetime import timedelta
from enum import StrEnum
from numbers import Real

from windowpane.values.durations import microseconds
from windowpane.values.errors import BadQuery, BadWindow

Seconds = float | str | timedelta
"""A length of time on a clock: a number is seconds, a text has a unit ("5 ms")."""
SWITCH = "switch"
"""A change between two policies: `append` until the consumer falls behind, then `freshest`, and back."""


class Policy(StrEnum):
    """What a queue keeps, and which key it serves next.

    The first two keep every tuple; the others keep the newest tuple of each key and lose the rest on purpose.
    """

    APPEND = "append"
    """Every tuple in arrival order: under overload the wait grows without bound. The baseline."""
    SHED = "shed"
    """As `append`, but tuples are dropped at random so that the rest is what the consumer can take."""
    FIFO = "fifo"
    """The key whose newest tuple is the oldest: an update sends its key back to the tail."""
    IN_PLACE = "in_place"
    """The key that has waited longest since its first unserved update."""
    LINECUTTING = "linecutting"
    """As `in_place`, but a key that updates slowly goes to the front."""
    FRESHEST = "freshest"
    """The key whose service saves most staleness for the time it takes: its wait and its own rate count."""

    @property
    def keeps_all(self) -> bool:
        """Whether every tuple waits, not only the newest of each key."""
        return self in {Policy.APPEND, Policy.SHED}


def policy_of(name: str | Policy) -> Policy:
    """The policy of this name."""
    try:
        return Policy(name)
    except ValueError:
        known = ", ".join(policy.value for policy in Policy)
        if name == SWITCH:
            raise BadQuery(
                f"policy {SWITCH!r} changes between two, which this queue cannot. Choose one of: {known}."
            ) from None
        raise BadQuery(
            f"there is no policy {name!r}. Choose one of: {known}; or {SWITCH}, where a queue can change."
        ) from None


def cost_in_seconds(cost: object) -> float:
    """What a tuple is said to take, as a first guess; by a cost that is no number keys would starve."""
    found = _number(cost)
    if not 0.0 <= found < math.inf:
        raise BadQuery(
            f"cost={cost!r}, but it is a first guess of what a tuple takes. Give seconds or a text such as "
            "'5 ms', at least 0 and not infinite."
        )
    return found


def forget_in_seconds(forget: object) -> float:
    """After how long without a tuple a key is forgotten; infinity for never."""
    found = _number(forget)
    if not found > 0.0:
        raise BadQuery(
            f"forget={forget!r}, but keys must be known for some time. Give seconds or a text such as '2 h', "
            "above 0."
        )
    return found


def behind_in_seconds(behind: object) -> float:
    """How much work may wait before a queue that switches overwrites older tuples."""
    found = _number(behind)
    if not found > 0.0:
        raise BadQuery(
            f"behind={behind!r}: give the seconds of work that may wait, or a text such as '500 ms', more "
            "than 0."
        )
    return found


def timeout_in_seconds(timeout: object) -> float | None:
    """How long to wait at most; None for ever, as is infinity. Python cannot wait for more than 292 years."""
    if timeout is None:
        return None
    found = _number(timeout)
    if math.isnan(found) or isinstance(timeout, bool):
        raise BadQuery(
            f"timeout={timeout!r}: give the seconds to wait or a text such as '5 s'; None waits for ever."
        )
    return None if found == math.inf else min(max(found, 0.0), threading.TIMEOUT_MAX)


def _number(value: object) -> float:
    """The value in seconds, or NaN, which no check lets pass, where it is no length of time."""
    if isinstance(value, str | timedelta):
        try:
            return microseconds(value) / 1e6
        except BadWindow:
            return math.nan
    if not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats
        return math.inf if abs(value) == value else -math.inf
