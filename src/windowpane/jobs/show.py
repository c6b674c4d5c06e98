"""Answers and progress as text: tables for a terminal, lines for a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windowpane.jobs.database import as_text, flattened

_WIDTH = 160


@dataclass(frozen=True)
class Progress:
    """What a query's last micro-batch did, and what it has done since the job started."""

    query: str
    batch: int = -1
    rate: float = 0.0
    rows: int = 0
    seconds: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    answers: int | None = None
    newest: str | None = None

    @property
    def lag(self) -> float | None:
        """Seconds from the end of the newest answered window to now; None for what is no time."""
        if self.newest is None:
            return None
        try:
            end = datetime.fromisoformat(self.newest)
        except ValueError:
            return None
        return (datetime.now(UTC) - (end if end.tzinfo else end.replace(tzinfo=UTC))).total_seconds()


def progress_of(name: str, last: Mapping[str, Any] | None, observed: str) -> Progress:
    """The progress that Spark reports."""
    if last is None:
        return Progress(name)
    state = last.get("stateOperators") or []
    seen = (last.get("observedMetrics") or {}).get(observed)
    seen = {} if seen is None else seen.asDict() if hasattr(seen, "asDict") else dict(seen)
    return Progress(
        name,
        int(last["batchId"]),
        float(last.get("inputRowsPerSecond") or 0.0),
        int(last.get("numInputRows") or 0),
        float(last.get("batchDuration") or 0) / 1_000,
        sum(int(s["numRowsTotal"]) for s in state),
        sum(int(s["memoryUsedBytes"]) for s in state),
        seen.get("rows"),
        seen.get("newest"),
    )


HEADINGS = ("query", "batch", "rows/s", "rows", "seconds", "answers", "until", "lag", "state", "MB")


def cells(progress: Progress) -> tuple[str, ...]:
    """The progress under the headings."""
    lag = progress.lag
    return (
        progress.query,
        "-" if progress.batch < 0 else str(progress.batch),
        f"{progress.rate:,.0f}",
        f"{progress.rows:,}",
        f"{progress.seconds:.1f}",
        "-" if progress.answers is None else f"{progress.answers:,}",
        "-" if progress.newest is None else progress.newest.split()[-1][:8],
        "-" if lag is None else _span(lag),
        f"{progress.state_rows:,}",
        f"{progress.state_bytes / 1e6:.1f}",
    )


def _span(seconds: float) -> str:
    """A length of time in its largest unit.

    >>> _span(7300)
    '2 h'
    """
    for unit, size in (("y", 31_557_600), ("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s"


def progress_table(all_: Sequence[Progress], title: str) -> Table:
    """The display while a job runs."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 0))
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for progress in all_:
        table.add_row(*cells(progress))
    return table


def progress_line(progress: Progress) -> str:
    """The same as a line, for a log."""
    return "  ".join(f"{h}={c}" for h, c in zip(HEADINGS, cells(progress), strict=True) if c != "-")


def table_text(answers: pa.Table, title: str, rows: int) -> str:
    """The first rows of answers as a text."""
    flat = flattened(answers)
    table = Table(title=title, title_justify="left")
    for name in flat.schema.names:
        table.add_column(Text(name), justify="left", overflow="fold")
    for row in flat.slice(0, rows).to_pylist():
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    out = StringIO()
    console = Console(file=out, width=_WIDTH)
    console.print(table)
    if flat.num_rows > rows:
        console.print(f"and {flat.num_rows - rows:,} more rows")
    return out.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return as_text(value).removesuffix(".000000")
    return "null" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
