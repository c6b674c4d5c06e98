"""The formulas of the paper, with its own numbers, and beside what the stores really do."""

import doctest

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.spill.test_store import LAYOUT, batch, drained
from windowpane.core.spill import formulas
from windowpane.core.spill.formulas import (
    Load,
    bandwidth,
    distance_clusters,
    iops,
    shared_hit_rate,
    shared_requests,
    space_1w,
    space_2la,
    stretches,
)
from windowpane.core.spill.medium import MemoryMedium
from windowpane.core.spill.store import BlockStore
from windowpane.errors import BadQuery
from windowpane.values.sizes import Budget, size_in_bytes

CALL_CENTER = Load(1_000, 86_400, 10, 94, 20, 16, 16, 10_000, 1_000, 104)
CAPACITY = LAYOUT.capacity


def test_the_examples_in_the_docstrings():
    assert doctest.testmod(formulas).failed == 0


def test_the_call_center_needs_what_the_paper_says():
    """Section 2.2.2 says about 17 and 8 GB (in powers of two)."""
    assert 16.5 < space_2la(CALL_CENTER) / 2**30 < 17.5
    assert 7.5 < space_1w(CALL_CENTER) / 2**30 < 8.5


def test_the_io_of_the_call_center_is_what_the_paper_says():
    """Section 3.1: 2.9 requests and 0.18 MB each second."""
    requests = iops(1_000, 64 * 1024 // 94)
    assert round(requests, 1) == 2.9
    assert round(bandwidth(requests, 64 * 1024) / 2**20, 2) == 0.18


def steady(sizes, frames, blocks):
    """Requests and hits of windows that slide by so many blocks after they are full."""
    medium = MemoryMedium()
    store = BlockStore(LAYOUT, medium, frames)
    windows = [(size * CAPACITY, store.add_window()) for size in sorted(sizes)]
    fill = 3 * max(sizes)

    def push(at):
        store.append(batch(at * CAPACITY, CAPACITY))
        for size, window in windows:
            drained(store, window, max(0, store.rows(window) - size))

    for at in range(fill):
        push(at)
    before = (medium.counts.reads, medium.counts.writes, medium.counts.spared, store.hits, store.misses)
    for at in range(fill, fill + blocks):
        push(at)
    after = (medium.counts.reads, medium.counts.writes, medium.counts.spared, store.hits, store.misses)
    return [b - a for a, b in zip(before, after, strict=True)]


@pytest.mark.parametrize("frames", [2, 3, 20])
def test_formula_3_1_counts_the_requests_of_slidem(frames):
    reads, writes, *_ = steady([60], frames, 300)
    assert reads + writes == iops(300 * CAPACITY, CAPACITY)


def test_formula_4_1_without_hits_is_that_of_separate_stores():
    sizes = [40, 80, 120]
    reads, writes, spared, hits, misses = steady(sizes, len(sizes) + 1, 300)
    assert (hits, misses) == (0, 900)
    # what the paper writes again is still on disk here, and its write is spared
    assert reads + writes + spared == pytest.approx(shared_requests(3, 0.0) * 300, abs=3)
    assert shared_requests(3, 0.0) == 3 * iops(CAPACITY, CAPACITY)


@pytest.mark.parametrize("frames", [10, 30, 60, 100])
def test_formulas_4_1_and_4_2_bound_a_shared_store(frames):
    sizes = [60, 90, 120, 150]
    reads, writes, _, hits, misses = steady(sizes, frames, 600)
    measured = hits / (hits + misses)
    lengths = stretches(sizes)
    foreseen = shared_hit_rate(distance_clusters(frames - len(sizes) - 1, lengths), lengths)
    # at least as many hits as foreseen: the distance rule never does worse than even clusters
    assert measured >= foreseen - 0.05
    assert reads + writes <= shared_requests(len(sizes), measured) * 600 + len(sizes)
    assert reads == misses


def test_more_windows_cost_fewer_requests_each():
    """Figure 11: windows that lie closer share more."""
    requests = {}
    for n in (2, 4, 8):
        sizes = [int(s) for s in np.linspace(100, 200, n)]
        reads, writes, *_ = steady(sizes, 60, 300)
        requests[n] = (reads + writes) / n
    assert requests[8] < requests[4] < requests[2]


# the planner


def query(window, keys="k"):
    schema = pa.schema({"t": pa.timestamp("us"), "k": pa.string(), "v": pa.float64()})
    return wp.stream(schema=schema, time="t", keys=keys).window(window).agg(wp.sum("v"))


def test_few_keys_are_kept_as_slices_and_many_as_tuples():
    hour = query(wp.sliding("1 hour", "1 min"))
    assert "choose  2LA  because slices take less than tuples" in hour.explain(
        "64 MB", rate=10_000, groups=50
    )
    thin = query(wp.sliding("1 hour", "1 s"))
    told = thin.explain("64 MB", rate=10, groups=100_000)
    assert "choose  1W  because tuples take less than slices" in told
    assert "by formula 2.2" in told


def test_a_query_without_keys_runs_in_memory():
    free = query(wp.sliding("1 hour", "1 min"), keys=())
    assert "choose  slices  because without keys the slices are known to fit" in free.explain("64 MB")
    assert type(free.start(memory="64 MB")).__name__ == "QueryRunner"


def test_a_window_for_each_tuple_is_kept_as_tuples():
    told = query(wp.per_row("1 hour").per()).explain("1 MB")
    assert "2LA     needs panes  by formula 2.1" in told
    assert "choose  1W  because a window that slides by tuple has no panes" in told


def test_the_runner_tells_what_it_chose():
    runner = query(wp.sliding("1 hour", "1 min")).start(memory="1 MB")
    assert runner.explain() == "no rows came yet, so that no technique is chosen.\n"
    seconds = np.arange(1_000).astype("datetime64[s]").astype("datetime64[us]")
    runner.push({"t": seconds, "k": ["a", "b"] * 500, "v": np.ones(1_000)})
    assert "at 1.001 tuples/s and 2 keys" in runner.explain()
    assert "choose  2LA" in runner.explain()
    runner.discard()


@pytest.mark.parametrize(
    ("window", "aggregate", "options", "message"),
    [
        (wp.session("1 s"), wp.count(), {}, "memory= serves sliding windows, tumbling windows and per_row"),
        (wp.tumbling("1 s"), wp.collect("v"), {}, r"collect\(\) of query 'query' cannot run within memory="),
        (wp.tumbling("1 s"), wp.count(), {"lateness": "1 s"}, "does not go with an allowed lateness"),
        (wp.per_row("1 s", every=2), wp.count(), {}, r"per_row\(...\) with every=1"),
    ],
)
def test_what_cannot_run_within_a_budget_is_told(window, aggregate, options, message):
    schema = pa.schema({"t": pa.timestamp("us"), "v": pa.float64()})
    asked = wp.stream(schema=schema, time="t", **options).window(window).agg(aggregate)
    with pytest.raises(BadQuery, match=message):
        asked.start(memory="64 MB")


def test_sizes_are_read():
    assert size_in_bytes("64 MB") == 64_000_000
    assert size_in_bytes("1 GiB") == 2**30
    assert size_in_bytes(4096) == 4096
    for wrong in ("64 XB", "MB", "-1 MB", 0, None, "1e9"):
        with pytest.raises(BadQuery, match="is no size"):
            size_in_bytes(wrong)
    with pytest.raises(BadQuery, match="A window needs two"):
        Budget(10**6, blocks=1)
    with pytest.raises(BadQuery, match="spill_dir= is for a run within memory="):
        query(wp.tumbling("1 s")).start(spill_dir="somewhere")
