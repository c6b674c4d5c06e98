"""The window operator on one core, against the published Java implementation of general slicing.

Cases (Traub et al., EDBT 2019, section 6): N concurrent tumbling windows with lengths spread evenly
over 1 to 20 s in one query, sum of an integer column unless said otherwise.

    a  in order                                d  100 keys, in order
    b  with a session window of 1 s and 20%    e  the median over 20 windows, in order
       of the tuples late by up to 2 s         f  count windows that last 1 to 20 s, 20% late
    c  one sliding window, in order
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

import windowpane as wp
from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Measured, Progress, Runner, measure
from windowpane.simulate import StreamSpec, generate
from windowpane.values.aggregates import Aggregate
from windowpane.values.windows import Window

BATCH = 524_288
RATES = (2_000, 100_000)
COUNTS = (1, 20, 100, 1_000)
FASTER, FASTER_AT_1000 = 3, 40
SECOND = 1_000_000

PUBLISHED_ON = "one thread of a 2.8 GHz Xeon"
# Million tuples/s of the published implementation, measured there without any engine around it, by case and
# variant. There is one figure for each, whatever the rate of the stream.
PUBLISHED = {
    ("a", 1): 32, ("a", 20): 32, ("a", 100): 19, ("a", 1_000): 0.5,
    ("b", 1): 18, ("b", 20): 19, ("b", 100): 10, ("b", 1_000): 0.4,
    ("c", 60): 35, ("c", 3_600): 10,
    ("e", 100): 5.1, ("e", 10_000): 0.24,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One point: the windows of the query over one stream; `variant` is what its letter varies."""

    letter: str
    variant: int
    windows: tuple[Window, ...]
    stream: StreamSpec
    keys: tuple[str, ...] = ()
    aggregate: Aggregate = field(default_factory=lambda: wp.sum("value"))
    history: int = 0

    @property
    def name(self) -> str:
        """As in 'a 20 at 2,000/s'."""
        return f"{self.letter} {self.variant:,} at {self.stream.rate:,}/s"


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Measure every case."""
    batches = 3 if quick else 16
    points = list(cases(batches * BATCH))
    measured: dict[tuple[str, int, int], float] = {}
    rows: list[Row] = []
    for done, case in enumerate(points):
        progress(done, len(points), case.name)
        outcome = measure_case(case)
        rows.append(row(case, outcome))
        measured[case.letter, case.variant, case.stream.rate] = outcome.tuples_per_second
    parameters: dict[str, Scalar] = {
        "tuples": batches * BATCH,
        "batch_rows": BATCH,
        "clock": "CPU time",
        "published_on": PUBLISHED_ON,
    }
    return Report("operator", parameters, rows, claims(measured))


def cases(tuples: int) -> Iterator[Case]:
    """Every point of the benchmark, those that share a stream next to each other."""
    for rate in RATES:
        ordered = StreamSpec(rows=tuples, rate=rate, gaps_per_minute=5, batch_rows=BATCH)
        disordered = replace(ordered, disorder=0.2)
        for n in COUNTS:
            yield Case("a", n, tumblings(n), ordered)
        for seconds in (60, 3_600):
            window = wp.sliding(seconds * SECOND, SECOND)
            yield Case("c", seconds, (window,), ordered, history=seconds)
        for n in COUNTS:
            yield Case("b", n, (*tumblings(n), wp.session("1 s")), disordered)
        for n in COUNTS:
            yield Case("f", n, tuple(wp.rows(int(ms) * rate // 1_000) for ms in lengths(n)), disordered)
        for n in (1, 20):
            yield Case("d", n, tumblings(n), replace(ordered, keys=100), keys=("key",))
        for distinct in (100, 10_000):
            stream = replace(ordered, distinct=distinct)
            yield Case("e", distinct, tumblings(20), stream, aggregate=wp.median("value"))


def lengths(n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """N lengths in milliseconds, spread evenly over 1 to 20 s."""
    return np.linspace(1_000, 20_000, n).astype(np.int64)


def tumblings(n: int) -> tuple[Window, ...]:
    """N concurrent tumbling windows."""
    return tuple(wp.tumbling(int(ms) * 1_000) for ms in lengths(n))


def measure_case(case: Case) -> Measured:
    """Build the query anew for each pass and push the case's stream through it."""
    batches = stream_batches(case.stream)
    # A window of an hour is only full after an hour: a thin stream of 100 tuples/s goes before, untimed.
    past = StreamSpec(rows=case.history * 100, rate=100, start=-case.history * SECOND, batch_rows=BATCH)

    def start() -> Runner:
        stream = wp.stream(schema=batches[0].schema, time="ts", keys=case.keys, delay=delay(case))
        return wp.start(stream.window(*case.windows).agg(result=case.aggregate))

    return measure(start, batches, history=stream_batches(past))


def delay(case: Case) -> str:
    """The punctuation that the stream needs."""
    return "2 s" if case.stream.disorder else "0 s"


@lru_cache(maxsize=2)
def stream_batches(spec: StreamSpec) -> Sequence[pa.RecordBatch]:
    """The batches of a stream, kept while the cases that share it run."""
    return tuple(generate(spec))


def row(case: Case, outcome: Measured) -> Row:
    """One line of the report; `published` is in the same unit, where there is a figure."""
    published = PUBLISHED.get((case.letter, case.variant))
    return {
        "case": case.letter,
        "variant": case.variant,
        "windows": len(case.windows),
        "rate": case.stream.rate,
        "tuples_per_second": round(outcome.tuples_per_second),
        "published": None if published is None else round(published * 1e6),
        "state_bytes": outcome.state_bytes,
        "start_ms": round(outcome.start_seconds * 1_000, 1),
        "results": outcome.results,
        "tuples": outcome.tuples,
    }


def claims(measured: dict[tuple[str, int, int], float]) -> list[Claim]:
    """Faster than published at every point that has a figure, and level from 1 to 1,000 windows."""
    found = []
    for (letter, variant, rate), speed in measured.items():
        published = PUBLISHED.get((letter, variant))
        if published is not None:
            factor = FASTER_AT_1000 if letter in "ab" and variant == 1_000 else FASTER
            name = f"{letter} {variant:,} at {rate:,}/s: {factor} x published"
            found.append(Claim(name, round(speed), round(factor * published * 1e6)))
    rate = max(RATES)
    for letter in "ab":
        ratio = measured[letter, 1_000, rate] / measured[letter, 1, rate]
        found.append(Claim(f"{letter} at {rate:,}/s: rate of 1,000 windows / of 1", round(ratio, 3), 0.5))
    return found
