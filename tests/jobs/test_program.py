"""`windowpane run` as a program: exit codes and messages, as far as they need no Spark."""

from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from windowpane.cli import main
from windowpane.jobs import load
from windowpane.jobs.show import (
    REASONS,
    Progress,
    progress_line,
    progress_of,
    progress_of_all,
    progress_table,
    table_text,
)
from windowpane.jobs.watch import Watch
from windowpane.spark.outputs import COUNTS
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


REPORT = {
    "batchId": 3,
    "timestamp": "2024-01-01T00:00:03.000Z",
    "inputRowsPerSecond": 1234.5,
    "numInputRows": 600,
    "batchDuration": 1500,
    "durationMs": {"addBatch": 1400},
    "stateOperators": [{"numRowsTotal": 4, "memoryUsedBytes": 77_000_000}],  # of RocksDB, not of windows
    "observedMetrics": {
        "job answers": {"rows": 7, "newest": "2024-01-01 00:00:00"},
        "job input": {"moment": 8_000_000_000_000},  # of a row that was rejected as too far ahead
    },
}


@pytest.fixture
def counts(monkeypatch):
    """What the runtime counts in every micro-batch."""
    found = {"kept": 590, "late": 4, "null_time": 1, "too_far_ahead": 5, "bound": 7_500_000}
    found |= {"high": 10_000_000, "state_bytes": 2_500_000}
    monkeypatch.setattr("windowpane.jobs.show.counts_of", lambda _: found)
    return found


@pytest.mark.usefixtures("counts")
def test_progress_is_read_from_sparks_report():
    found = progress_of("q", REPORT)
    assert found == Progress("q", 3, 1234.5, 600, 1.5, 2_500_000, 7, "2024-01-01 00:00:00", "2.5 s", 4, 6)
    line = progress_line(found)
    assert line.startswith("query=q  batch=3  rows/s=1,234  rows=600  seconds=1.5  answers=7")
    assert line.endswith("until=00:00:00  lag=2.5 s  late=4  bad=6  MB=2.5")
    assert progress_line(progress_of("q", None)).startswith("query=q  rows/s=0")


def test_a_batch_job_counts_every_row_once():
    counts = {name: 10**i for i, name in enumerate(COUNTS)} | {"answers": 5, "state_bytes": 0}
    found = progress_of_all("q", counts)
    assert (found.rows, found.answers, found.late) == (int("1" * len(COUNTS)), 5, 10)
    assert found.rejected == sum(counts[reason] for reason in REASONS)


def test_late_rows_add_up_and_what_a_micro_batch_does_not_tell_is_that_of_the_one_before(counts):
    first = progress_of("q", REPORT)
    counts |= {"bound": None, "late": 3}
    second = progress_of("q", REPORT | {"batchId": 4, "observedMetrics": {"job answers": {"rows": 0}}}, first)
    assert (second.late, second.rejected, second.lag) == (7, 12, "2.5 s")
    assert (second.batch, second.answers, second.newest) == (4, 0, "2024-01-01 00:00:00")


def test_the_lag_of_a_measure_that_is_no_time_is_a_number(counts):
    counts |= {"bound": 40, "high": 1_050}
    assert progress_of("q", REPORT | {"observedMetrics": {"job input": {"number": 9_999_999}}}).lag == "1,010"


@pytest.mark.usefixtures("counts")
def test_every_micro_batch_is_taken_into_the_progress_once():
    class Query:
        name = "q"

        def __init__(self):
            self.reports, self.looks = [], 0

        @property
        def recentProgress(self):  # noqa: N802 - as Spark calls it
            self.looks += 1
            return self.reports

        @property
        def lastProgress(self):  # noqa: N802 - as Spark calls it
            return self.reports[-1] if self.reports else None

    query = Query()
    watch = Watch(query)
    assert watch.look().batch == -1
    for number in range(3):
        query.reports.append(REPORT | {"batchId": number, "timestamp": f"2024-01-01T00:00:0{number}"})
    assert (watch.look().batch, watch.look().late) == (2, 12)
    idle = REPORT | {"batchId": 3, "timestamp": "2024-01-01T00:00:04", "durationMs": {"triggerExecution": 1}}
    query.reports.append(idle)
    assert (watch.look().batch, watch.look().late) == (2, 12)
    assert query.looks == 2, "all reports were read again although there was nothing new"
    # the micro-batch that follows an idle report has the number that the idle report had
    query.reports.append(REPORT | {"batchId": 3, "timestamp": "2024-01-01T00:00:05"})
    assert (watch.look().batch, watch.look().late) == (3, 16)


def test_the_display_fits_a_narrow_terminal():
    newest = "2024-01-01 00:00:00"
    full = Progress("hours", 1234, 98_765.4, 234_567, 23.4, 2_500_000_000, 99_567, newest, "59 min", 999, 99)
    out = StringIO()
    Console(file=out, width=80).print(progress_table([full], "Ctrl-C stops"))
    assert "…" not in out.getvalue()
    for word in ("234,567", "59 min", "99,567", "2500.0"):
        assert word in out.getvalue()


def test_values_are_shown_as_they_are():
    window = pa.array([{"start": 0, "end": 2}] * 3)
    text = table_text(
        pa.table({"k": ["[red]", None, "b"], "window": window, "x": [0.5, 1e9, None]}), "t", 2, 3
    )
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
    deep = f"Traceback (most recent call last):\npy4j.P.Py4JJavaError: {java}\nCaused by: a.B: no state.\n"
    assert reason(RuntimeError(f"{deep}Caused by: java.io.IOException: damaged")) == "no state. damaged"
    assert reason(RuntimeError(deep)) == "no state."
    lines = "Caused by: a.C: header is wrong:\n found x\nfile: a.csv\n\tat y\n\t... 3 more"
    assert reason(RuntimeError(f"{java}\n{lines}")) == "[NOT_FOUND] no x header is wrong: found x file: a.csv"
    assert reason(RuntimeError("\n[PATH_NOT_FOUND] no such path\nmore")) == "[PATH_NOT_FOUND] no such path"


class Session:
    """A session that has no tables but these."""

    def __init__(self, *tables):
        self.catalog, self._tables = self, tables

    def tableExists(self, name):  # noqa: N802 - as Spark calls it
        return name in self._tables

    def table(self, name):
        assert name in self._tables, f"[TABLE_OR_VIEW_NOT_FOUND] {name}"
        return self

    def count(self):
        return 1

    def limit(self, _):
        return self

    def toArrow(self):  # noqa: N802 - as above
        window = pa.array([{"start": 0, "end": 10}])
        return pa.table({"window": window, "count": [3], "revision": [0]})


def test_a_stop_before_the_start_has_no_memory_to_show(tmp_path, monkeypatch, capsys):
    """It ended with the failure to find the table of the memory sink, instead of exit code 130."""
    from windowpane.cli import run as program
    from windowpane.jobs.run import INTERRUPTED, Interrupts

    text = """\
source: {format: rate}
stream: {time: timestamp}
query: {window: tumbling(1 s), aggregates: count()}
sink: {format: memory}
"""
    (tmp_path / "job.yaml").write_text(text, "utf-8")
    job = load(tmp_path / "job.yaml")
    monkeypatch.setattr("windowpane.jobs.run.run", lambda *_: INTERRUPTED)
    assert program._live(job, Session(), Interrupts(), quiet=True) == INTERRUPTED
    assert capsys.readouterr().out == ""
    assert program._live(job, Session("query"), Interrupts(), quiet=True) == INTERRUPTED
    assert "query: 1 answers" in capsys.readouterr().out
