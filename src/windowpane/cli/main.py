"""The `windowpane` program: gathers the commands, and turns errors that a user can act on into one line."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console

from windowpane.cli.bench import bench
from windowpane.cli.demo import demo
from windowpane.cli.run import run
from windowpane.cli.simulate import simulate
from windowpane.cli.warm import warm
from windowpane.values.errors import WindowpaneError

app = typer.Typer(
    name="windowpane",
    help="Windowed queries over streams, on Apache Spark and in-process.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(demo)
app.command()(run)
app.command()(bench)
app.command()(simulate)
app.command()(warm)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"windowpane {version('windowpane')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Windowed queries over streams, on Apache Spark and in-process."""


def main() -> None:
    """Run the program. An error of windowpane's own is one line and exit status 2."""
    try:
        app()
    except WindowpaneError as error:
        Console(stderr=True).print(f"windowpane: {error}", style="red", markup=False)
        sys.exit(2)
