"""`windowpane simulate`: write a seeded stream to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

_FORMATS = (".parquet", ".arrow", ".csv")


def simulate(
    out: Annotated[Path, typer.Argument(help="Where to write: a .parquet, .arrow or .csv file.")],
    rows: Annotated[int, typer.Option(help="How many tuples.")] = 1_000_000,
    rate: Annotated[int, typer.Option(help="Tuples per second of event time.")] = 2_000,
    keys: Annotated[int, typer.Option(help="How many keys.")] = 1,
    skew: Annotated[float, typer.Option(help="Zipf exponent of the keys; 0 is uniform.")] = 0.0,
    disorder: Annotated[float, typer.Option(help="The fraction of tuples that arrive late.")] = 0.0,
    max_delay: Annotated[str, typer.Option(help="The greatest delay of a late tuple.")] = "2 s",
    distinct: Annotated[int, typer.Option(help="How many distinct values.")] = 1_000,
    gaps_per_minute: Annotated[int, typer.Option(help="Silences that separate sessions.")] = 0,
    seed: Annotated[int, typer.Option(help="Another seed is another stream.")] = 0,
) -> None:
    """Write a synthetic stream of (ts, key, value), in arrival order, to a file."""
    from windowpane.simulate import StreamSpec, generate
    from windowpane.values.durations import microseconds

    if out.suffix not in _FORMATS:
        raise typer.BadParameter(f"{out.name!r} ends in none of {', '.join(_FORMATS)}.")
    try:
        spec = StreamSpec(
            rows=rows,
            rate=rate,
            keys=keys,
            skew=skew,
            disorder=disorder,
            max_delay=microseconds(max_delay),
            distinct=distinct,
            gaps_per_minute=gaps_per_minute,
            seed=seed,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    _write(out, list(generate(spec)))
    typer.echo(f"wrote {rows:,} tuples to {out}")


def _write(out: Path, batches: list[Any]) -> None:
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    from windowpane.simulate.stream import SCHEMA

    writers: dict[str, Callable[[Any, Path], object]] = {
        ".parquet": parquet.write_table,
        ".arrow": feather.write_feather,
        ".csv": csv.write_csv,
    }
    writers[out.suffix](pa.Table.from_batches(batches, schema=SCHEMA), out)
