"""The benchmarks of update queues, in small."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.bench import real_streams, staleness, staleness_least, upstream
from windowpane.bench.staleness_cells import LOADS, Cell, Scale, cells, measured, ratios, row
from windowpane.simulate.overload import two_class, zipf
from windowpane.values.freshness import Policy

SMALL = Scale(4_000, 2)


@pytest.mark.paper
def test_the_figures_of_update_queues_are_as_the_paper_says():
    report = upstream.run(quick=True, progress=lambda *_: None)
    assert {row["figure"] for row in report.rows} == {"5a", "5b", "7a", "7b", "9", "5.3 front"}
    assert [claim.name for claim in report.claims if not claim.holds] == []
    difference, low, high, regular, random = report.falls_short
    assert difference.startswith("5: the number of keys affects")
    assert "load 1.5: 0.7" in low
    assert high.endswith("most at 7")
    assert regular.startswith("9: ten times slower, regular: the gain is largest at 7 slow updaters (1.4")
    assert random.startswith(
        "9: ten times slower, at random: LINECUTTING is worse than IN-PLACE at [5, 6, 7, 8"
    )


def test_a_cell_measures_every_policy():
    cell = Cell("zipf", zipf(20, 0.9), 2.0)
    found = measured(cell, SMALL)
    assert set(found) == set(Policy)
    assert found[Policy.APPEND][1] > 10 * found[Policy.FRESHEST][1]
    assert all(application > queue for queue, application in found.values())
    shown = row("zipf", 20, 2.0, found)
    assert shown["ratio"] == pytest.approx(ratios(found)[1], abs=1e-4)


def test_the_grid_has_every_distribution_and_load():
    grid = list(cells(LOADS))
    assert len(grid) == 2 * 9 * 7
    assert sum(not cell.skewed for cell in grid) == 2 * 7
    assert all(cell.shares.sum() == pytest.approx(1) for cell in grid)
    others = list(staleness.not_at_random(LOADS))
    assert len(others) == 5 * 3 * 7
    assert {cell.pattern for cell in others} == {"regular", "together", "mixed", "bursts", "batches"}
    unlike = list(staleness.unlike_costs(LOADS))
    assert len(unlike) == 2 * 3 * 7
    assert {round(cell.costs.max() / cell.costs.min(), 9) for cell in unlike} == {staleness.DEAR}


@pytest.mark.parametrize("dear", [1.0, 7.0])
def test_the_work_of_a_cell_is_that_of_its_load(dear):
    cell = Cell("z", zipf(5, 0.9), 3.0, dear=dear)
    assert (cell.costs * cell.shares).sum() == pytest.approx(3.0)
    assert cell.costs / cell.costs[0] == pytest.approx([1.0, dear, 1.0, dear, 1.0])


EVEN, SKEWED = Cell("u", zipf(4, 0), 2.0), Cell("z", zipf(4, 0.6), 2.0, 0.6)
HEAVY, STEEP = Cell("z", zipf(4, 1), 20.0, 1.0), Cell("z", zipf(4, 1.5), 2.0, 1.5)
CLOCK, BURSTS, STEPS, MIXED, BATCHES = (
    Cell("c", zipf(4, 0.6), 2.0, 0.6, way) for way in ("regular", "bursts", "together", "mixed", "batches")
)
COSTS = Cell("d", zipf(4, 0.6), 2.0, 0.6, dear=10.0)
OTHERS = [staleness.Found(CLOCK, (0.1, 0.7)), staleness.Found(CLOCK, (0.1, 1.06))]
OTHERS += [staleness.Found(COSTS, (0.1, 0.2)), staleness.Found(COSTS, (0.1, 1.06))]
OTHERS += [staleness.Found(MIXED, (0.1, 0.9)), staleness.Found(BATCHES, (0.1, 0.99))]
OTHERS += [staleness.Found(BURSTS, (0.1, 1.2)), staleness.Found(STEPS, (0.1, 1.0))]


def test_claims_look_at_the_worst_cell_at_the_mean_of_the_skewed_ones_and_at_clocks():
    pairs = [(EVEN, (1.0, 1.02)), (SKEWED, (0.94, 0.8)), (HEAVY, (1.0, 1.0)), (STEEP, (0.8, 0.6))]
    found = [*(staleness.Found(cell, pair) for cell, pair in pairs), *OTHERS]
    verdicts = [(round(c.value, 3), c.holds) for c in staleness.claims(found)]
    assert verdicts[:2] == [(1.0, True), (1.02, False)]  # the worst cell: queue, application
    assert verdicts[2:4] == [(0.87, True), (0.94, False)]  # queue staleness: all, milder cells
    assert verdicts[4] == (0.7, True)  # application staleness of all
    assert verdicts[5:7] == [(1.06, False), (0.88, False)]  # by a clock: worst, mean
    assert verdicts[7:11] == [(1.2, False), (1.2, False), (0.99, True), (0.99, True)]  # in bursts, in batches
    assert verdicts[11:] == [(1.06, False), (0.63, True)]  # of two costs
    (bursts,) = staleness.missed(found)
    assert "1.20 at c, load 2" in bursts


def test_application_staleness_of_the_milder_cells_is_told_where_it_is_above_the_bar():
    found = [staleness.Found(SKEWED, (0.9, 0.925)), staleness.Found(STEEP, (0.1, 0.1)), *OTHERS]
    assert "Zipf up to 0.9: 0.9250, aim 0.92" in staleness.missed(found)[0]


def test_real_streams_are_held_to_the_best_of_the_paper_where_there_are_any():
    assert staleness.claims_of_real([]) == []
    verdicts = [(c.value, c.holds) for c in staleness.claims_of_real([(0.1, 0.8), (0.1, 1.1)])]
    assert verdicts == [(1.1, False), (pytest.approx(0.95), True)]


THREE = staleness_least.Left(Cell("z", zipf(3, 0.6), 2.0), 0.9, room=1.001, above=(1.02, 1.0))


def test_what_is_left_is_claimed_to_be_little():
    mild = [
        staleness_least.Left(SKEWED, 0.94, hindsight=0.93),
        staleness_least.Left(SKEWED, 0.9, 0.89, 1.003),
    ]
    verdicts = [(round(c.value, 4), c.holds) for c in staleness_least.claims([*mild, THREE])]
    assert verdicts == [(1.02, False), (1.0, True), (round(0.92 / 0.91, 4), False), (1.003, False)]


@pytest.mark.parametrize(
    ("ours", "known", "shown"),
    [(0.93, 0.925, True), (0.93, 0.9205, False), (0.93, 0.91, False), (0.92, 0.925, False)],
)
def test_a_bar_that_is_missed_is_out_of_reach_only_if_no_policy_can_be_below_it(ours, known, shown):
    missed = staleness_least.Left(SKEWED, ours, hindsight=known)
    assert bool(staleness_least.missed([missed, THREE])) is shown


def test_what_is_left_is_looked_at_in_the_milder_cells_and_computed_where_it_can_be():
    size = staleness_least.Size(SMALL, 2, (2.0,), (4,), ())
    mild, three = (staleness_least.look(cell, size) for cell in (SKEWED, THREE.cell))
    assert 0.9 < mild.hindsight / mild.ratio < 1.02  # of the same streams
    assert mild.room is None
    assert mild.above is None
    assert three.hindsight is None
    assert 0.9999 < three.room < 1.005
    shown = staleness_least.row(three)
    assert shown["above_least"] == pytest.approx(three.above[1], abs=1e-5)
    assert shown["hindsight"] is None


@pytest.mark.parametrize("load", [1.5, 3.0])
def test_our_policy_beats_the_best_of_the_paper_where_updates_are_skewed(load):
    found = [
        ratios(measured(Cell(name, shares, load), Scale(20_000, 2)))
        for name, shares in (("zipf", zipf(100, 0.9)), ("two classes", two_class(10, 8)))
    ]
    assert max(max(pair) for pair in found) < 0.93


@pytest.mark.parametrize("load", [1.5, 5.0])
def test_our_policy_beats_the_best_of_the_paper_where_costs_differ(load):
    cell = Cell("zipf", zipf(100, 0.9), load, dear=10.0)
    assert max(ratios(measured(cell, Scale(20_000, 2)))) < 0.8


def test_a_stream_is_replayed_from_its_file(tmp_path, monkeypatch):
    times = pa.array([3_000_000, 1_000_000, 2_000_000], pa.timestamp("us"))
    pq.write_table(pa.table({"ts": times, "user": ["b", "a", "b"], "page": ["x", None, "y"]}),
                   tmp_path / "wikiticker.parquet")  # fmt: skip
    monkeypatch.setenv("WINDOWPANE_DATA", str(tmp_path))
    found = real_streams.replays(10)
    assert list(found) == ["wikiticker by user", "wikiticker by page"]
    by_user = found["wikiticker by user"]
    assert by_user.times.tolist() == [0.0, 1.0, 2.0]
    assert by_user.ids.tolist() == [1, 0, 0]
    assert (by_user.keys, found["wikiticker by page"].keys) == (2, 3)
    assert staleness.replayed(by_user, 2.0)[Policy.IN_PLACE][1] > 0


def test_real_streams_reach_their_bars_when_replayed_in_part():
    streams = real_streams.replays(staleness.QUICK_REPLAY)
    if not streams:
        pytest.skip("the files of real streams are not here")
    found = [ratios(staleness.replayed(s, load)) for s in streams.values() for load in staleness.REPLAY_LOADS]
    assert [claim.name for claim in staleness.claims_of_real(found) if not claim.holds] == []


def test_without_files_there_are_no_real_streams(tmp_path, monkeypatch):
    monkeypatch.setenv("WINDOWPANE_DATA", str(tmp_path))
    assert real_streams.replays(10) == {}
