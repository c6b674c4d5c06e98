"""`windowpane demo`: queries over a synthetic market, live, in one process."""

from __future__ import annotations

import time
from typing import Annotated

import typer


def demo(
    seconds: Annotated[float, typer.Option(help="How long to run, about.")] = 10.0,
) -> None:
    """Show the volume-weighted mean price of each symbol over out-of-order ticks, live."""
    _ = (seconds, time)
