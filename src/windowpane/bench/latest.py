"""An overloaded function on Spark: behind an update queue its results stay fresh, else they age.

The same stream for both: five times as many updates as the function, which takes 1 ms for a row, can take.
The age of a result is the time from its row's creation until the function is done with it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import windowpane as wp
from windowpane.bench.report import Claim, Report, Row
from windowpane.bench.runner import Progress
from windowpane.core.arrays import Floats
from windowpane.spark.session import open_session

COST, KEYS, OVERLOAD = 0.001, 2_000, 5
BUDGET = 0.4
SCHEMA = pa.schema([("key", pa.int64()), ("number", pa.int64()), ("age", pa.float64()), ("at", pa.float64())])


@dataclass(frozen=True)
class Scale:
    """Seconds that each side runs."""

    seconds: int


FULL, QUICK = Scale(60), Scale(25)


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Both sides, one after the other."""
    scale = QUICK if quick else FULL
    rows: list[dict[str, Any]] = []
    found: dict[str, _Ages] = {}
    with tempfile.TemporaryDirectory(prefix="windowpane-bench-") as folder:
        path = Path(folder)
        session = open_session("windowpane bench latest", "local[2]", {}, "OFF", path / "spark.log")
        try:
            for i, (name, build) in enumerate((("update queue", _queue), ("mapInPandas", _plain))):
                progress(i, 2, name)
                found[name] = _measure(session, build, path / f"checkpoint-{i}", scale.seconds)
                rows += found[name].rows(name)
        finally:
            session.stop()
    queue, plain = found["update queue"], found["mapInPandas"]
    third = "mean age in the last third over the middle third"
    claims = [
        Claim(f"update queue: {third}", queue.growth, 1.5, at_most=True),
        Claim(f"mapInPandas: {third}", plain.growth, 1.5),
        Claim("results that are older than the one before of their key", queue.backward, 0, at_most=True),
    ]
    rate = round(OVERLOAD * 2 * BUDGET / COST)
    parameters: Row = {
        "master": "local[2]",
        "updates_per_s": rate,
        "keys": KEYS,
        "cost_ms": COST * 1e3,
        "seconds": scale.seconds,
    }
    return Report("latest", parameters, rows, claims)


@dataclass(frozen=True)
class _Ages:
    """The results of one side: seconds since the start, age, key and number of each."""

    at: Floats
    age: Floats
    key: Floats
    number: Floats

    def third(self, which: int) -> Floats:
        """The ages of the results in one third of the run."""
        ends = np.linspace(0, self.at.max(), 4)
        ages: Floats = self.age[(self.at >= ends[which]) & (self.at <= ends[which + 1])]
        return ages

    @property
    def growth(self) -> float:
        """How much the mean age grew from the middle third to the last."""
        return float(self.third(2).mean() / self.third(1).mean())

    @property
    def backward(self) -> int:
        """Results that come after a newer one of their key."""
        order = np.lexsort((self.at, self.key))
        key, number = self.key[order], self.number[order]
        return int(((key[1:] == key[:-1]) & (number[1:] < number[:-1])).sum())

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """A row for each third of the run."""
        for i, part in enumerate(("first", "middle", "last")):
            ages = self.third(i)
            yield {
                "side": name,
                "third": part,
                "results": len(ages),
                "mean_age_s": round(float(ages.mean()), 3) if len(ages) else None,
                "max_age_s": round(float(ages.max()), 3) if len(ages) else None,
            }


def expensive(frame: pd.DataFrame) -> pd.DataFrame:
    """A function that takes 1 ms for each row."""
    time.sleep(COST * len(frame))
    now = time.time()
    made = pd.to_datetime(frame["ts"], utc=True).dt.as_unit("us").astype("int64") / 1e6
    return pd.DataFrame({"key": frame["key"], "number": frame["number"], "age": now - made, "at": now})


def _updates(session: Any) -> Any:
    """Five times as many updates as the budget of two buckets can serve."""
    rate = round(OVERLOAD * 2 * BUDGET / COST)
    source = session.readStream.format("rate").option("rowsPerSecond", rate).load()
    return source.selectExpr("timestamp AS ts", f"pmod(hash(value), {KEYS}L) AS key", "value AS number")


def _queue(session: Any) -> Any:
    stream = wp.stream(_updates(session), time="ts", keys="key")
    queue = stream.latest(budget=f"{round(BUDGET * 1000)} ms").apply(expensive, SCHEMA)
    return queue.to_spark()


def _plain(session: Any) -> Any:
    def each(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield expensive(frame)

    spread = _updates(session).repartition(2, "key")
    return spread.mapInPandas(each, "key bigint, number bigint, age double, at double")


def _measure(session: Any, build: Callable[[Any], Any], checkpoint: Path, seconds: int) -> _Ages:
    parts: list[pa.Table] = []

    def sink(batch: Any, _batch_id: int) -> None:
        parts.append(batch.toArrow())

    writer = build(session).writeStream.foreachBatch(sink).trigger(processingTime="1 second")
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    end = time.monotonic() + seconds
    while query.isActive and time.monotonic() < end:
        query.awaitTermination(1)
    query.stop()
    table = pa.concat_tables(parts)
    columns = {name: table[name].to_numpy() for name in ("at", "age", "key", "number")}
    began = columns["at"].min()
    return _Ages(columns["at"] - began, columns["age"], columns["key"], columns["number"])
