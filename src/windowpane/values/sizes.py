"""Sizes in bytes: "64 MB" or an int; and the memory that a run may use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from windowpane.values.errors import BadQuery

_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)
Technique = Literal["auto", "1W", "2LA"]


def size_in_bytes(size: str | int) -> int:
    """The size in bytes; MB are millions, MiB are powers of two.

    >>> size_in_bytes("64 MB"), size_in_bytes("1.5 KiB")
    (64000000, 1536)
    """
    if isinstance(size, int) and not isinstance(size, bool):
        found: int | None = size
    else:
        match = _SIZE.fullmatch(size) if isinstance(size, str) else None
        unit = _UNITS.get(match[2].lower()) if match else None
        found = int(float(match[1]) * unit) if match and unit else None
    if found is None or found <= 0:
        raise BadQuery(f"{size!r} is no size. Write '64 MB', '512 KiB' or a positive number of bytes.")
    return found


@dataclass(frozen=True)
class Budget:
    """The memory that the state of a run may use; what does not fit goes to disk.

    `blocks` limits the blocks in memory further; `technique` is chosen by cost unless you say.
    """

    memory: int
    block_bytes: int = 64 * 1024
    blocks: int | None = None
    technique: Technique = "auto"

    def __post_init__(self) -> None:
        if self.technique not in {"auto", "1W", "2LA"}:
            raise BadQuery(f"the technique is {self.technique!r}. Give 'auto', '1W' or '2LA'.")
        if self.blocks is not None and self.blocks < 2:
            raise BadQuery(f"blocks is {self.blocks}. A window needs two: its oldest and its newest.")


Memory = str | int | Budget
"""How a user writes a budget."""


def budget_of(memory: Memory) -> Budget:
    """The budget that a user wrote."""
    return memory if isinstance(memory, Budget) else Budget(size_in_bytes(memory))
