"""The demo without Spark: a query over a synthetic market, live, in one process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from windowpane.local import Counts

MINUTES = 30
"""How much event time the demo replays."""
FRAMES = 120
"""How many batches it comes in."""


def market_demo(seconds: float) -> None:
    """Show the volume-weighted mean price of each symbol over out-of-order ticks, live."""
    import windowpane as wp

    console = Console()
    batches = list(_ticks())
    bids = wp.stream(schema=batches[0].schema, time="ts", keys=["symbol"], delay="2 s")
    out = bids.window(wp.sliding("10 min", "1 s")).agg(
        wp.count(), vwap=wp.weighted_mean("price", "volume"), low=wp.min("price"), high=wp.max("price")
    )
    console.print(
        f"{MINUTES} minutes of synthetic ticks, 20% of them out of order by up to 3 s\n", style="bold"
    )
    console.print(out.explain(), markup=False, highlight=False, soft_wrap=True)

    runner = wp.start(out)
    latest: dict[str, dict[str, Any]] = {}
    pause = seconds / FRAMES if console.is_terminal else 0.0
    results, spent = 0, 0.0
    with Live(console=console, auto_refresh=False) as live:
        for batch in [*batches, None]:
            before = time.process_time()
            step = runner.close() if batch is None else runner.push(batch)
            took = time.process_time() - before
            (table,) = step.tables.values()
            results, spent = results + table.num_rows, spent + took
            if batch is not None:  # the end drains windows that are no longer full
                latest |= _newest(table)
            live.update(_panel(latest), refresh=True)
            time.sleep(max(0.0, pause - took))
    _close(console, runner.counts, results, spent)


def _ticks() -> Iterator[pa.RecordBatch]:
    """The market's ticks, three of them without a time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from windowpane.simulate import MarketSpec, StreamSpec, market
    from windowpane.simulate.market import SYMBOLS

    rows = MINUTES * 60 * 2_000
    stream = StreamSpec(
        rows=rows,
        rate=2_000,
        keys=len(SYMBOLS),
        skew=0.8,
        disorder=0.2,
        max_delay=3_000_000,
        batch_rows=rows // FRAMES,
    )
    for number, batch in enumerate(market(MarketSpec(stream=stream))):
        broken = pa.array([number in {20, 40, 60} and row == 0 for row in range(batch.num_rows)])
        yield batch.set_column(0, "ts", pc.if_else(broken, None, batch["ts"]))


def _newest(table: pa.Table) -> dict[str, dict[str, Any]]:
    """The result with the last window of each symbol."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return {row["symbol"]: row for row in sorted(rows, key=lambda row: row["window"]["end"])}


def _panel(latest: dict[str, dict[str, Any]]) -> Table:
    """The newest result of each symbol."""
    table = Table(title="the last 10 minutes, every second", title_justify="left")
    for heading in ("symbol", "until", "ticks", "vwap", "low", "high"):
        table.add_column(heading, justify="left" if heading == "symbol" else "right")
    for symbol, row in sorted(latest.items()):
        table.add_row(
            symbol,
            f"{row['window']['end']:%H:%M:%S}",
            f"{row['count']:,}",
            *(f"{row[name]:.2f}" for name in ("vwap", "low", "high")),
        )
    return table


def _close(console: Console, counts: Counts, results: int, spent: float) -> None:
    """What became of every tuple, and what it cost."""
    console.print()
    console.print(
        f"{results:,} results from {counts.input:,} ticks in {spent:.1f} s of CPU time", highlight=False
    )
    console.print(
        f"kept {counts.kept:,} + late {counts.late:,} + rejected {counts.rejected:,} = {counts.input:,}; "
        "late ticks came more than 2 s behind, rejected ones have no time",
        highlight=False,
        soft_wrap=True,
    )
