"""The call-center case of Mendes, Bizarro and Marques (ICPE 2013): section 5.2, figure 10 and appendix A.

144 aggregates: SUM, COUNT and AVG of six fields by eight grouping keys, over windows of 24 hours that slide
by 10 seconds, at 1,000 events per second of event time. Three ways, each in a process of its own:

- `store`: 1W within a memory budget, its tuples in a store; the process may not grow beyond 256 MB;
- `1W in memory` and `2LA in memory`: the same rows, kept in memory, which gets 2 GB of address space beyond
  what Python and its libraries have taken when the first batch is in. They stop where memory ends, and how
  far they came is reported with the space that formulas 2.2 and 2.1 foresee.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Progress
from windowpane.bench.slidem import status
from windowpane.simulate.calls import ATTRIBUTES, GROUPS

RATE = 1_000
SLIDE = 10
HOURS = 24
LIMIT = 256_000_000
ADDRESS_SPACE = 2_000_000_000
FIELDS, KEYS = tuple(ATTRIBUTES), GROUPS
BATCH_SECONDS = 5


@dataclass(frozen=True)
class Case:
    """How the rows are kept, and for how many hours of events to run after the window is full."""

    way: str
    hours: float
    window_hours: float


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Run the three ways; quick: a window of an hour, and limits that shrink with it."""
    window = 1.0 if quick else float(HOURS)
    cases = [
        Case("store", window * 1.1, window),
        Case("1W in memory", window, window),
        Case("2LA in memory", window, window),
    ]
    rows: list[Row] = []
    progress(0, len(cases), "unmeasured")
    in_a_process(Case("store", 0.01, 0.005))  # kernels that are compiled only now would count as its memory
    for done, case in enumerate(cases):
        progress(done, len(cases), case.way)
        rows.append(in_a_process(case))
    parameters: dict[str, Scalar] = {
        "aggregates": 3 * len(FIELDS) * len(KEYS),
        "rate": RATE,
        "window_hours": window,
        "slide_s": SLIDE,
        "limit_mb": LIMIT / 1e6,
    }
    return Report("callcenter", parameters, rows, claims(rows))


def address_space(own: int, window_hours: float) -> int:
    """The 2 GB of the published machine (their share for a shorter window) beside what a process has."""
    return int(own + ADDRESS_SPACE * window_hours / HOURS)


def claims(rows: list[Row]) -> list[Claim]:
    """Over a store it ends within 256 MB; in memory it cannot."""
    store, *others = rows
    return [
        Claim("share of the events that the store took in", float(str(store["done"])), 1.0),
        Claim("its peak memory in MB", float(str(store["peak_rss_mb"])), LIMIT / 1e6, at_most=True),
        *(
            Claim(f"{row['way']}: share done at the limit", float(str(row["done"])), 0.999, at_most=True)
            for row in others
        ),
    ]


def in_a_process(case: Case) -> dict[str, Scalar]:
    """The case in a Python of its own."""
    given = json.dumps(asdict(case))
    done = subprocess.run(  # noqa: S603 - our own module with our own numbers
        [sys.executable, "-m", "windowpane.bench.callcenter", given],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the case {given} failed: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, Scalar] = json.loads(done.stdout.splitlines()[-1])
    return found


def query_set(window_hours: float) -> tuple[Any, ...]:
    """One query for each grouping key: 18 aggregates each."""
    import windowpane as wp  # noqa: PLC0415 - after the process has its limits

    stream = wp.stream(schema=schema(), time="timestamp")
    window = wp.sliding(int(window_hours * 3_600_000_000), SLIDE * 1_000_000)
    queries = []
    for key in KEYS:
        named: dict[str, Any] = {}
        for field in FIELDS:
            named |= {
                f"sum_{field}": wp.sum(field),
                f"count_{field}": wp.count(field),
                f"avg_{field}": wp.mean(field),
            }
        queries.append(stream.window(window, keys=key).agg(name=key, **named))
    return tuple(queries)


