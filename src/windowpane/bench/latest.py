"""An overloaded function on Spark: behind an update queue its results stay fresh, else they age without end.

The same stream for both: 4,000 updates a second of 2,000 keys, five times as many as the queue's budget lets
the function take at 1 ms for a row, and twice as many as two tasks can ever take. How old a key is: the time
since the creation of its newest update that is delivered, or since the start if none is. All keys count at
every moment, whether results of them come or not.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import windowpane as wp
from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Progress
from windowpane.core.arrays import Floats, Ints
from windowpane.spark import counts_of
from windowpane.spark.session import open_session

COST, KEYS, RATE = 0.001, 2_000, 4_000
BUDGET = 0.4
SCHEMA = pa.schema(
    [("key", pa.int64()), ("number", pa.int64()), ("made", pa.float64()), ("at", pa.float64())]
)
PARTS = ("first", "middle", "last")
_STEP = 0.25
"""Seconds between two looks at the ages of all keys."""
FULL, QUICK = 60, 16
"""Seconds that each side runs from its first result on."""
_PATIENCE = 60
"""Seconds that each side may take until then."""
_NOTHING = 1e9
"""In place of a ratio of which nothing is known."""


@dataclass
class Delivered:
    """What one side gave: of each result the key, its update's number and creation, and when it was done.

    Times are seconds since the start of the side. `own` is what the queue told of itself after each
    micro-batch: when, its staleness averaged over keys and the time so far, and since when the oldest waits.
    """

    seconds: float
    key: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    number: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    made: Floats = field(default_factory=lambda: np.empty(0))
    done: Floats = field(default_factory=lambda: np.empty(0))
    own: Floats = field(default_factory=lambda: np.empty((0, 3)))


@dataclass(frozen=True)
class Ages:
    """How old keys are at some moments: over all keys on average, the oldest, and how many had no result."""

    moment: Floats
    mean: Floats
    worst: Floats
    never: Ints

    @property
    def growth(self) -> float:
        """Seconds by which the mean age grows in a second, after the first third: 1 while no result comes."""
        begin = len(self.moment) // 3  # the start-up, after which ages fall, must not hide what comes later
        return slope(self.moment[begin:], self.mean[begin:])


def ages_of(given: Delivered, keys: int = KEYS) -> Ages:
    """The ages of all keys, from the first result on, or from the start if there is none."""
    order = np.argsort(given.done, kind="stable")
    at, key, made = given.done[order], given.key[order], given.made[order]
    moments = np.arange(at[0] if len(at) else 0.0, given.seconds, _STEP)
    newest = np.full(keys, -np.inf)
    found, begin = np.zeros((3, len(moments))), 0
    for i, moment in enumerate(moments):
        end = int(np.searchsorted(at, moment, side="right"))
        np.maximum.at(newest, key[begin:end], made[begin:end])
        begin = end
        age = moment - np.maximum(newest, 0.0)
        found[:, i] = age.mean(), age.max(), np.count_nonzero(newest == -np.inf)
    return Ages(moments, found[0], found[1], found[2].astype(np.int64))


def slope(x: Floats, y: Floats) -> float:
    """The rise of y for a unit of x, by least squares; where nothing tells, as much as x."""
    if len(x) < 2 or x[-1] <= x[0]:
        return 1.0
    return float(np.polyfit(x, y, 1)[0])


def backward(given: Delivered) -> int:
    """Results that come after a newer one of their key."""
    order = np.argsort(given.key, kind="stable")
    key, number = given.key[order], given.number[order]
    return int(((key[1:] == key[:-1]) & (number[1:] < number[:-1])).sum())


def own_thirds(own: Floats) -> list[float]:
    """The staleness over all keys within each third of the run, from averages over the time so far."""
    if len(own) < 2 or own[-1, 0] <= own[0, 0]:
        return [np.nan] * 3
    span = own[:, 0] - own[0, 0]
    ends = np.linspace(0.0, span[-1], 4)
    area = np.interp(ends, span, own[:, 1] * span)
    return [float(part) for part in np.diff(area) / np.diff(ends)]


def longest_wait(own: Floats) -> float:
    """The longest that any key waited in the last third of the run over that in the middle third."""
    if len(own) < 2 or own[-1, 0] <= own[0, 0]:
        return _NOTHING
    ends = np.linspace(own[0, 0], own[-1, 0], 4)
    middle, last = (
        np.interp(np.linspace(ends[i], ends[i + 1], 100), own[:, 0], own[:, 2]).max() for i in (1, 2)
    )
    return float(last / middle) if middle > 0 else 1.0 if last == 0 else _NOTHING


def rows_of(side: str, given: Delivered, ages: Ages) -> Iterator[Row]:
    """A row for each third of the run."""
    ends = np.linspace(ages.moment[0], given.seconds, 4)
    stale = own_thirds(given.own)
    for i, part in enumerate(PARTS):
        inside = (ages.moment >= ends[i]) & (ages.moment < ends[i + 1])
        row: dict[str, Scalar] = {
            "side": side,
            "third": part,
            "results": int(((given.done >= ends[i]) & (given.done < ends[i + 1])).sum()),
            "mean_age_s": _rounded(ages.mean[inside].mean()) if inside.any() else None,
            "oldest_key_s": _rounded(ages.worst[inside].max()) if inside.any() else None,
            "keys_without_result": int(ages.never[inside][-1]) if inside.any() else None,
            "own_staleness_s": _rounded(stale[i]),
        }
        yield row


def claims_of(queue: Delivered, plain: Delivered) -> list[Claim]:
    """The queue keeps all keys fresh, by our count and by its own; without it they age.

    A slope over a short run is mostly chance.
    """
    old, stale = ages_of(queue), own_thirds(queue.own)
    never = int(old.never[-1]) if len(old.never) else KEYS
    growth = "seconds by which the mean age of all keys grows in a second"
    return [
        Claim(f"update queue: {growth}", old.growth, 0.05 if queue.seconds >= FULL else 0.2, at_most=True),
        Claim(f"mapInPandas: {growth}", ages_of(plain).growth, 0.3),
        Claim("update queue: keys without a result in the end", never, 0, at_most=True),
        Claim(
            "update queue's own staleness of all keys, last third over middle third",
            stale[2] / stale[1] if stale[1] > 0 else _NOTHING,
            1.5,
            at_most=True,
        ),
        Claim(
            "update queue's own longest wait, last third over middle third",
            longest_wait(queue.own),
            1.4,  # a key that is never served would make it 1.5
            at_most=True,
        ),
        Claim("results that are older than the one before of their key", backward(queue), 0, at_most=True),
    ]


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Both sides, one after the other."""
    seconds = QUICK if quick else FULL
    found: dict[str, Delivered] = {}
    with tempfile.TemporaryDirectory(prefix="windowpane-bench-") as folder:
        path = Path(folder)
        settings = {"spark.sql.shuffle.partitions": "2"}
        session = open_session("windowpane bench latest", "local[2]", settings, "OFF", path / "spark.log")
        try:
            progress(0, 3, "start")
            _warm_up(session)
            for i, (name, build) in enumerate((("update queue", _queue), ("mapInPandas", _plain))):
                progress(i + 1, 3, name)
                found[name] = _measure(session, build, path / f"checkpoint-{i}", seconds)
        finally:
            session.stop()
    rows = [row for name, given in found.items() for row in rows_of(name, given, ages_of(given))]
    parameters: Row = {
        "master": "local[2]",
        "updates_per_s": RATE,
        "keys": KEYS,
        "cost_ms": COST * 1e3,
        "budget_ms": BUDGET * 1e3,
        "seconds": seconds,
    }
    return Report("latest", parameters, rows, claims_of(found["update queue"], found["mapInPandas"]))


