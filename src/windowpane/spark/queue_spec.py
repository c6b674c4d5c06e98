"""What an update queue on Spark is to do, and what it tells of each micro-batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from windowpane.core.arrays import Floats, Ints
from windowpane.core.columns import read_ties
from windowpane.core.keys import KeyIndex
from windowpane.core.upstream.staleness import Staleness
from windowpane.query import STALENESS
from windowpane.spark.newest import Order
from windowpane.values.freshness import SWITCH, Policy

Function = Callable[[pd.DataFrame], pd.DataFrame]
MOST_STALE, _DIGITS, _LETTERS = 10, 16, 100
"""Keys that are told of in the progress of a query, digits of their microseconds, letters of their values."""

TOLD = 10_000
"""Keys that wait whose staleness is told after each micro-batch: more would take as long as all the rest."""


@dataclass(frozen=True)
class QueueSpec:
    """An update queue with the function behind it; `budget`: its seconds in one bucket and micro-batch.

    The policy SWITCH keeps every row while the function keeps up, and else the newest of each key. `ties` is
    the column that orders rows of equal time; `required` ones have no nulls; `zone` is the session's.
    """

    name: str
    keys: tuple[str, ...]
    time: str
    policy: str
    budget: float
    function: Function
    schema: pa.Schema
    ties: str | None = None
    required: tuple[str, ...] = ()
    zone: str = "UTC"

    @property
    def keeps_all(self) -> bool:
        """Whether tasks must send every row, not only the newest of each key."""
        return self.policy == SWITCH or Policy(self.policy).keeps_all

    def order(self, rows: pa.Table | pa.RecordBatch, time: Ints) -> Order:
        """What tells the newer of two rows that have these times."""
        return (time,) if self.ties is None else (time, read_ties(rows.column(self.ties), self.ties))


@dataclass
class Notes:
    """What happened in one micro-batch: rows that came, were served, overwritten or shed, or came too old.

    Rows that are too far ahead are no updates. `staleness_us` is the sum over the keys of their average
    application staleness. `stalest` has a text for each of the keys that are stalest now: the microseconds in
    sixteen digits, so that texts sort by them, and the queue, the key, the seconds and the average as JSON.
    """

    updates: int = 0
    served: int = 0
    lost: int = 0
    outdated: int = 0
    too_far_ahead: int = 0
    waiting: int = 0
    keys: int = 0
    staleness_us: int = 0
    oldest_us: int = 0
    stalest: tuple[str, ...] = ()

    def numbers(self) -> dict[str, int]:
        """All but the texts."""
        return {name: value for name, value in asdict(self).items() if isinstance(value, int)}


def staleness_schema(spec: QueueSpec, index: KeyIndex) -> pa.Schema:
    """The columns of the staleness of keys: averages in seconds since the bucket's queue began, and now."""
    keys = [pa.field(name, kind) for name, kind in zip(spec.keys, index.types, strict=True)]
    return pa.schema([*keys, *(pa.field(name, pa.float64()) for name in STALENESS)])


def staleness_table(
    spec: QueueSpec, index: KeyIndex, stale: Staleness, served: Ints, ages: Floats
) -> pa.Table:
    """The staleness of keys that were served or are stale now; of these, if they are too many, the stalest.

    `ages` is by key: for how long it has been stale, less than nothing where it is not.
    """
    ids = np.flatnonzero(ages > -np.inf)
    if len(ids) > TOLD:
        ids = ids[np.argpartition(-ages[ids], TOLD)[:TOLD]]
    ids = np.union1d(served, ids)
    numbers = stale.queue[ids], stale.application[ids], np.maximum(ages[ids], 0.0)
    columns = [*index.values(ids), *map(pa.array, numbers)]
    return pa.Table.from_arrays(columns, schema=staleness_schema(spec, index))


def stalest_keys(spec: QueueSpec, table: pa.Table) -> tuple[str, ...]:
    """The keys of a table of staleness that have been stale for longest, as `Notes` tells them."""
    stale, averages = (table[name].to_numpy() for name in ("stale_for", "application_staleness"))
    some = np.argsort(-stale, kind="stable")[:MOST_STALE]
    some = some[stale[some] > 0.0]
    keys = table.select(list(spec.keys)).take(pa.array(some)).to_pylist()
    numbers = zip(stale[some].tolist(), averages[some].tolist(), strict=True)
    return tuple(_told(spec.name, key, *both) for key, both in zip(keys, numbers, strict=True))


def _told(queue: str, key: dict[str, Any], seconds: float, average: float) -> str:
    short = {name: value[:_LETTERS] if isinstance(value, str) else value for name, value in key.items()}
    told = {"queue": queue, "key": short, "seconds": seconds, "application_staleness": average}
    return f"{int(seconds * 1e6):0{_DIGITS}} {json.dumps(told, default=lambda v: str(v)[:_LETTERS])}"
