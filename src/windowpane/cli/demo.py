"""`windowpane demo`: a call center on Spark, or a market in one process where there is no Java."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    market: Annotated[
        bool, typer.Option("--market", help="A market in one process instead: needs no Java.")
    ] = False,
    serve: Annotated[bool, typer.Option("--serve", help="Keep running until Ctrl-C.")] = False,
    hours: Annotated[int, typer.Option(min=2, help="Hours of calls, two in each micro-batch.")] = 26,
    seconds: Annotated[float, typer.Option(help="How long the market takes on a terminal, about.")] = 8.0,
) -> None:
    """Show 144 figures of a call center over 24-hour windows, computed by Spark in one pass, live."""
    if market:
        if serve:
            raise typer.BadParameter("--serve is for the call center; leave --market out.")
        from windowpane.cli.demo_market import market_demo

        market_demo(seconds)
        return
    from windowpane.cli.demo_calls import calls_demo

    raise typer.Exit(calls_demo(hours, serve=serve))
