"""`bench latest-state`, small: what a micro-batch writes and reads goes by what it changed."""

import json

import pytest
from typer.testing import CliRunner

from windowpane.bench import latest_state
from windowpane.cli.main import app

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(latest_state, "QUICK", (15_000, 90_000))
    monkeypatch.setattr(latest_state, "UPDATES", 300)
    monkeypatch.setattr(latest_state, "BUDGET", 0.15)
    monkeypatch.setattr(latest_state, "FEW_KEYS", 600)


def test_bytes_go_by_what_changed_and_not_by_what_is_known():
    outcome = CliRunner().invoke(app, ["bench", "latest-state", "--quick", "--json"])
    document = json.loads(outcome.stdout)
    assert outcome.exit_code == 0, document["claims"]
    assert [row["policy"] for row in document["rows"]] == [
        policy for policy in latest_state.POLICIES for _ in latest_state.QUICK
    ]
    for row in document["rows"]:
        assert 0 < row["written_mb"] < 1.0
        assert 0 < row["read_mb"] < 1.0
    last = document["rows"][-1]
    assert last["waiting"] > 90_000
    assert last["state_mb"] > 5 * last["written_mb"]


def test_a_store_that_writes_all_it_knows_does_not_reach_the_bar(monkeypatch):
    def write_all(store, _):
        store.anew()

    monkeypatch.setattr("windowpane.spark.fresh_store.Store.note", write_all)
    report = latest_state.run(True, lambda *_: None)
    missed = [claim.name for claim in report.claims if not claim.holds]
    assert len(missed) >= 4
