"""What a benchmark hands back: rows of measurements and claims about them, in one format for all."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

Scalar = str | int | float | bool | None
Row = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Claim:
    """A measured value and the bar that it must reach (or, with `at_most`, not exceed)."""

    name: str
    value: float
    bar: float
    at_most: bool = False

    @property
    def holds(self) -> bool:
        """Whether the value is on the right side of its bar; a value that is no number never is."""
        return self.value <= self.bar if self.at_most else self.value >= self.bar


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one benchmark; `falls_short` says what was aimed at and is not claimed, and why."""

    bench: str
    parameters: Row
    rows: Sequence[Row]
    claims: Sequence[Claim] = field(default=())
    falls_short: Sequence[str] = field(default=())

    @property
    def holds(self) -> bool:
        """Whether every claim does."""
        return all(claim.holds for claim in self.claims)

    def document(self) -> dict[str, object]:
        """The object that `windowpane bench NAME --json` prints."""
        claims = [{"name": c.name, "value": c.value, "bar": c.bar, "holds": c.holds} for c in self.claims]
        short = {"falls_short": "; ".join(self.falls_short)} if self.falls_short else {}
        return {
            "bench": self.bench,
            "machine": machine(),
            "parameters": {**self.parameters, **short},
            "rows": [dict(row) for row in self.rows],
            "claims": claims,
        }


def machine() -> dict[str, Scalar]:
    """What the figures were measured on."""
    versions = {name: version(name) for name in ("numpy", "numba", "pyarrow")}
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        **versions,
    }


def _cpu() -> str:
    """The model name where the system tells it, else the architecture."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
