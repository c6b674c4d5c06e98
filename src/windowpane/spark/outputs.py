"""Outputs: what buckets give, as payloads tagged with the name of their output, and frames made of them.

One pass over a stream has several outputs with columns of their own (a table per query, late rows,
rejects), but a DataFrame has one schema. So a bucket gives rows of (output, payload), and one row of
counts, which Spark observes; a last step without a shuffle turns the payloads of one output into its rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses
from pyspark.sql.types import StructType

from windowpane.core.arrays import ALWAYS, NEVER
from windowpane.spark.bucket import Counts
from windowpane.spark.envelope import read_batches, write_batch

COUNTS = ("kept", "late", "markers", "null_time", "out_of_range", "too_far_ahead")
TAGGED_DDL = (
    "output string, payload binary, answers bigint, "
    + ", ".join(f"{name} bigint" for name in COUNTS)
    + ", bound bigint, state_bytes bigint"
)
OBSERVED = "windowpane"
_MOST_ROWS = 1 << 16
"""Rows in one payload."""


def tagged(
    tables: Mapping[str, list[pa.Table]], counts: Counts, bound: int, state_bytes: int
) -> pd.DataFrame:
    """The outputs of one bucket in one micro-batch, in the columns of TAGGED_DDL."""
    names: list[str | None] = []
    payloads: list[bytes | None] = []
    answers = 0
    for name, found in tables.items():
        for table in found:
            answers += table.num_rows
            for at in range(0, table.num_rows, _MOST_ROWS):
                names.append(name)
                payloads.append(write_batch(table.slice(at, _MOST_ROWS).combine_chunks()))
    noted = {"answers": answers, **asdict(counts), "bound": bound, "state_bytes": state_bytes}
    blank = [None] * len(names)
    columns = {name: pd.array([*blank, value], dtype="Int64") for name, value in noted.items()}
    return pd.DataFrame({"output": [*names, None], "payload": [*payloads, None], **columns})


def observed(frame: DataFrame, token: str) -> DataFrame:
    """The tagged frame, with its counts told in the progress of the streaming query."""
    sums = [F.sum(name).alias(name) for name in ("answers", *COUNTS, "state_bytes")]
    return frame.observe(f"{OBSERVED} {token}", *sums, F.max("bound").alias("bound"))


def counts_of(progress: Any) -> dict[str, int | None]:
    """The counts of a micro-batch from the progress that Spark reports of it.

    Rows `kept`, `late`, `markers` and rejected by reason, the `answers`, the `bound` (None: nothing is
    promised yet, or the stream ended) and `state_bytes`. Several windowpane frames in one query are summed.
    """
    document = json.loads(progress.json) if hasattr(progress, "json") else progress
    found: dict[str, int | None] = {}
    for name, metrics in (document.get("observedMetrics") or {}).items():
        if name.startswith(OBSERVED):
            for key, value in metrics.items():
                if key == "bound":
                    found[key] = value if value not in (None, NEVER, ALWAYS) else None
                else:
                    found[key] = (found.get(key) or 0) + (value or 0)
    return found


def _opened(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for payload in batch.column(0):
            yield from read_batches(payload.as_py())


def output(frame: DataFrame, name: str, schema: StructType) -> DataFrame:
    """The rows of one output of a tagged frame."""
    mine = frame.where((F.col("output") == name) & F.col("payload").isNotNull()).select("payload")
    return mine.mapInArrow(_opened, schema)


@dataclass(frozen=True)
class Outputs:
    """Several outputs of one pass: a table for each query by its name, and `late` and `rejects` if wanted.

    `frame` is a DataFrame of tagged payloads, to be written by a `foreachBatch` that `split`s each batch, or
    that `foreach` made.
    """

    frame: DataFrame
    schemas: Mapping[str, StructType]

    def split(self, batch: DataFrame | None = None) -> dict[str, DataFrame]:
        """The outputs of a micro-batch (of a static frame: of all) as DataFrames by name."""
        whole = self.frame if batch is None else batch
        return {name: output(whole, name, schema) for name, schema in self.schemas.items()}

    def foreach(self, write: Callable[[str, DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
        """A function for `foreachBatch`: it calls `write(name, rows, batch_id)` for every output."""

        def each(batch: DataFrame, batch_id: int) -> None:
            batch.persist()
            try:
                for name, rows in self.split(batch).items():
                    write(name, rows, batch_id)
            finally:
                batch.unpersist()

        return each
