"""Python's values as keys: which are one and the same.

Numbers of one value are one key whatever their class, as in the columns of a table. What Python's equality
would get wrong is put right here: True is not 1, and a NaN is the same key as any other.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Hashable
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any

import numpy as np

from windowpane.values.errors import WrongType

_PLAIN = frozenset({str, int, bytes, NoneType})
_NO_TIME, _NO_LENGTH = np.datetime64("NaT"), np.timedelta64("NaT")


class _Truth(Enum):
    """What stands for the booleans, which a dictionary takes for 1 and 0."""

    NO = False
    YES = True


def told_apart(key: Hashable) -> Hashable:
    """The key as one that a dictionary finds exactly where it is the same; `shown` gives it back."""
    if type(key) in _PLAIN:
        return key
    if isinstance(key, tuple):
        return tuple(told_apart(part) for part in key)
    if isinstance(key, bool | np.bool_):
        return _Truth.YES if key else _Truth.NO
    if isinstance(key, np.datetime64 | np.timedelta64):
        none = _NO_TIME if isinstance(key, np.datetime64) else _NO_LENGTH
        return none if np.isnat(key) else key
    # A dictionary finds a NaN by identity, as it is not equal to itself: one stands for all.
    nan = isinstance(key, float | complex | np.inexact | Decimal) and cmath.isnan(key)
    return math.nan if nan else key


def shown(key: Hashable) -> Hashable:
    """A key that `told_apart` made, as users know it."""
    if isinstance(key, tuple):
        return tuple(shown(part) for part in key)
    return key.value if isinstance(key, _Truth) else key


def hashable(value: Any, where: str) -> Hashable:
    """A value by which a dictionary can find a key, or an error that says where it stands."""
    try:
        hash(value)
    except TypeError as error:
        raise WrongType(
            f"{where} is {value!r}, a {type(value).__name__}, by which no key can be found. Use numbers, "
            "texts, times or tuples of them."
        ) from error
    found: Hashable = value
    return found
