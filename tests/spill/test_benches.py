"""What the benchmarks of stores claim, by rows that should hold and should not; and a small case of each."""

import pytest

from windowpane.bench import callcenter, slidem, ssm


def row(part="size", window=0.1, peak=250.0, busy=4e6, passed=3.5e6):
    rates = {"tuples_per_cpu_second": busy, "tuples_per_second": passed}
    return {"part": part, "window_gb": window, "peak_rss_mb": peak, **rates}


SLIDEM = {
    "all hold": ([row(), row(window=10.0, peak=260.0), row("rate")], [True] * 4),
    "one size only": ([row(), row("rate")], [False, True, True, True]),
    "no size at all": ([row("rate")], [False, True, True, True]),
    "memory grows": ([row(), row(window=10.0, peak=263.0)], [True, False, True, True]),
    "memory grows in between": (
        [row(), row(window=1.0, peak=263.0), row(window=10.0)],
        [True, False, True, True],
    ),
    "one rate is too low": ([row(), row(window=10.0), row("rate", busy=2.9e6)], [True, True, False, True]),
    "the disk is too slow": (
        [row(), row(window=10.0), row("keyless", passed=2.9e6)],
        [True, True, True, False],
    ),
}


@pytest.mark.parametrize(("rows", "expected"), SLIDEM.values(), ids=SLIDEM)
def test_the_claims_of_slidem(rows, expected):
    assert [claim.holds for claim in slidem.claims(rows)] == expected


@pytest.mark.parametrize("keyed", [True, False])
def test_a_small_case_of_slidem(keyed):
    found = slidem.measure(slidem.Case(1_000_000, 0.004, 200_000, keyed))
    assert found["answers"] == found["tuples"] == 3 * slidem.BATCH
    assert found["reads"] > 0
    assert found["writes"] > 0
    assert found["keys"] == (100 if keyed else 0)


@pytest.mark.parametrize(
    ("space", "fewer", "expected"),
    [
        ((1.0, 1.005), 25.0, [True, True]),
        ((1.0, 1.2), 25.0, [False, True]),
        ((1.0, 1.0), 20.0, [True, False]),
    ],
)
def test_the_claims_of_ssm(space, fewer, expected):
    rows = [{"shared_gb": gb, "fewer": fewer} for gb in space]
    assert [claim.holds for claim in ssm.claims(rows)] == expected


def test_windows_that_share_a_store_ask_for_less():
    sizes = [60, 80, 100, 120]
    shared = ssm.slide(sizes, 24, 1.0)
    alone = [ssm.slide([size], 6, 1.0, length=120) for size in sizes]
    assert shared.blocks < 130
    assert 0 < shared.requests < sum(outcome.requests for outcome in alone)


def test_the_claims_of_callcenter():
    def rows(done, peak, others):
        store = {"way": "store", "done": done, "peak_rss_mb": peak}
        return [store, *({"way": f"{way} in memory", "done": others} for way in ("1W", "2LA"))]

    def held(*given):
        return [claim.holds for claim in callcenter.claims(rows(*given))]

    assert held(1.0, 250.0, 0.5) == [True] * 4
    assert held(0.9, 250.0, 0.5) == [False, True, True, True]
    assert held(1.0, 257.0, 0.5) == [True, False, True, True]
    assert held(1.0, 250.0, 1.0) == [True, True, False, False]


def test_baselines_get_their_memory_beside_what_python_takes():
    assert callcenter.address_space(1_600_000_000, 24.0) == 3_600_000_000
    assert callcenter.address_space(1_600_000_000, 12.0) == 2_600_000_000


def test_the_call_center_has_144_aggregates():
    queries = callcenter.query_set(1.0)
    assert sum(len(query.node.aggregates) for query in queries) == 144
    assert callcenter.Batches()(0).num_rows == 5_000
