"""`windowpane run` as a program: exit codes and messages, as far as they need no Spark."""

from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from windowpane.cli import main
from windowpane.jobs import load
from windowpane.jobs.show import Progress, progress_line, progress_of, progress_table, table_text
from windowpane.spark.session import reason

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "jobs").glob("*.yaml"))


@pytest.fixture(autouse=True)
def _signals():
    """The command takes signals over; give them back."""
    import signal

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("options", "code"), [([], 2), (["--check"], 1)])
def test_a_bad_job_file_is_one_message_and_an_exit_code(tmp_path, options, code):
    (tmp_path / "job.yaml").write_text("sorce: 1\n", "utf-8")
    outcome = CliRunner().invoke(main.app, ["run", str(tmp_path / "job.yaml"), *options])
    assert outcome.exit_code == code
    assert "job.yaml:1: sorce: there is no such key here. Did you mean 'source'?" in outcome.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_example_is_a_sound_file(path, tmp_path):
    (tmp_path / "ticks").mkdir()
    copy = tmp_path / path.name
    copy.write_text(path.read_text("utf-8"), "utf-8")
    assert load(copy).queries


def test_progress_is_read_from_sparks_report():
    last = {
        "batchId": 3,
        "inputRowsPerSecond": 1234.5,
        "numInputRows": 600,
        "batchDuration": 1500,
        "stateOperators": [{"numRowsTotal": 4, "memoryUsedBytes": 2_500_000}],
        "observedMetrics": {"windowpane": {"rows": 7, "newest": "2024-01-01 00:00:00"}},
    }
    found = progress_of("q", last, "windowpane")
    assert found == Progress("q", 3, 1234.5, 600, 1.5, 4, 2_500_000, 7, "2024-01-01 00:00:00")
    assert found.lag > 0
    line = progress_line(found)
    assert line.startswith("query=q  batch=3  rows/s=1,234  rows=600  seconds=1.5  answers=7")
    assert "until=00:00:00" in line
    assert line.endswith("state=4  MB=2.5")
    assert progress_line(progress_of("q", None, "windowpane")).startswith("query=q  rows/s=0")
    assert Progress("q", newest="17").lag is None


def test_the_display_fits_a_narrow_terminal():
    newest = "2024-01-01 00:00:00"
    full = Progress("averages", 1234, 98_765.4, 1_234_567, 123.4, 99_999, 2_500_000_000, 1_234_567, newest)
    out = StringIO()
    Console(file=out, width=80).print(progress_table([full], "Ctrl-C stops"))
    assert "…" not in out.getvalue()
    assert "1,234,567" in out.getvalue()


def test_values_are_shown_as_they_are():
    window = pa.array([{"start": 0, "end": 2}] * 3)
    text = table_text(pa.table({"k": ["[red]", None, "b"], "window": window, "x": [0.5, 1e9, None]}), "t", 2)
    assert "[red]" in text
    assert "null" in text
    assert "1e+09" in text
    assert text.endswith("and 1 more rows\n")


def test_the_reason_of_a_long_error_is_one_line():
    text = """[STREAM_FAILED] Query [id = 1] terminated
Traceback (most recent call last):
  File "x.py", line 1, in y
windowpane.values.errors.Overflow: the sum does not fit.

JVM stacktrace:"""
    assert reason(RuntimeError(text)) == "the sum does not fit."
    assert reason(RuntimeError("Traceback (most recent call last):\n a\nOSError: disk full\n")) == "disk full"
    java = "An error occurred while calling o1.load.\n: org.apache.spark.E: [NOT_FOUND] no x\n\tat y"
    assert reason(RuntimeError(java)) == "[NOT_FOUND] no x"
    assert reason(RuntimeError("\n[PATH_NOT_FOUND] no such path\nmore")) == "[PATH_NOT_FOUND] no such path"
