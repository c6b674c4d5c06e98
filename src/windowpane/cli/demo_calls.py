"""The demo on Spark: 144 figures of a call center (SlideM paper, appendix A) in one pass over a stream.

Files of two hours of calls arrive one by one; each is a micro-batch. Three functions of six attributes are
computed for each of eight grouping keys, over the last 24 hours, anew every hour.
"""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.live import Live
from rich.table import Table

import windowpane as wp
from windowpane.simulate.calls import ATTRIBUTES, GROUPS, calls
from windowpane.simulate.spec import SECOND, StreamSpec

if TYPE_CHECKING:
    from windowpane.jobs.watch import Watch
    from windowpane.query import Query

HOURS_PER_FILE = 2
CALLS_PER_HOUR = 36_000
SPEC = StreamSpec(
    rows=CALLS_PER_HOUR * HOURS_PER_FILE,
    rate=CALLS_PER_HOUR // 3600,
    disorder=0.2,
    max_delay=30 * SECOND,
    start=1_767_225_600 * SECOND,  # 2026-01-01
)


@dataclass
class Shown:
    """What the table shows: the newest answers of each grouping, and what became of the rows."""

    started: float = field(default_factory=time.monotonic)
    groups: dict[str, int] = field(default_factory=dict)
    newest: dict[str, Any] = field(default_factory=dict)
    answers: int = 0
    kept: int = 0
    late: int = 0
    rejected: int = 0


