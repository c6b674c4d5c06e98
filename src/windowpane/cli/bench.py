"""`windowpane bench`: run a benchmark, as a table for people or as one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from windowpane.bench.report import Report, Row
    from windowpane.bench.runner import Bench


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
        for entry in BENCHES:
            typer.echo(f"{entry.name:<12} {entry.about}")
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
    console = Console()
    console.print(_rows_table(f"{entry.name}: {entry.about}", report.rows))
    claims = Table(title="claims", title_justify="left")
    for heading in ("claim", "value", "bar", "holds"):
        claims.add_column(heading, justify="left" if heading == "claim" else "right")
    for claim in report.claims:
        verdict = "[green]yes[/]" if claim.holds else "[red]no[/]"
        claims.add_row(claim.name, _text(claim.value), _text(claim.bar), verdict)
    console.print(claims)
    for words in report.falls_short:
        console.print(f"falls short: {words}", style="yellow", markup=False)


def _rows_table(title: str, rows: Sequence[Row]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in rows[0] if rows else ():
        table.add_column(heading.replace("_", " "), justify="right")
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
            return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
        case _:
            return str(value)