def schema() -> pa.Schema:
    """The columns that the aggregates read."""
    columns = {name: pa.int32() for name in (*KEYS, *FIELDS)}
    return pa.schema({"timestamp": pa.timestamp("us"), **columns})


class Batches:
    """Events at a fixed rate; keys evenly spread, but most agents are at work only part of the day.

    `simulate.calls` makes a whole stream at once, which a day of 86 million events is too long for.
    """

    def __init__(self) -> None:
        self._rng = np.random.default_rng(12)
        self.rows = RATE * BATCH_SECONDS
        self.schema = schema()

    def __call__(self, at: int) -> pa.RecordBatch:
        """Batch number `at`."""
        n, rng = self.rows, self._rng
        first = at * BATCH_SECONDS * 1_000_000
        times = first + np.arange(n, dtype=np.int64) * (1_000_000 // RATE)
        keys = {name: rng.integers(0, size, n, dtype=np.int32) for name, size in KEYS.items()}
        # a third of the agents in each shift of eight hours
        shift = at * BATCH_SECONDS // (8 * 3_600) % 3
        keys["agentId"] = keys["agentId"] // 3 * 3 + np.int32(shift)
        values = [pa.array(rng.integers(0, 600, n, dtype=np.int32)) for _ in FIELDS]
        arrays = [pa.array(times).view(pa.timestamp("us")), *(pa.array(k) for k in keys.values()), *values]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def measure(case: Case) -> dict[str, Any]:
    """Push events until the end, or until memory is."""
    import windowpane as wp  # noqa: PLC0415 - after the process has its limits
    from windowpane.local.spill import SpillRunner  # noqa: PLC0415 - as above
    from windowpane.planner.spill import choose, seen_in  # noqa: PLC0415 - as above
    from windowpane.values.sizes import Budget  # noqa: PLC0415 - as above

    make = Batches()
    total = int(case.hours * 3_600 / BATCH_SECONDS)
    technique = "2LA" if case.way.startswith("2LA") else "1W"
    memory = 5_000_000 if case.way == "store" else 10**12
    budget = Budget(memory, technique=technique)  # type: ignore[arg-type]
    queries = query_set(case.window_hours)
    runner = wp.start(*queries, memory=budget)
    assert isinstance(runner, SpillRunner)
    own = limit = None
    answers, pushed, ended = 0, 0, "to the end"
    begin = time.process_time()
    try:
        for at in range(total):
            step = runner.push(make(at))
            answers += sum(table.num_rows for table in step.tables.values())
            pushed += 1
            if at == 0 and case.way != "store":
                # from here on, when everything that a run needs is loaded
                own = status("VmSize")
                limit = address_space(own, case.window_hours)
                resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    except (MemoryError, pa.ArrowMemoryError):
        ended = "out of memory"
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    cpu = time.process_time() - begin
    first = make(0)
    times = first.column(0).view(pa.int64()).to_numpy()
    seen = seen_in(
        times, [first.column(1 + i).to_numpy().astype(np.int64) for i in range(len(KEYS))], SLIDE * 10**6
    )
    choice = choose(runner.plan, budget, seen)
    foreseen = choice.two_level if technique == "2LA" else choice.one_window
    found = {
        "way": case.way,
        "ended": ended,
        "done": round(pushed / total, 4),
        "hours": round(pushed * BATCH_SECONDS / 3_600, 2),
        "peak_rss_mb": round(status("VmHWM") / 1e6, 1),
        "own_address_space_mb": None if own is None else round(own / 1e6),
        "address_space_mb": None if limit is None else round(limit / 1e6),
        "foreseen_gb": round((foreseen or 0) / 1e9, 2),
        "events_per_cpu_second": round(pushed * make.rows / cpu),
        "reads": runner.io.reads,
        "writes": runner.io.writes,
        "file_gb": round(runner.disk_bytes / 1e9, 3),
        "answers": answers,
    }
    runner.discard()
    return found


if __name__ == "__main__":
    print(json.dumps(measure(Case(**json.loads(sys.argv[1])))))  # noqa: T201 - read by the parent