def calls_demo(hours: int, *, serve: bool) -> int:
    """Run the demo; gives the exit status."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="windowpane-demo-") as folder:
        from windowpane.spark.session import MASTER, open_session

        console.print("Starting Spark on two cores ...", style="bold")
        messages = Path(folder) / "spark.log"
        session = open_session("windowpane demo", MASTER, {}, "OFF", messages)
        try:
            return _Demo(session, Path(folder), console, _stop_by_interrupt()).run(hours, serve=serve)
        finally:
            session.stop()


def _stop_by_interrupt() -> threading.Event:
    """What Ctrl-C sets, so that the micro-batch at hand is the last; a second one does as Spark has it do.

    Spark's own way cancels all jobs in the middle of a call to the JVM, which prints pages of errors.
    """
    asked, sparks = threading.Event(), signal.getsignal(signal.SIGINT)

    def ask(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, sparks)
        asked.set()

    signal.signal(signal.SIGINT, ask)
    return asked


class _Demo:
    def __init__(self, session: Any, folder: Path, console: Console, stop: threading.Event) -> None:
        self._session, self._console, self._stop = session, console, stop
        self._inbox, self._control, self._checkpoint = (
            folder / name for name in ("calls", "control", "checkpoint")
        )
        self._shown = Shown()
        self._files = self._arriving()
        self._draining = False

    def run(self, hours: int, *, serve: bool) -> int:
        from windowpane.jobs.watch import Watch

        self._inbox.mkdir()
        next(self._files)
        outputs = wp.to_spark(*figures(self._source()), control=self._control)
        self._console.print(
            f"{3 * len(ATTRIBUTES) * len(GROUPS)} figures over 24 hours, every hour: SUM, COUNT and AVG of "
            f"{len(ATTRIBUTES)} attributes by {len(GROUPS)} keys; {CALLS_PER_HOUR:,} steps of calls per hour",
            highlight=False,
        )
        sink = outputs.frame.writeStream.foreachBatch(outputs.foreach(self._take))
        running = sink.option("checkpointLocation", str(self._checkpoint)).start()
        watch = Watch(running)
        try:
            with Live(console=self._console, auto_refresh=False) as live:
                self._follow(watch, live, None if serve else hours)
        except KeyboardInterrupt:
            self._stop.set()
        finally:
            running.stop()
        if self._stop.is_set():
            self._console.print("stopped")
        self._close()
        return 0

    def _follow(self, watch: Watch, live: Live, hours: int | None) -> None:
        """Let so many hours of calls arrive and then the stream end, or go on until stopped."""
        from windowpane.spark import finish

        self._show(watch, live)
        done = HOURS_PER_FILE
        while (hours is None or done < hours) and not self._stop.is_set():
            next(self._files)
            self._show(watch, live)
            done += HOURS_PER_FILE
        if not self._stop.is_set():
            self._draining = True
            finish(self._control)
            self._show(watch, live)

    def _arriving(self) -> Iterator[None]:
        """Write a file of two hours of calls each time the next one is asked for."""
        number = 0
        while True:
            start = SPEC.start + number * HOURS_PER_FILE * 3600 * SECOND
            spec = replace(SPEC, start=start, seed=number)
            hidden = self._inbox / f".{number:06d}"
            with pq.ParquetWriter(hidden, next(calls(replace(spec, rows=1))).schema) as writer:
                for batch in calls(spec):
                    writer.write_batch(batch)
            hidden.rename(self._inbox / f"{number:06d}.parquet")
            number += 1
            yield

    def _source(self) -> Any:
        schema = self._session.read.parquet(str(self._inbox)).schema
        return self._session.readStream.schema(schema).parquet(str(self._inbox))

    def _show(self, watch: Watch, live: Live) -> None:
        """Wait until what has arrived is answered, and show it."""
        from windowpane.jobs.show import REASONS
        from windowpane.spark import counts_of

        watch.query.processAllAvailable()
        shown = self._shown
        for progress in watch.reports():
            counts = {name: value or 0 for name, value in counts_of(progress).items()}
            shown.answers += counts.get("answers", 0)
            shown.kept += counts.get("kept", 0)
            shown.late += counts.get("late", 0)
            shown.rejected += sum(counts.get(n, 0) for n in REASONS)
        live.update(self._table(), refresh=True)
        for file in self._inbox.glob("*.parquet"):  # else a demo that serves would fill the disk
            file.unlink()

    def _take(self, name: str, rows: Any, _batch_id: int) -> None:
        """Keep the newest window of a grouping: its busiest group, and how many groups there are."""
        table = rows.toArrow()
        if table.num_rows == 0 or self._draining:  # the end drains windows that are no longer full
            return
        ends = table["window"].combine_chunks().field("end")
        newest = table.filter(pc.equal(ends, pc.max(ends)))
        self._shown.groups[name] = newest.num_rows
        best = newest.sort_by([("count_waitTime", "descending")]).slice(0, 1).to_pylist()[0]
        self._shown.newest[name] = best

    def _table(self) -> Table:
        table = Table(title="the last 24 hours, by each key: its busiest value", title_justify="left")
        for heading in ("key", "groups", "until", "busiest", "steps", "avg wait", "avg busy"):
            table.add_column(heading, justify="left" if heading == "key" else "right")
        for name in GROUPS:
            row = self._shown.newest.get(name)
            if row is None:
                table.add_row(name, *["-"] * 6)
                continue
            table.add_row(
                name,
                f"{self._shown.groups[name]:,}",
                f"{row['window']['end']:%a %H:%M}",
                str(row[name]),
                f"{row['count_waitTime']:,}",
                f"{row['avg_waitTime']:.1f} s",
                f"{row['avg_busyTime']:.1f} s",
            )
        return table

    def _close(self) -> None:
        shown = self._shown
        total = shown.kept + shown.late + shown.rejected
        took = time.monotonic() - shown.started
        self._console.print()  # where the output is no terminal, the table ends without a line's end
        self._console.print(
            f"{shown.answers:,} rows of 18 figures each from {total:,} steps in {took:.0f} s: "
            f"kept {shown.kept:,} + late {shown.late:,} + rejected {shown.rejected:,} = {total:,}",
            highlight=False,
            soft_wrap=True,
        )


def figures(source: Any) -> list[Query]:
    """A query for each grouping key: three functions of each attribute."""
    stream = wp.stream(source, time="timestamp", delay="30 s")
    window = wp.sliding("24 h", "1 h")
    kinds = {"sum": wp.sum, "count": wp.count, "avg": wp.mean}
    wanted = {f"{kind}_{column}": make(column) for column in ATTRIBUTES for kind, make in kinds.items()}
    aggregates = [aggregate.named(name) for name, aggregate in wanted.items()]
    return [stream.window(window, keys=key).agg(*aggregates, name=key) for key in GROUPS]
