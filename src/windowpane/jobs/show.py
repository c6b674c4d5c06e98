"""Answers and progress as text: tables for a terminal, lines for a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windowpane.core.results import flattened
from windowpane.jobs.times import FarTime, as_text, rows_of
from windowpane.spark import counts_of
from windowpane.spark.outputs import COUNTS
from windowpane.spark.session import ANSWERED, ARRIVED

_WIDTH = 160
REASONS = ("null_time", "out_of_range", "too_far_ahead", "null_required")
"""Why rows are rejected."""


@dataclass(frozen=True)
class Progress:
    """What a query's last micro-batch did; `late` and `rejected` are rows since the job started."""

    query: str
    batch: int = -1
    rate: float = 0.0
    rows: int = 0
    seconds: float = 0.0
    state_bytes: int = 0
    answers: int | None = None
    newest: str | None = None
    lag: str | None = None
    late: int | None = None
    rejected: int | None = None


def progress_of(
    name: str,
    last: Mapping[str, Any] | None,
    before: Progress | None = None,
    told: Mapping[str, Any] | None = None,
) -> Progress:
    """The progress that Spark reports of one micro-batch, after that of the one before.

    `told` is what its sink found out of the answers, where Spark does not report it.
    """
    before = before or Progress(name)
    if last is None:
        return before
    answered, counts = _observed(last, ANSWERED) or told or {}, counts_of(last)
    return Progress(
        name,
        int(last["batchId"]),
        float(last.get("inputRowsPerSecond") or 0.0),
        int(last.get("numInputRows") or 0),
        float(last.get("batchDuration") or 0) / 1_000,
        before.state_bytes if (held := counts.get("state_bytes")) is None else held,
        answered.get("rows"),
        answered.get("newest") or before.newest,
        _lag(_observed(last, ARRIVED), counts) or before.lag,
        _more(before.late, counts, "late"),
        _more(before.rejected, counts, *REASONS),
    )


def progress_of_all(name: str, counts: Mapping[str, int]) -> Progress:
    """The progress of a batch job: all rows at once."""
    rejected = sum(counts[reason] for reason in REASONS)
    rows = sum(counts[name] for name in COUNTS)  # every row is counted once
    late, answers = counts["late"], counts["answers"]
    return Progress(name, 0, rows=rows, answers=answers, late=late, rejected=rejected)


def _observed(last: Mapping[str, Any], name: str) -> dict[str, Any]:
    seen = (last.get("observedMetrics") or {}).get(name)
    return {} if seen is None else seen.asDict() if hasattr(seen, "asDict") else dict(seen)


def _lag(arrived: Mapping[str, Any], counts: Mapping[str, Any]) -> str | None:
    """How far the bound is behind the newest row that has a place, in the measure of the stream."""
    bound, newest = counts.get("bound"), counts.get("high")
    if bound is None or newest is None:
        return None
    behind = max(newest - bound, 0)
    return f"{behind:,}" if "number" in arrived else span(behind / 1e6) if "moment" in arrived else None


def _more(before: int | None, counts: Mapping[str, Any], *names: str) -> int | None:
    there = [int(counts[name] or 0) for name in names if name in counts]
    return (before or 0) + sum(there) if there else before


HEADINGS = ("query", "batch", "rows/s", "rows", "seconds", "answers", "until", "lag", "late", "bad", "MB")


def cells(progress: Progress) -> tuple[str, ...]:
    """The progress under the headings."""
    return (
        progress.query,
        "-" if progress.batch < 0 else str(progress.batch),
        f"{progress.rate:,.0f}",
        f"{progress.rows:,}",
        f"{progress.seconds:.1f}",
        "-" if progress.answers is None else f"{progress.answers:,}",
        "-" if progress.newest is None else progress.newest.split()[-1][:8],
        progress.lag or "-",
        "-" if progress.late is None else f"{progress.late:,}",
        "-" if progress.rejected is None else f"{progress.rejected:,}",
        f"{progress.state_bytes / 1e6:.1f}",
    )


def span(seconds: float) -> str:
    """A length of time in its largest unit.

    >>> span(7300)
    '2 h'
    """
    for unit, size in (("y", 31_557_600), ("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


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


def table_text(answers: pa.Table, title: str, rows: int, total: int) -> str:
    """The first rows of answers as a text, and how many more of the total there are."""
    windows = "window" in answers.schema.names and pa.types.is_struct(answers.schema.field("window").type)
    flat = flattened(answers) if windows else answers
    table = Table(title=title, title_justify="left")
    for name in flat.schema.names:
        table.add_column(Text(name), justify="left", overflow="fold")
    for row in rows_of(flat.slice(0, rows)):
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    out = StringIO()
    console = Console(file=out, width=_WIDTH)
    console.print(table)
    if total > rows:
        console.print(f"and {total - rows:,} more rows")
    return out.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, datetime | FarTime):
        return as_text(value).removesuffix(".000000")
    return "null" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
