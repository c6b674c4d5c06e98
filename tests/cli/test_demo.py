from typer.testing import CliRunner

from windowpane.cli.main import app


def test_the_market_runs_to_its_end_and_accounts_for_every_tick():
    outcome = CliRunner().invoke(app, ["demo", "--market", "--seconds", "0"])
    assert outcome.exit_code == 0, outcome.output
    assert "sliding 10 min every 1 s" in outcome.stdout
    assert "ALFA" in outcome.stdout
    assert "rejected 3 = 3,600,000" in outcome.stdout
