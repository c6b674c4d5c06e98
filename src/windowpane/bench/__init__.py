"""Layer 7: benchmarks. Each is a function that returns a `Report`; `BENCHES` is the table of them."""

from windowpane.bench import operator
from windowpane.bench.runner import Bench

BENCHES = (
    Bench(
        "operator",
        "the window operator against the published Java implementation of general slicing",
        operator.run,
    ),
)
