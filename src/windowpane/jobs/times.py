"""Rows of Arrow tables as Python values, and times as texts, also times that Python has none for.

Python knows the years 1 to 9999. A window that holds the first of them may begin in the year 0, and a stream
keeps rows of 146,000 years before 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

EARLIEST, LATEST = -4712, 294_276
"""The years that PostgreSQL holds in full: from 4713 BC on."""


@dataclass(frozen=True)
class FarTime:
    """A time or a date beyond Python's years, as a text; `zoned`: it is in UTC, and no wall clock's."""

    text: str
    zoned: bool = False

    def __str__(self) -> str:
        """As Python shows a time."""
        return self.text.removesuffix(".000000") + ("+00:00" if self.zoned else "")

    @property
    def year(self) -> int:
        """The year; 0 is the one before the year 1."""
        return int(self.text[: self.text.index("-", 1)])

    @property
    def counted(self) -> str:
        """As PostgreSQL reads it, for which the year before the year 1 is 1 BC."""
        rest = self.text[self.text.index("-", 1) :] + ("+00" if self.zoned else "")
        return f"{1 - self.year:04}{rest} BC" if self.year < 1 else f"{self.year:04}{rest}"


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as `to_pylist` gives them, with a `FarTime` for each time that Python has none for."""
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except OverflowError:
        columns = [[_value(scalar) for scalar in column] for column in table.columns]
        rows = [dict(zip(table.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    return rows


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except OverflowError:
        if isinstance(scalar, pa.StructScalar):
            return {name: _value(part) for name, part in scalar.items()}
        if isinstance(scalar, pa.ListScalar):
            return [_value(part) for part in scalar.values]
        return _far(scalar)


def _far(scalar: Any) -> FarTime:
    kind = scalar.type
    if pa.types.is_date(kind):
        return FarTime(str(pa.array([scalar]).cast(pa.date32()).to_numpy(zero_copy_only=False)[0]))
    moment = np.datetime64(scalar.value, kind.unit).astype("datetime64[us]")
    return FarTime(str(moment).replace("T", " "), kind.tz is not None)


def as_text(value: Any) -> str:
    """A time in UTC with microseconds, a date, or a decimal; times from the year 0 to 9999 sort as texts."""
    if isinstance(value, FarTime):
        return value.text
    if isinstance(value, datetime):
        plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return plain.isoformat(" ", "microseconds")
    return str(value)
