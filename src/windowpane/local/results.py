"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from windowpane.values.errors import BadQuery


@dataclass(frozen=True)
class Counts:
    """Rows, exact: kept + late + rejected + duplicates + markers = input."""

    input: int = 0
    kept: int = 0
    late: int = 0
    markers: int = 0
    rejects: dict[str, int] = field(default_factory=dict)
    duplicates: int = 0

    @property
    def rejected(self) -> int:
        """Rows that could not be placed, for whatever reason."""
        return sum(self.rejects.values())

    def __add__(self, other: Counts) -> Counts:
        reasons = {**self.rejects}
        for reason, rows in other.rejects.items():
            reasons[reason] = reasons.get(reason, 0) + rows
        return Counts(
            self.input + other.input,
            self.kept + other.kept,
            self.late + other.late,
            self.markers + other.markers,
            reasons,
            self.duplicates + other.duplicates,
        )


@dataclass(frozen=True)
class Step:
    """What one push brought: the answers of each query, and the rows that were not taken in."""

    tables: dict[str, pa.Table]
    late: pa.Table
    rejects: pa.Table
    counts: Counts


class Result(Step):
    """What a whole run brought."""

    @property
    def table(self) -> pa.Table:
        """The answers, where there was one query."""
        if len(self.tables) != 1:
            raise BadQuery(
                f"the run had the queries {', '.join(self.tables)}. Ask for one: result.tables[name]."
            )
        return next(iter(self.tables.values()))
