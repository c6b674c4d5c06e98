"""Control: punctuation from outside the stream, by hand or by the clock, as envelopes beside the data's.

A control folder is read as a stream of small files. What is put there is part of the stream from then on: a
restart reads it again where it stood.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

from windowpane.core.arrays import ALWAYS
from windowpane.core.measure import as_measure
from windowpane.spark.envelope import ENVELOPE_DDL
from windowpane.spark.pack import announced
from windowpane.spark.seen import Seen
from windowpane.values.errors import BadQuery
from windowpane.values.paths import local_path


def punctuate(folder: str | Path, bound: int | datetime | date) -> None:
    """Promise a running stream, through its control folder, that no later row is below `bound`.

    An int is in the measure of the stream: microseconds since 1970 where its time is a timestamp.
    """
    # checked here: of anything but an int64 Spark's reader makes a null, and no window would ever close
    measure = as_measure(bound, "the stream's time")
    path = _folder(folder)
    path.mkdir(parents=True, exist_ok=True)
    name = uuid.uuid4().hex
    hidden = path / f".{name}"
    hidden.write_text(json.dumps({"bound": measure}), "utf-8")
    hidden.rename(path / f"{name}.json")  # all at once: Spark never sees half a file, nor hidden ones


def finish(folder: str | Path) -> None:
    """End a stream through its control folder: every window comes out, and any later row is late."""
    punctuate(folder, int(ALWAYS))


def _folder(folder: str | Path) -> Path:
    path = local_path(folder)
    if path is None:
        raise BadQuery(
            f"the control folder {str(folder)!r} is in another file system, where no file appears in one "
            "step. Give a path of this machine, or one that is mounted."
        )
    return path


def by_hand(session: SparkSession, folder: str | Path, labels: tuple[int, ...]) -> DataFrame:
    """The bounds of a control folder, for every bucket."""
    path = _folder(folder)
    path.mkdir(parents=True, exist_ok=True)
    # as it was given: Spark's checkpoint would not know it by another name
    told = session.readStream.schema("bound bigint").json(str(folder))
    return told.mapInArrow(_teller("bound", labels), ENVELOPE_DDL)


def by_clock(session: SparkSession, labels: tuple[int, ...]) -> DataFrame:
    """The time of day once a second, for every bucket."""
    beats = session.readStream.format("rate").option("rowsPerSecond", 1).load()
    now = beats.select(F.unix_micros("timestamp").alias("now"))
    return now.mapInArrow(_teller("now", labels), ENVELOPE_DDL)


def _teller(
    what: str, labels: tuple[int, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def tell(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        told = [value for batch in batches for value in batch.column(0).to_pylist() if value is not None]
        if told:
            yield announced(Seen(**{what: max(told)}), labels)

    return tell
