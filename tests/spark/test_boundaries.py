"""Row 31 of the reliability matrix on the Spark path, driven without Spark: rows exactly on boundaries."""

import random

from tests.property.harness import Case
from tests.property.strategies import FEW_ORDERED
from tests.reliability.boundaries import KEYS, boundaries, found_in
from tests.reliability.test_local import edge_rows
from tests.spark.pump import Pump
from tests.spark.test_inputs_pump import check_pumped
from windowpane.spark.bucket import Counts
from windowpane.values import windows as w


def test_row_31_ten_thousand_boundary_cases():
    """Those of this process, through tasks and buckets."""
    cases = 0
    for seed in range(10_000 // KEYS):
        some = boundaries(seed)
        pump = Pump(some.query(), tasks=1 + seed % 3, buckets=1 + seed % 4, restart=seed % 5 == 0)
        pump.run(some.batches())
        assert pump.counts == Counts(kept=len(some.rows))
        assert found_in(pump.table()) == some.expected()
        cases += len(some.cases())
    assert cases == 10_000


def test_row_31_boundaries_of_windows_over_all_keys():
    """Every case has rows exactly on edges, exactly a gap apart, and several at one time."""
    total = 0
    for seed in range(24):
        rng = random.Random(seed)
        size, slide = rng.randint(1, 6), rng.randint(1, 8)
        marks = [k * slide + d for k in range(-4, 5) for d in (0, size, -1)] + [
            k * size for k in range(-4, 5)
        ]
        found = [row for _ in range(8) for row in edge_rows(rng, marks)]
        found = [row | {"seq": i} for i, row in enumerate(found)]
        reach = [max(r["ts"] for r in found[: i + 1]) - r["ts"] for i, r in enumerate(found)]
        kinds = (
            w.Sliding(size, slide, rng.randint(-5, 5)),
            w.Session(size),
            w.PerRow(size, rng.randint(1, 3)),
        )
        for window in kinds:
            wanted = {name: FEW_ORDERED[name] for name in ("count", "sum_i")}
            case = Case((window,), wanted, found, delay=max(reach), cuts=[rng.randint(0, len(found))])
            assert check_pumped(case, tasks=2).late == 0
            total += len(found)
    assert total >= 3_000, f"only {total} (window, row) cases"
