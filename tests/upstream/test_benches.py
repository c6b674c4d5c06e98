"""The benchmarks of update queues, in small."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.bench import real_streams, staleness, upstream
from windowpane.simulate.overload import two_class, zipf
from windowpane.values.freshness import Policy

SMALL = staleness.Scale(4_000, 2, 2, ())


@pytest.mark.paper
def test_the_figures_of_update_queues_are_as_the_paper_says():
    report = upstream.run(quick=True, progress=lambda *_: None)
    assert {row["figure"] for row in report.rows} == {"5a", "5b", "7a", "7b", "9", "5.3 front"}
    assert [claim.name for claim in report.claims if not claim.holds] == []
    regular, random = report.falls_short
    assert regular.startswith("9: ten times slower, regular: the gain is largest at 7 slow updaters (1.4")
    assert random.startswith(
        "9: ten times slower, at random: LINECUTTING is worse than IN-PLACE at [5, 6, 7, 8"
    )


def test_a_cell_measures_every_policy():
    cell = staleness.Cell("zipf", zipf(20, 0.9), 2.0)
    found = staleness.measured(cell, SMALL)
    assert set(found) == set(Policy)
    assert found[Policy.APPEND][1] > 10 * found[Policy.FRESHEST][1]
    assert all(application > queue for queue, application in found.values())
    row = staleness.row("zipf", 20, 2.0, found)
    assert row["ratio"] == pytest.approx(staleness.ratios(found)[1], abs=1e-4)


def test_the_grid_has_every_distribution_and_load():
    grid = list(staleness.cells(staleness.LOADS))
    assert len(grid) == 2 * 9 * 7
    assert sum(not cell.skewed for cell in grid) == 2 * 7
    assert all(cell.shares.sum() == pytest.approx(1) for cell in grid)


EVEN, SKEWED = staleness.Cell("u", zipf(4, 0), 2.0), staleness.Cell("z", zipf(4, 0.6), 2.0, 0.6)
HEAVY, STEEP = staleness.Cell("z", zipf(4, 1), 20.0, 1.0), staleness.Cell("z", zipf(4, 1.5), 2.0, 1.5)
THREE = staleness.Found(staleness.Cell("z", zipf(3, 0.6), 2.0), (0.9, 0.9), room=1.001, above=(1.02, 1.0))


def test_claims_look_at_the_worst_cell_at_the_mean_of_the_skewed_ones_and_at_what_is_left():
    ratios = [(EVEN, (1.0, 1.02)), (SKEWED, (0.94, 0.8)), (HEAVY, (1.0, 1.0)), (STEEP, (0.8, 0.6))]
    found = [*(staleness.Found(cell, pair) for cell, pair in ratios), THREE]
    verdicts = [(round(c.value, 3), c.holds) for c in staleness.claims(found)]
    queue, application = verdicts[:3], verdicts[3:6]
    assert queue == [(1.0, True), (0.87, True), (0.94, False)]
    assert application == [(1.02, False), (0.7, True), (0.8, True)]
    assert verdicts[6:] == [(1.02, False), (1.0, True), (1.001, True)]


@pytest.mark.parametrize(
    ("ours", "known", "shown"),
    [(0.93, 0.925, True), (0.93, 0.9205, False), (0.93, 0.91, False), (0.92, 0.925, False)],
)
def test_a_bar_that_is_missed_is_out_of_reach_only_if_no_policy_can_be_below_it(ours, known, shown):
    missed = staleness.Found(SKEWED, (0.9, ours), hindsight=known)
    easy = staleness.Found(STEEP, (0.1, 0.1))  # does not count among the milder ones
    assert bool(staleness.out_of_reach([missed, easy, THREE])) is shown


def test_what_is_left_is_looked_at_in_the_milder_cells_and_computed_where_it_can_be():
    cells = (EVEN, SKEWED, HEAVY, STEEP, THREE.cell)
    found = [staleness.find(cell, staleness.measured(cell, SMALL), SMALL) for cell in cells]
    even, mild, heavy, steep, three = found
    assert all(set(staleness.left(one)) == set() for one in (even, heavy, steep))
    assert set(staleness.left(mild)) == {"hindsight"}
    assert 0.9 < mild.hindsight / mild.ratio[1] < 1.02  # of the same streams
    assert set(staleness.left(three)) == {"room", "above_least"}
    assert 0.9999 < three.room < 1.005


@pytest.mark.parametrize("load", [1.5, 3.0])
def test_our_policy_beats_the_best_of_the_paper_where_updates_are_skewed(load):
    cells = [
        staleness.Cell("zipf", zipf(100, 0.9), load),
        staleness.Cell("two classes", two_class(10, 8), load),
    ]
    ratios = [staleness.ratios(staleness.measured(cell, staleness.Scale(20_000, 2, 2, ()))) for cell in cells]
    assert max(max(pair) for pair in ratios) < 0.93


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


def test_without_files_there_are_no_real_streams(tmp_path, monkeypatch):
    monkeypatch.setenv("WINDOWPANE_DATA", str(tmp_path))
    assert real_streams.replays(10) == {}
