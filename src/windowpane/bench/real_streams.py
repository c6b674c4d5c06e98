"""Real streams as updates of keys, from Parquet files; where the files are not, there are none."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windowpane.simulate.overload import Arrivals

FOLDER = "WINDOWPANE_DATA"
"""The environment variable that names the folder of the files."""
STREAMS = (
    ("wikiticker", "user"),
    ("wikiticker", "page"),
    ("us_flights", "origin"),
    ("lean_quotes", "exchange"),
)


def folder() -> Path:
    """Where the files are looked for: as the variable says, else in shared/data beside the repository."""
    named = os.environ.get(FOLDER)
    return Path(named) if named else Path(__file__).parents[4] / "shared" / "data"


def replays(most: int | None = None) -> dict[str, Arrivals]:
    """The streams that are here, or the first updates of each, by a name such as 'wikiticker by user'."""
    found = {}
    for name, column in STREAMS:
        path = folder() / f"{name}.parquet"
        if path.is_file():
            found[f"{name} by {column}"] = replay(path, column, most)
    return found


def replay(path: Path, column: str, most: int | None = None) -> Arrivals:
    """The updates of a file, or the first of them, in order of event time: seconds from the first on."""
    table = pq.read_table(path, columns=["ts", column]).slice(0, most)
    times = table["ts"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    ids = pc.dictionary_encode(table[column].combine_chunks(), "encode").indices.to_numpy()
    order = np.argsort(times, kind="stable")
    return Arrivals((times[order] - times.min()) / 1e6, ids[order].astype(np.int64), int(ids.max()) + 1)
