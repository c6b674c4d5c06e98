"""Layer 7: benchmarks. Each is a function that returns a `Report`; `BENCHES` is the table of them.

A benchmark is imported when it runs: one that measures its own memory must not hold the others'.
"""

from importlib import import_module
from typing import Any

from windowpane.bench.report import Report
from windowpane.bench.runner import Bench, Run


def _of(module: str) -> Run:
    def run(*given: Any, **options: Any) -> Report:
        report: Report = import_module(f"windowpane.bench.{module}").run(*given, **options)
        return report

    return run


BENCHES = (
    Bench(
        "operator",
        "the window operator against the published Java implementation of general slicing",
        _of("operator"),
    ),
    Bench("latest", "an overloaded function on Spark, behind an update queue and without", _of("latest")),
    Bench(
        "latest-state",
        "what update queues on Spark write and read in a micro-batch, as more keys are known or rows wait",
        _of("latest_state"),
    ),
    Bench(
        "recovery",
        "runs on Spark that are killed again and again, against the truth; --kills for how often",
        _of("recovery"),
        ("kills",),
    ),
    Bench("spark", "Spark's own window() against windowpane, on Spark", _of("spark")),
    Bench(
        "staleness",
        "the staleness of every queue policy under overload, on synthetic and on real streams",
        _of("staleness"),
    ),
    Bench(
        "staleness-least",
        "the least staleness that any policy could have, as far as it can be computed, against ours",
        _of("staleness_least"),
    ),
    Bench(
        "upstream",
        "update queues against UpStream's figures: staleness, append and update queues, linecutting",
        _of("upstream"),
    ),
    Bench(
        "upstream-windows",
        "windows under update semantics, and the memory of update queues, against UpStream's figures",
        _of("upstream_windows"),
    ),
    Bench(
        "slidem",
        "windows larger than memory, a result for every tuple, against SlideM's figures; --gb for their size",
        _of("slidem"),
        ("gb",),
    ),
    Bench(
        "ssm",
        "many windows over one store against a store for each, as in Shared SlideM's figures",
        _of("ssm"),
    ),
    Bench(
        "worker",
        "a window on Spark that is larger than its Python worker may be, in blocks of the state store",
        _of("worker"),
    ),
    Bench("callcenter", "144 aggregates over a day within 256 MB, against memory only", _of("callcenter")),
)
