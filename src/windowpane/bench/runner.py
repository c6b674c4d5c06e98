"""Measure a query: push Arrow batches that already exist, and count the CPU time it takes.

CPU time of the whole process, so work on other threads is counted too. The first pass warms up (it
compiles kernels) and records the size of the state; the best of the passes after it is reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from windowpane.bench.report import Report

Progress = Callable[[int, int, str], None]
"""Told before each case: how many are done, how many there are, and which comes now."""


Run = Callable[..., Report]
"""A benchmark: takes whether to be quick, whom to tell of progress, and its options by name."""


class Step(Protocol):
    """What a push or the end of the stream brought."""

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """The results of each query."""


class Runner(Protocol):
    """The push interface of a runtime."""

    @property
    def state_bytes(self) -> int:
        """How much the operator holds now."""

    def push(self, data: pa.RecordBatch, /) -> Step:
        """Take a batch and give the results that it made final."""

    def close(self) -> Step:
        """End the stream and give what is left."""


@dataclass(frozen=True, slots=True)
class Bench:
    """An entry of the table of benchmarks."""

    name: str
    about: str
    run: Run
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """One case: how fast, how much state at most, how many result rows, and how long the start took."""

    tuples: int
    seconds: float
    state_bytes: int
    results: int
    start_seconds: float

    @property
    def tuples_per_second(self) -> float:
        """Tuples per second of CPU time."""
        return self.tuples / self.seconds


def measure(
    start: Callable[[], Runner],
    batches: Sequence[pa.RecordBatch],
    *,
    history: Sequence[pa.RecordBatch] = (),
    passes: int = 7,
) -> Measured:
    """Push `batches` through a new runner in every pass and close it; `history` goes first, untimed."""
    state, results = _warm_up(start, [*history, *batches])
    timings = [_timed(start, batches, history) for _ in range(passes)]
    started, pushed = (min(seconds) for seconds in zip(*timings, strict=True))
    return Measured(sum(batch.num_rows for batch in batches), pushed, state, results, started)


def _warm_up(start: Callable[[], Runner], batches: Sequence[pa.RecordBatch]) -> tuple[int, int]:
    runner = start()
    state, results = 0, 0
    for batch in batches:
        results += _results(runner.push(batch))
        state = max(state, runner.state_bytes)
    return state, results + _results(runner.close())


def _results(step: Step) -> int:
    return sum(table.num_rows for table in step.tables.values())


def _timed(
    start: Callable[[], Runner], batches: Sequence[pa.RecordBatch], history: Sequence[pa.RecordBatch]
) -> tuple[float, float]:
    """CPU seconds to start the query, and to push the batches and close."""
    begin = time.process_time()
    runner = start()
    started = time.process_time() - begin
    for batch in history:
        runner.push(batch)
    begin = time.process_time()
    for batch in batches:
        runner.push(batch)
    runner.close()
    return started, max(time.process_time() - begin, 1e-9)
