"""Sliding VWAP by symbol over ticks that come out of order: the price traders paid, weighted by volume."""

import windowpane as wp
from windowpane.simulate import MarketSpec, StreamSpec, market

# Two minutes of four symbols; every fifth tick comes late, by up to two seconds.
symbols = ("ALFA", "BRVO", "CHRL", "DLTA")
ticks = market(MarketSpec(symbols, StreamSpec(rows=24_000, rate=200, keys=4, disorder=0.2)))

bids = wp.stream(ticks, time="ts", keys="symbol", delay="2 s")
query = bids.window(wp.sliding("1 min", "10 s")).agg(
    wp.count(),
    vwap=wp.weighted_mean("price", "volume"),
    low=wp.min("price"),
    high=wp.max("price"),
)
print(query.explain())

run = query.run()
print(run.counts)  # every tick is accounted for; none is late, since the delay covers the disorder

for row in run.table.to_pylist():
    if row["symbol"] == "ALFA":
        window = row["window"]
        print(
            f"{window['start']:%H:%M:%S} to {window['end']:%H:%M:%S}  {row['count']:>5} ticks  "
            f"{row['vwap']:.3f} ({row['low']:.2f} to {row['high']:.2f})"
        )
