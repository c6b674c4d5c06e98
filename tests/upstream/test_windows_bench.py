"""The benchmark of update windows: its points, and claims that can fail."""

import json

import numpy as np
import pytest

from windowpane.bench import upstream_memory, upstream_windows
from windowpane.bench.upstream_windows import SIZES, Point
from windowpane.core.upstream.memory import PagePool
from windowpane.core.upstream.memory_buffers import FixedBuffers
from windowpane.core.upstream.windows import WindowQueue


def series_of(points):
    series = {}
    for point in points:
        series.setdefault((point.figure, point.series), {})[point.x] = point.value
    return series


@pytest.fixture(scope="module")
def report():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upstream_windows, "SHEDS", 2)
        patch.setattr(upstream_windows, "SEEDS", 1)
        patch.setattr(upstream_windows, "SIZES", (1, 2, 3, 5, 20))
        patch.setattr(upstream_windows, "BEYOND", {"14": (200,), "14 counted": (20,)})
        patch.setattr(upstream_memory, "RATES", (20, 1_000))
        patch.setattr(upstream_memory, "LOADS", (2.0, 100.0))
        patch.setattr(upstream_windows, "LOADS", (2.0, 100.0))
        return upstream_windows.run(True, lambda *_: None)


def test_every_figure_is_there_as_json(report):
    figures = {row["figure"] for row in json.loads(json.dumps(report.document()))["rows"]}
    counted = {"13a, windows", "13b, windows"}
    assert figures == {"13a", "13b", "14", "14 counted", "16a", "16b", "17a", "17b", "7.2"} | counted
    assert all(set(row) == {"figure", "series", "x", "value"} for row in report.rows)


@pytest.mark.paper
def test_what_the_paper_says_holds_on_a_small_scale(report):
    assert [claim.name for claim in report.claims if not claim.holds] == []


def test_staleness_of_figure_13_is_what_can_be_worked_out(report):
    found = {(row["figure"], row["series"], row["x"]): row["value"] for row in report.rows}
    for size in (1, 2, 3, 5, 20):
        # LAZY: complete at 0, delivered after `size`. EAGER: the last tuple takes one unit.
        assert found["13a", "lazy", size] == pytest.approx(size / 2)
        assert found["13a", "eager", size] == pytest.approx(1 / (2 * size), abs=1e-4)


def test_memory_is_counted_as_the_managers_count_it(report):
    found = {(row["figure"], row["series"], row["x"]): row["value"] for row in report.rows}
    assert found["16a", "paged", 0.9] == 1.0
    assert found["17b", "naive", 100.0] <= upstream_memory.KEYS
    assert found["17b", "paged", 2.0] < found["17b", "naive", 2.0]


def test_the_naive_manager_holds_what_the_queue_holds():
    window = upstream_memory._BUFFERED
    queue = WindowQueue(window, PagePool(400, 512), 1, cost=0.1, block=4)
    queue.grow(upstream_memory.KEYS)
    naive, keys = (
        FixedBuffers(window.most_tuples, 1, keys=upstream_memory.KEYS),
        np.arange(upstream_memory.KEYS),
    )
    seen = set()
    for now, ids, times in upstream_memory._moments(0.9, 200, 60):
        queue.enqueue(ids, np.zeros((len(ids), 1), np.int64), times)
        upstream_memory.follow(naive, queue)
        seen |= set(ids.tolist())
        for mine, theirs in zip(naive.read(keys), queue._buffers.read(keys), strict=True):
            assert mine.tolist() == theirs.tolist()
        assert naive.usage.allocated == len(seen) * window.most_tuples
        assert naive.usage.used == queue.usage.used <= queue.usage.allocated
        if now is not None:
            queue.serve(now, window.size)
    assert queue.usage.allocated < naive.usage.allocated


def test_claims_fail_where_the_figures_say_otherwise():
    ratios = {
        "uniform order": lambda size: 1 + size,
        "zipf 0": lambda size: 1 + size,
        "zipf 0.5": lambda size: 1 / size,
        "zipf 0.9": lambda size: 1 / size,
    }
    points = [
        *(Point("13a", "lazy", s, s * s) for s in SIZES),
        *(Point("13a", "eager", s, 1.0) for s in SIZES),
        *(Point("13b", name, s, 5.0) for name in ("eager", "append") for s in SIZES),
        *(Point("13b", "lazy", s, 4.0) for s in SIZES),
        *(Point("13b", "append, random windows", s, 100 / s) for s in SIZES),
        *(Point("13b, windows", "append, random windows", s, 10.0 * (1 + s % 2)) for s in SIZES),
        *(Point("13b, windows", "lazy", s, 14.0) for s in SIZES),
        *(
            Point(figure, name, size, ratio(size))
            for figure in upstream_windows.SMALL
            for name, ratio in ratios.items()
            for sizes in (upstream_windows.SMALL, upstream_windows.LARGE, upstream_windows.BEYOND)
            for size in sizes[figure]
        ),
    ]
    for figure, xs, wrong in (("16", upstream_windows.THETAS, 1.05), ("17", upstream_windows.LOADS, 0.95)):
        for name, value in (
            ("paged", 0.5),
            ("naive", 0.4),
            ("paged, whole pages", 0.1),
            ("naive, whole pages", 0.4),
        ):
            points += [Point(f"{figure}a", name, x, value * wrong**i) for i, x in enumerate(xs)]
        for name, value in (("paged", 9.0), ("naive", 8.0)):
            points += [Point(f"{figure}b", name, x, value * wrong**i) for i, x in enumerate(xs)]
    points += [Point("7.2", "paged / naive", 0.0, 1.5)]
    series = series_of(points)
    claims = upstream_windows.claims(series)
    holding = {claim.name for claim in claims if claim.holds}
    assert holding == {
        "14: zipf 0: EAGER / LAZY, sizes 10 to 100 (least)",
        "14: zipf 0.5: less so for larger windows (large / small)",
        "14: zipf 0.9: less so for larger windows (large / small)",
        "14 counted: zipf 0: EAGER / LAZY, sizes 2 to 5 (least)",
        "14 counted: zipf 0.5: less so for larger windows (large / small)",
        "14 counted: zipf 0.9: less so for larger windows (large / small)",
    }
    assert upstream_windows.not_reproduced(series) == [
        "14: EAGER worse than LAZY for zipf 0.5: not at [200, 500]",
        "14: EAGER worse than LAZY for zipf 0.9: not at [200, 500]",
        "14 counted: EAGER worse than LAZY for zipf 0.5: not at [10, 20, 50, 100]",
        "14 counted: EAGER worse than LAZY for zipf 0.9: not at [10, 20, 50, 100]",
    ]
