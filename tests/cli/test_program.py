import subprocess
import sys

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from windowpane.cli import main
from windowpane.values.errors import BadWindow


def test_the_version_is_printed():
    outcome = CliRunner().invoke(main.app, ["--version"])
    assert outcome.exit_code == 0
    assert outcome.stdout.startswith("windowpane ")


def test_the_package_runs_as_a_program():
    command = [sys.executable, "-m", "windowpane", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Usage: python -m windowpane" in done.stdout


def test_an_error_of_our_own_is_one_line_without_a_traceback(monkeypatch, capsys):
    def fail():
        raise BadWindow("slide is 0 [sic]")

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit) as stop:
        main.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == "windowpane: slide is 0 [sic]\n"


def test_help_does_not_load_the_engine():
    code = (
        "import sys, windowpane.cli.main; "
        "print([m for m in ('pyspark', 'windowpane.bench', 'windowpane.simulate') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_simulate_writes_the_stream_it_was_asked_for(tmp_path):
    out = tmp_path / "stream.parquet"
    arguments = ["simulate", str(out), "--rows", "500", "--keys", "3", "--disorder", "0.5"]
    assert CliRunner().invoke(main.app, arguments).exit_code == 0
    table = pyarrow.parquet.read_table(out)
    assert table.num_rows == 500
    assert table.column_names == ["ts", "key", "value"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.txt"], "'x.txt' ends in none of .parquet, .arrow, .csv."),
        (["x.csv", "--rate", "0"], "rate is 0, but it must be above 0."),
        (["x.csv", "--max-delay", "soon"], "'soon' is no duration."),
    ],
)
def test_simulate_refuses_what_makes_no_sense(arguments, message):
    outcome = CliRunner().invoke(main.app, ["simulate", *arguments])
    assert outcome.exit_code == 2
    assert message in " ".join(outcome.stderr.split())
