"""`windowpane bench`: run a benchmark, as a table for people or as one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from windowpane.bench.report import Claim, Report, Row, Scalar
    from windowpane.bench.runner import Bench

_POINT = ["figure", "series", "x", "value"]
"""The columns of rows that are points of figures."""
_WIDEST, _SHORT = 1_000, 40
"""Columns of the widest table that a pipe gets, and letters of what shares a line with others."""


def bench(
    name: Annotated[str | None, typer.Argument(help="Which benchmark; see --list.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Less data; done within a minute.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Run every benchmark.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the benchmarks and stop.")] = False,
    gb: Annotated[float | None, typer.Option(help="slidem: the largest window, in GB of tuples.")] = None,
    kills: Annotated[int | None, typer.Option(min=1, help="recovery: kills of each family.")] = None,
) -> None:
    """Run a benchmark. The exit status is 1 when one of its claims does not hold."""
    from windowpane.bench import BENCHES

    if listing:
        width = max(len(entry.name) for entry in BENCHES)
        for entry in BENCHES:
            typer.echo(f"{entry.name:<{width}}  {entry.about}")
        return
    if everything and as_json:
        raise typer.BadParameter("--json prints one object, so name one benchmark instead of --all.")
    given = {"gb": gb, "kills": kills}
    options = {option: value for option, value in given.items() if value is not None}
    reports = [_run(entry, as_json, quick, options) for entry in _chosen(BENCHES, name, everything)]
    if not all(report.holds for report in reports):
        raise typer.Exit(1)


def _chosen(benches: Sequence[Bench], name: str | None, everything: bool) -> list[Bench]:
    names = ", ".join(entry.name for entry in benches)
    if everything:
        return list(benches)
    if name is None:
        raise typer.BadParameter(f"name a benchmark: {names}; or give --all.")
    found = [entry for entry in benches if entry.name == name]
    if not found:
        raise typer.BadParameter(f"there is no benchmark {name!r}. There are: {names}.")
    return found


def _run(entry: Bench, as_json: bool, quick: bool, options: dict[str, float]) -> Report:
    strange = [name for name in options if name not in entry.options]
    if strange:
        raise typer.BadParameter(f"--{strange[0]} is not for {entry.name}.")
    if as_json:
        report = entry.run(quick, lambda _done, _total, _case: None, **options)
        typer.echo(json.dumps(report.document()))
        return report
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(entry.name, total=None)
        report = entry.run(
            quick,
            lambda done, total, case: bar.update(
                task, completed=done, total=total, description=f"{entry.name}: {case}"
            ),
            **options,
        )
    _show(entry, report)
    return report


def _show(entry: Bench, report: Report) -> None:
    from windowpane.bench.report import machine

    tables = [*_rows_tables(report.rows), _claims_table(report.claims)]
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width of its own
        console.width = max(console.width, *(_widths(console, table).maximum for table in tables))
    console.print(f"{entry.name}: {entry.about}", style="bold", markup=False)
    for given in (machine(), report.parameters):
        console.print(_told(given), style="dim", markup=False, highlight=False)
    width = console.width
    for table in tables:
        if _widths(console, table).maximum > width:
            _narrow(table)
        console.width = max(width, _widths(console, table).minimum)  # lines too long rather than figures cut
        console.print(table)
    console.width = width
    for words in report.falls_short:
        console.print(f"falls short: {words}", style="yellow", markup=False)


def _told(given: Row) -> str:
    """Short values in a line; what is said in words, which may have semicolons, on lines of its own."""
    told = [f"{name.replace('_', ' ')}: {_text(value)}" for name, value in given.items()]
    words = [text for text in told if len(text) > _SHORT or ";" in text]
    return "\n".join(["; ".join(text for text in told if text not in words), *words])


def _widths(console: Console, table: Table) -> Measurement:
    """How wide the table must be, and how wide it would like to be."""
    return console.measure(table, options=console.options.update(max_width=_WIDEST))


def _narrow(table: Table) -> None:
    """Less space between columns, and words in several lines; figures stay whole."""
    table.box, table.show_edge, table.padding = SIMPLE_HEAD, False, 0
    for column in table.columns:
        if column.justify == "right":
            column.header = str(column.header).replace(" ", "\n")
            column.no_wrap = True


def _claims_table(claims: Sequence[Claim]) -> Table:
    table = Table(title="claims", title_justify="left")
    for heading in ("claim", "value", "bar", "holds"):
        table.add_column(heading, justify="left" if heading == "claim" else "right")
    for claim in claims:
        verdict = "[green]yes[/]" if claim.holds else "[red]no[/]"
        bar = f"at {'most' if claim.at_most else 'least'} {_text(claim.bar)}"
        table.add_row(claim.name, _text(claim.value), bar, verdict)
    return table


def _rows_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """One table of all rows; of points of figures one for each figure, with a column for each x."""
    if not rows or list(rows[0]) != _POINT:
        yield _rows_table(None, rows)
        return
    figures: dict[Scalar, dict[Scalar, dict[Scalar, Scalar]]] = {}
    for row in rows:
        series = figures.setdefault(row["figure"], {})
        series.setdefault(row["series"], {})[row["x"]] = row["value"]
    for figure, points in figures.items():
        places = list(dict.fromkeys(x for line in points.values() for x in line))
        lines = [{"series": name} | {_text(x): line.get(x) for x in places} for name, line in points.items()]
        yield _rows_table(f"figure {figure}", lines)


def _rows_table(title: str | None, rows: Sequence[Row]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading, value in rows[0].items() if rows else ():
        table.add_column(heading.replace("_", " "), justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    return table


def _text(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool() | str():
            return str(value)
        case int() | float() if abs(value) >= 1_000_000:
            return f"{value / 1_000_000:,.3g} M"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
        case _:
            return str(value)
