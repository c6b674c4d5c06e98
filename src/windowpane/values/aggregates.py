"""Aggregate specifications: what to compute, and the algebra that licenses how.

An `Aggregate` names a function and its columns. How it is folded, combined and lowered is the core's
business (`core/aggregates.py`), except for a user's own aggregate, which brings its arithmetic along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Size = Literal["distributive", "algebraic", "holistic"]


@dataclass(frozen=True, slots=True)
class Algebra:
    """The properties of seed 003 section 4.2 that decide which techniques may be used."""

    size: Size
    commutative: bool = True
    invertible: bool = False
    associative: bool = True
