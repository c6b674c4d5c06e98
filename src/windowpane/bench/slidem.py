"""SlideM under maximum I/O pressure: query 3 and table 1 of Mendes, Bizarro and Marques (ICPE 2013).

The volume-weighted mean price of 100 symbols over the last hour, a result for every tuple, a buffer of two
blocks; and once of all symbols together. Every case runs in a process of its own, so that its peak memory is
its own. The window is filled first; then it slides by half its length, and that is measured. A case whose
hour of tuples would take more than `gb` gets as long a window as fits instead: what counts for a store is how
much it holds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Progress

BATCH = 65_536
SYMBOLS = 100
HOUR = 3_600
TUPLE_BYTES = 29
"""A time, two floats, a key of four bytes and a byte that says what is null."""
RATES = (50_000, 100_000, 150_000, 200_000, 250_000, 300_000, 1_000_000)
PUBLISHED_RATE = 300_000
FASTER = 10
FLAT = 1.05
LEAST_GROWTH = 2.5
MALLOC = {"MALLOC_TRIM_THRESHOLD_": "200000000", "MALLOC_MMAP_THRESHOLD_": "100000000"}
"""Without these glibc gives the arrays of a batch back to the system, which clears them anew for the next."""


@dataclass(frozen=True)
class Case:
    """One window: tuples per second of event time, and how many bytes of tuples the window holds."""

    rate: int
    gigabytes: float
    least_tuples: int
    keyed: bool = True

    @property
    def window(self) -> int:
        """The length of the window in microseconds: an hour, or as much as the bytes allow."""
        return min(HOUR * 1_000_000, int(self.gigabytes * 1e9 / TUPLE_BYTES / self.rate * 1e6))

    @property
    def tuples(self) -> int:
        """Tuples in the window."""
        return self.rate * self.window // 1_000_000


def run(quick: bool, progress: Progress, gb: float | None = None) -> Report:  # noqa: FBT001 - as every benchmark
    """Measure every case that the disk has room for; `gb` is the largest window."""
    largest = gb or (0.3 if quick else 10.0)
    free = shutil.disk_usage(tempfile.gettempdir()).free / 1e9
    sizes = sorted({0.1, *(s for s in (1.0, largest) if s <= largest)})
    least = 1_000_000 if quick else 8_000_000
    flat = [Case(PUBLISHED_RATE, size, least) for size in sizes if size * 1.3 < free]
    common = min(0.1 if quick else 1.0, largest)
    # the published table's rates; with enough room each has its hour
    rates = [Case(rate, largest if gb else common, least) for rate in (RATES[::3] if quick else RATES)]
    parts = [
        *(("size", case) for case in flat),
        *(("rate", case) for case in rates if case.gigabytes * 1.3 < free),
        ("keyless", Case(PUBLISHED_RATE, 0.1, least, keyed=False)),
    ]
    rows: list[Row] = []
    # kernels that are compiled only now would count as the memory of the first case
    for keyed in (True, False):
        progress(0, len(parts), "unmeasured")
        in_a_process(Case(PUBLISHED_RATE, 0.01, 100_000, keyed))
    for done, (part, case) in enumerate(parts):
        progress(done, len(parts), f"{case.rate:,}/s, {case.gigabytes:g} GB")
        rows.append({"part": part, **in_a_process(case)})
    parameters: dict[str, Scalar] = {
        "symbols": SYMBOLS,
        "batch_rows": BATCH,
        "blocks": 2,
        "tuple_bytes": TUPLE_BYTES,
        "gb": largest,
        "malloc": " ".join(f"{name}={value}" for name, value in MALLOC.items()),
        "skipped_for_want_of_disk": len(sizes) + len(rates) + 1 - len(parts),
    }
    return Report("slidem", parameters, rows, claims(rows))


def claims(rows: list[Row]) -> list[Claim]:
    """Memory does not follow the window, and the rate is ten times the published one."""
    sizes = [row for row in rows if row["part"] == "size"]
    peaks, windows, busy, passed = (
        [float(str(row[name])) for row in some]
        for some, name in (
            (sizes, "peak_rss_mb"),
            (sizes, "window_gb"),
            (rows, "tuples_per_cpu_second"),
            (rows, "tuples_per_second"),
        )
    )
    smallest, largest = (windows[0], windows[-1]) if windows else (0.0, 0.0)
    rate = f"{FASTER} x published ({PUBLISHED_RATE:,})"
    return [
        # where the disk has room for one size only, nothing was compared
        Claim(
            "largest window / smallest that memory is compared for", _ratio(largest, smallest), LEAST_GROWTH
        ),
        Claim(
            f"peak memory of a {largest:.3g} GB window / of a {smallest:.3g} GB one",
            _ratio(max(peaks, default=0.0), peaks[0] if peaks else 0.0),
            FLAT,
            at_most=True,
        ),
        Claim(f"tuples per CPU second, {rate}", round(min(busy)), FASTER * PUBLISHED_RATE),
        Claim(
            f"tuples per second, waits for the disk included, {rate}",
            round(min(passed)),
            FASTER * PUBLISHED_RATE,
        ),
    ]


def _ratio(a: float, b: float) -> float:
    return round(a / b, 3) if b else 0.0


def in_a_process(case: Case) -> dict[str, Scalar]:
    """The case in a Python of its own."""
    given = json.dumps(asdict(case))
    done = subprocess.run(  # noqa: S603 - our own module with our own numbers
        [sys.executable, "-m", "windowpane.bench.slidem", given],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **MALLOC},
    )
    if done.returncode:
        raise RuntimeError(f"the case {given} failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Scalar] = json.loads(done.stdout)
    return found


def measure(case: Case) -> dict[str, Any]:
    """Fill the window, slide it, and count."""
    import windowpane as wp  # noqa: PLC0415 - after the process has its limits
    from windowpane.values.sizes import Budget  # noqa: PLC0415 - as above

    schema = pa.schema(
        {"ts": pa.timestamp("us"), "symbol": pa.string(), "price": pa.float64(), "volume": pa.float64()}
    )
    stream = wp.stream(schema=schema, time="ts", keys=["symbol"] if case.keyed else [])
    window = wp.per_row(case.window)
    query = stream.window(window.per() if case.keyed else window).agg(
        vwap=wp.weighted_mean("price", "volume")
    )
    make = Batches(schema, case.rate)
    with query.start(memory=Budget(4_000_000, blocks=2)) as runner:
        filled = case.tuples // BATCH + 2
        for at in range(filled):
            runner.push(make(at))
        before = asdict(runner.io)
        slid = max(case.least_tuples, case.tuples // 2) // BATCH
        waits, answers = [], 0
        cpu, wall = 0.0, time.perf_counter()
        for at in range(filled, filled + slid):
            batch = make(at)
            begin, used = time.perf_counter(), time.process_time()
            answers += runner.answers(runner.push(batch)).num_rows
            waits.append(time.perf_counter() - begin)
            cpu += time.process_time() - used
        wall = time.perf_counter() - wall
        io = {name: value - before[name] for name, value in asdict(runner.io).items()}
        return {
            "rate": case.rate,
            "keys": SYMBOLS if case.keyed else 0,
            "window_s": round(case.window / 1e6, 1),
            "window_gb": round(case.tuples * TUPLE_BYTES / 1e9, 3),
            "tuples_per_second": round(slid * BATCH / sum(waits)),
            "tuples_per_cpu_second": round(slid * BATCH / cpu),
            "peak_rss_mb": round(status("VmHWM") / 1e6, 1),
            "batch_ms": round(1e3 * sum(waits) / len(waits), 2),
            "batch_max_ms": round(1e3 * max(waits), 2),
            "reads": io["reads"],
            "writes": io["writes"],
            "io_mb": round((io["bytes_read"] + io["bytes_written"]) / 1e6),
            "io_mb_s": round((io["bytes_read"] + io["bytes_written"]) / 1e6 / wall, 1),
            "file_gb": round(runner.disk_bytes / 1e9, 3),
            "answers": answers,
            "tuples": slid * BATCH,
        }


class Batches:
    """The stream: symbols in turn, prices and volumes at random, times as the rate says."""

    def __init__(self, schema: pa.Schema, rate: int) -> None:
        rng = np.random.default_rng(2013)
        self.schema, self.rate = schema, rate
        turn = (np.arange(BATCH + SYMBOLS) % SYMBOLS).astype(np.int64)
        names = pa.array([f"S{i:03d}" for i in range(SYMBOLS)])
        self._symbols = names.take(pa.array(turn))
        self._price = pa.array(rng.uniform(1, 500, BATCH))
        self._volume = pa.array(rng.integers(1, 10_000, BATCH).astype(np.float64))

    def __call__(self, at: int) -> pa.RecordBatch:
        """Batch number `at`."""
        place = np.arange(BATCH, dtype=np.int64) + at * BATCH
        times = pa.array(place * 1_000_000 // self.rate).view(pa.timestamp("us"))
        symbols = self._symbols.slice(at * BATCH % SYMBOLS, BATCH)
        return pa.RecordBatch.from_arrays([times, symbols, self._price, self._volume], schema=self.schema)


def status(name: str) -> int:
    """What the system says of this process's memory, in bytes: `VmHWM` is the most that it ever held."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    print(json.dumps(measure(Case(**json.loads(sys.argv[1])))))  # noqa: T201 - read by the parent
