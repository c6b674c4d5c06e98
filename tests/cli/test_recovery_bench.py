"""The benchmark of recovery without its kills: the truth that it compares with, and claims that can fail."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windowpane.bench import recovery, recovery_child
from windowpane.bench.recovery import NONE, OFFSET, QUICK, Life, Outcome
from windowpane.bench.recovery_job import FAMILIES, Folder, in_process, published, write_input


@pytest.mark.parametrize("family", ["slices", "slidem"])
def test_the_truth_is_what_the_in_process_run_gives(tmp_path, family):
    folder = Folder(tmp_path, family)
    parts, truth = write_input(folder, files=12, rows=200, seed=5)
    found = in_process(folder, parts)
    assert [truth[name].compare(found[name]) for name in FAMILIES[family].outputs] == [(0, 0)] * len(truth)
    assert all(len(right.rows) > 100 for right in truth.values())
    times = pa.concat_tables(parts)["ts"]
    assert times.null_count
    assert (np.diff(times.drop_null().cast(pa.int64()).to_numpy()) < 0).mean() > 0.3


def test_a_reader_sees_published_micro_batches_in_order_and_nothing_else(tmp_path):
    folder = Folder(tmp_path)
    parts, _ = write_input(folder, files=1, rows=10, seed=5)
    for i, name in enumerate(("batch=10", "batch=9", "other")):
        (folder.out("sliding") / name).mkdir(parents=True)
        rows = parts[0].select(["key", "value"]).slice(i, 1)
        pq.write_table(rows, folder.out("sliding") / name / "a.parquet")
    rows = list(zip(*parts[0].select(["key", "value"]).to_pydict().values(), strict=True))
    assert published(folder) == {"sliding": [[rows[1]], [rows[0]]], "sessions": []}


LIVES = (
    *(Life(i, OFFSET, 0.1, 8.0, 9.0, offset=i + 1, commit=i) for i in range(len(QUICK.ends))),
    Life(3, NONE, 0.0, 9.0, 9.0, 14, 14, lost_tasks=1, lost_workers=2),
)


@pytest.mark.parametrize(
    ("outcome", "broken"),
    [
        (Outcome(LIVES, 0, 0, 0), None),
        (Outcome(LIVES, 1, 0, 0), "rows missing"),
        (Outcome(LIVES, 0, 2, 0), "rows extra"),
        (Outcome(LIVES, 0, 0, 1), "rows in which the in-process run differs"),
        (Outcome(LIVES[1:], 0, 0, 0), "kills of driver, JVM and workers"),
        (
            Outcome((*LIVES[:-1], Life(3, NONE, 0.0, 9.0)), 0, 0, 0),
            "tasks lost with a Python worker, and made up for",
        ),
        (
            Outcome((*LIVES[:-1], Life(3, NONE, 0.0, 9.0, lost_tasks=2, lost_workers=1)), 0, 0, 0),
            "tasks run again beyond one for each worker killed",
        ),
        (
            Outcome((Life(0, OFFSET, 0.1, 8.0, 9.0, 1, 0, surplus=3), *LIVES[1:]), 0, 0, 0),
            "surplus rows for readers after a kill",
        ),
    ],
)
def test_every_claim_can_fail(monkeypatch, outcome, broken):
    monkeypatch.setattr(recovery, "recover", lambda *_: outcome)
    report = recovery.run(quick=True, progress=lambda *_: None)
    assert [claim.name for claim in report.claims if not claim.holds] == (
        [f"slices: {broken}"] if broken else []
    )
    assert len(report.rows) == len(outcome.lives)


@pytest.mark.parametrize("commits", [True, False])
def test_a_child_may_take_long_while_it_commits(tmp_path, monkeypatch, commits):
    monkeypatch.setattr(recovery_child, "_PATIENCE", 0.1)
    monkeypatch.setattr(recovery_child.Child, "look", lambda _: None)
    child = recovery_child.Child.__new__(recovery_child.Child)
    child._folder, child._process = Folder(tmp_path), SimpleNamespace(poll=lambda: None)
    log = tmp_path / "checkpoint" / "commits"
    log.mkdir(parents=True)
    child._folder.log.touch()
    looks = iter(range(60))  # 0.3 s

    def reached():
        number = next(looks)
        if commits:
            (log / str(number)).touch()
        return number == 59

    if commits:
        assert child.until(reached)
    else:
        with pytest.raises(recovery_child.RunBroke, match="nothing happened"):
            child.until(reached)


def test_tasks_that_were_at_work_when_the_query_was_stopped_were_not_lost():
    lost = "WARN TaskSetManager: Lost task 0.0 in stage 5.0 (TID 10): Python worker exited unexpectedly"
    stopped = "WARN TaskSetManager: Lost task 1.0 in stage 45.0: TaskKilled (Stage cancelled: was stopped)"
    assert recovery_child.lost_tasks(f"INFO: hello\n{lost}\n{stopped}\n{lost}\n") == 2
