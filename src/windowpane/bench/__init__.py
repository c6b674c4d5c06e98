"""Layer 7: benchmarks. Each is a function that returns a `Report`; `BENCHES` is the table of them."""

from windowpane.bench import operator, spark, upstream_windows
from windowpane.bench.runner import Bench

BENCHES = (
    Bench(
        "operator",
        "the window operator against the published Java implementation of general slicing",
        operator.run,
    ),
    Bench("spark", "Spark's own window() against windowpane, on Spark", spark.run),
    Bench(
        "upstream-windows",
        "windows under update semantics, and the memory of update queues, against UpStream's figures",
        upstream_windows.run,
    ),
)
