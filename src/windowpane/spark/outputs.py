"""Outputs: what buckets give, as payloads tagged with the name of their output, and frames made of them.

One pass over a stream has several outputs with columns of their own (a table per query, late rows,
rejects), but a DataFrame has one schema. So a bucket gives rows of (output, payload), and one row of
counts, which Spark observes; a last step without a shuffle turns the payloads of one output into its rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses
from pyspark.sql.types import StructType

from windowpane.core.arrays import ALWAYS, NEVER
from windowpane.spark.envelope import read_batches
from windowpane.spark.worker import settled

COUNTS = (
    *("kept", "late", "markers", "null_time", "out_of_range", "too_far_ahead", "null_required"),
    "duplicates",
)
SUMMED = ("answers", *COUNTS, "state_bytes")
LARGEST = ("bound", "high")
OBSERVED = "windowpane"
OVER_ANSWERS, FOR_ANOTHER = " over answers", " for another query"
"""Ends of names: of a frame whose rows are another's answers, and of one whose answers are another's rows."""


def tagged_ddl(notes: Sequence[str]) -> str:
    """The columns of a tagged frame that has these notes."""
    return ", ".join(["output string", "payload binary", *(f"{name} bigint" for name in notes)])


NOTES = (*SUMMED, *LARGEST)
TAGGED_DDL = tagged_ddl(NOTES)
TEXT = "notes"
"""The column of notes where they are one text."""
STALEST = "stalest"
"""The column of the texts of a bucket's stalest keys, a line each; they begin with digits to sort them by."""


def observed(
    frame: DataFrame,
    token: str,
    summed: Sequence[str] = SUMMED,
    largest: Sequence[str] = LARGEST,
    *more: Column,
) -> DataFrame:
    """The tagged frame, with its notes told in the progress of the streaming query."""
    sums = [F.sum(name).alias(name) for name in summed]
    most = [F.max(name).alias(name) for name in largest]
    return frame.observe(f"{OBSERVED} {token}", *sums, *most, *more)


def stalest_column(keys: int) -> Column:
    """The texts of the stalest keys over all buckets, to be observed."""
    texts = F.flatten(F.collect_list(F.split(STALEST, "\n")))
    return F.slice(F.sort_array(texts, asc=False), 1, keys).alias(STALEST)


def observed_texts(frame: DataFrame, token: str) -> DataFrame:
    """The same where the notes of a bucket are one text, the numbers in the order of NOTES.

    One aggregate instead of twelve: Spark writes code for them anew in every task.
    """
    return frame.observe(f"{OBSERVED} {token}", F.collect_list(TEXT).alias(",".join(NOTES)))


def counts_of(progress: Any) -> dict[str, int | None]:
    """The counts of a micro-batch from the progress that Spark reports of it.

    Rows `kept`, `late`, `duplicates`, `markers` and rejected by reason, the `answers`, the `bound` (None:
    nothing is promised yet, or the stream ended), `high`, the largest time that has a place, and
    `state_bytes`; of update queues what `Latest` tells. Several windowpane frames in one query are summed;
    the `bound` is the smallest of them, below which all of them have answered, and `high` the largest. Of
    chained queries the rows are those of the source, and the answers those of the last query; what became of
    answers on the way has the prefix `chained_`.
    """
    found: dict[str, int | None] = {}
    told: dict[str, list[int]] = {}
    for name, metrics in _own(progress).items():
        for note, value in _told(metrics):
            key = f"chained_{note}" if OVER_ANSWERS in name and note in COUNTS else note
            if key in ("answers", *LARGEST) and FOR_ANOTHER in name:
                continue
            if key in LARGEST:
                told.setdefault(key, []).extend(() if value is None else (value,))
            elif key == "oldest_us":
                found[key] = max(found.get(key) or 0, value or 0)
            else:
                found[key] = (found.get(key) or 0) + (value or 0)
    return found | {key: _of_all(key, values) for key, values in told.items()}


def _of_all(key: str, values: Sequence[int]) -> int | None:
    """The bound below which all frames have answered, or the largest time of any."""
    value = (min if key == "bound" else max)(values, default=None)
    return None if value in (NEVER, ALWAYS) else value


def stalest_of(progress: Any) -> list[dict[str, Any]]:
    """The keys of update queues that were stalest after a micro-batch, most first: ten at most of each plan.

    Each has the `queue`, the `key` by column, the `seconds` since its oldest update came that no result
    covers, and its `application_staleness`, the average since the queue began in its bucket. Texts are cut
    after a hundred letters; what JSON has no word for is a text.
    """
    texts = [text for metrics in _own(progress).values() for text in metrics.get(STALEST) or ()]
    return [json.loads(text.partition(" ")[2]) for text in sorted(texts, reverse=True)]


def _own(progress: Any) -> dict[str, Mapping[str, Any]]:
    """What windowpane's frames told in a progress that Spark reports."""
    document = json.loads(progress.json) if hasattr(progress, "json") else progress
    told = document.get("observedMetrics") or {}
    return {name: metrics for name, metrics in told.items() if name.startswith(OBSERVED)}


def counts_in(frame: DataFrame) -> dict[str, int]:
    """The counts of a static tagged frame, which has no progress that would tell them."""
    (row,) = frame.agg(*(F.sum(name).alias(name) for name in SUMMED)).collect()
    return {name: row[name] or 0 for name in SUMMED}


def _told(metrics: Mapping[str, Any]) -> Iterator[tuple[str, int | None]]:
    """The notes of a frame: as they are, or from a list with a text of each bucket."""
    for name, value in metrics.items():
        if name == STALEST:
            continue
        if not isinstance(value, list):
            yield name, value
            continue
        buckets = [[int(number) for number in text.split(",")] for text in value]
        for i, note in enumerate(name.split(",")):
            numbers = [numbers[i] for numbers in buckets]
            yield note, max(numbers, default=None) if note in LARGEST else sum(numbers)


def _opened(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for payload in batch.column(0):
            yield from read_batches(payload.as_py())
    settled()


def output(frame: DataFrame, name: str, schema: StructType) -> DataFrame:
    """The rows of one output of a tagged frame."""
    mine = frame.where((F.col("output") == name) & F.col("payload").isNotNull()).select("payload")
    return mine.mapInArrow(_opened, schema)


@dataclass(frozen=True)
class Outputs:
    """Several outputs of one pass: a table for each query by its name, and `late` and `rejects` if wanted.

    `frame` is a DataFrame of tagged payloads, to be written by the `foreachBatch` that `foreach` makes, or by
    one that persists each batch and `split`s it.
    """

    frame: DataFrame
    schemas: Mapping[str, StructType]

    def split(self, batch: DataFrame | None = None) -> dict[str, DataFrame]:
        """The outputs of a micro-batch (of a static frame: of all) as DataFrames by name.

        Persist a batch of which more than one output is used, or one output twice, before it is split: each
        use would compute the whole batch anew, and an update queue would call its function again and serve
        other keys. `foreach` does so.
        """
        whole = self.frame if batch is None else batch
        return {name: output(whole, name, schema) for name, schema in self.schemas.items()}

    def foreach(self, write: Callable[[str, DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
        """A function for `foreachBatch`: it calls `write(name, rows, batch_id)` for every output.

        The micro-batch is computed once, however often `write` uses the rows.
        """

        def each(batch: DataFrame, batch_id: int) -> None:
            batch.persist()
            try:
                for name, rows in self.split(batch).items():
                    write(name, rows, batch_id)
            finally:
                batch.unpersist()

        return each