def expensive(frame: pd.DataFrame) -> pd.DataFrame:
    """A function that takes 1 ms for each row."""
    time.sleep(COST * len(frame))
    made = pd.to_datetime(frame["ts"], utc=True).dt.as_unit("us").astype("int64") / 1e6
    return pd.DataFrame({"key": frame["key"], "number": frame["number"], "made": made, "at": time.time()})


def _updates(session: Any) -> Any:
    source = session.readStream.format("rate").option("rowsPerSecond", RATE).load()
    return source.selectExpr("timestamp AS ts", f"pmod(hash(value), {KEYS}L) AS key", "value AS number")


Batch = Callable[[Any, int], None]
Sink = Callable[[Any], None]


def _queue(session: Any, sink: Sink) -> tuple[Any, Batch]:
    stream = wp.stream(_updates(session), time="ts", keys="key")
    queue = stream.latest(budget=f"{round(BUDGET * 1000)} ms").apply(expensive, SCHEMA)
    outputs = wp.to_spark(queue)
    return outputs.frame, lambda batch, _: sink(outputs.split(batch)["latest"])


def _plain(session: Any, sink: Sink) -> tuple[Any, Batch]:
    def each(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield expensive(frame)

    ddl = "key bigint, number bigint, made double, at double"
    return _updates(session).repartition(2, "key").mapInPandas(each, ddl), lambda batch, _: sink(batch)


def _warm_up(session: Any) -> None:
    """Let workers import and compile what they need, so that the run begins at once."""
    rows = session.range(4).selectExpr("current_timestamp() AS ts", "id AS key", "id AS number")
    wp.stream(rows, time="ts", keys="key").latest().apply(expensive, SCHEMA).to_spark().collect()


def _measure(
    session: Any, build: Callable[[Any, Sink], tuple[Any, Batch]], checkpoint: Path, seconds: float
) -> Delivered:
    """Run a side for so long after its first result; what it delivered."""
    parts: list[pa.Table] = []
    first: list[float] = []

    def keep(rows: Any) -> None:
        parts.append(rows.toArrow())
        if parts[-1].num_rows and not first:
            first.append(time.time())

    frame, batch = build(session, keep)
    writer = frame.writeStream.foreachBatch(batch).trigger(processingTime="1 second")
    began = time.time()
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    while query.isActive and time.time() < (first[0] if first else began + _PATIENCE) + seconds:
        query.awaitTermination(0.25)
    failed = query.exception()
    told = [progress for progress in query.recentProgress if counts_of(progress).get("keys")]
    given = Delivered(time.time() - began)
    query.stop()
    if failed is not None:
        raise failed
    given.own = _own(told, began)
    if parts:
        table = pa.concat_tables(parts)
        given.key, given.number = table["key"].to_numpy(), table["number"].to_numpy()
        given.made, given.done = table["made"].to_numpy() - began, table["at"].to_numpy() - began
    return given


def _own(told: Sequence[Any], began: float) -> Floats:
    """What the queue tells in the progress of each micro-batch."""
    found = []
    for progress in told:
        counts = counts_of(progress)
        ended = datetime.fromisoformat(progress.timestamp).timestamp() + progress.batchDuration / 1e3
        keys = counts["keys"] or 1
        mean, oldest = (counts["staleness_us"] or 0) / keys, counts["oldest_us"] or 0
        found.append((ended - began, mean / 1e6, oldest / 1e6))
    return np.array(found, np.float64).reshape(-1, 3)


def _rounded(value: float) -> float | None:
    return round(float(value), 3) if np.isfinite(value) else None
