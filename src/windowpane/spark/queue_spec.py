"""What an update queue on Spark is to do, and what it tells of each micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from windowpane.core.keys import KeyIndex
from windowpane.values.freshness import Policy

Function = Callable[[pd.DataFrame], pd.DataFrame]
SWITCH = "switch"
STANDS_FOR = "windowpane rows"
"""A column of what tasks send: how many rows of its key a row stands for."""


@dataclass(frozen=True)
class QueueSpec:
    """An update queue with the function behind it; `budget`: seconds for each bucket and micro-batch.

    The policy SWITCH keeps every row while the function keeps up, and else the newest of each key.
    """

    name: str
    keys: tuple[str, ...]
    time: str
    policy: str
    budget: float
    function: Function
    schema: pa.Schema

    @property
    def keeps_all(self) -> bool:
        """Whether tasks must send every row, not only the newest of each key."""
        return self.policy == SWITCH or Policy(self.policy).keeps_all


@dataclass
class Notes:
    """What happened in one micro-batch: rows that came, were served, overwritten or shed, or came too old.

    Rows that are too far ahead are no updates. `staleness_us` is the sum over the keys of their average
    application staleness.
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


def staleness_schema(spec: QueueSpec, index: KeyIndex) -> pa.Schema:
    """The columns of the staleness of keys: averages in seconds since the key's queue began."""
    keys = [pa.field(name, kind) for name, kind in zip(spec.keys, index.types, strict=True)]
    return pa.schema([*keys, ("queue_staleness", pa.float64()), ("application_staleness", pa.float64())])
