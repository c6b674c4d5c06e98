"""Market ticks: a random walk of prices for each symbol, out of order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from windowpane.simulate.spec import SECOND, StreamSpec
from windowpane.simulate.stream import arrivals, zipf_keys

SYMBOLS = ("ALFA", "BRVO", "CHRL", "DLTA", "ECHO", "FXTR", "GOLF", "HTEL")


@dataclass(frozen=True, slots=True)
class MarketSpec:
    """Ticks (ts, symbol, price, volume). `stream` gives the rate, the skew and the disorder."""

    symbols: tuple[str, ...] = SYMBOLS
    stream: StreamSpec = field(
        default_factory=lambda: StreamSpec(keys=len(SYMBOLS), skew=0.8, disorder=0.2, max_delay=2 * SECOND)
    )

    def __post_init__(self) -> None:
        if len(self.symbols) != self.stream.keys:
            raise ValueError(
                f"MarketSpec: {len(self.symbols)} symbols, but the stream has {self.stream.keys} keys. "
                "Give as many symbols as keys."
            )


def market(spec: MarketSpec) -> Iterator[pa.RecordBatch]:
    """The ticks in arrival order. A symbol's price moves by about 1% in a thousand of its ticks."""
    stream = spec.stream
    rng = np.random.default_rng([stream.seed, *b"market"])
    symbol = zipf_keys(stream)
    price = np.empty(stream.rows)
    for key in range(stream.keys):
        own = np.flatnonzero(symbol == key)
        price[own] = (20 + 15 * key) * np.exp(np.cumsum(rng.normal(0, 0.0003, len(own))))
    volume = rng.integers(1, 500, stream.rows)
    times, order = arrivals(stream)
    names = pa.DictionaryArray.from_arrays(pa.array(symbol[order].astype(np.int32)), list(spec.symbols))
    whole = pa.RecordBatch.from_pydict(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
            "symbol": names,
            "price": np.round(price[order], 2),
            "volume": volume[order],
        }
    )
    for at in range(0, stream.rows, stream.batch_rows):
        yield whole.slice(at, stream.batch_rows)
