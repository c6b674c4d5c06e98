"""The demo in a process of its own, as `make demo` runs it, with fewer hours of calls."""

import signal
import subprocess
import sys
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from windowpane.cli import demo_calls

pytestmark = pytest.mark.spark


def test_the_call_center_runs_to_its_end_and_accounts_for_every_step():
    command = [sys.executable, "-m", "windowpane", "demo", "--hours", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "144 figures over 24 hours" in done.stdout
    assert "agentId" in done.stdout
    assert "kept 144,000 + late 0 + rejected 0 = 144,000" in done.stdout
    assert "Traceback" not in done.stderr
    assert "TransformWithState" not in done.stderr


def test_a_demo_that_serves_goes_on_until_it_is_stopped_and_keeps_no_files(spark, tmp_path, monkeypatch):
    """Its input filled the disk."""
    files, table = [], demo_calls._Demo._table

    def looked(self):
        files.append(len(list((tmp_path / "calls").iterdir())))
        if len(files) == 3:
            signal.raise_signal(signal.SIGINT)
        return table(self)

    monkeypatch.setattr(demo_calls._Demo, "_table", looked)
    monkeypatch.setattr(demo_calls, "GROUPS", tuple(demo_calls.GROUPS)[:1])
    monkeypatch.setattr(demo_calls, "SPEC", replace(demo_calls.SPEC, rows=500))
    out = StringIO()
    before = signal.getsignal(signal.SIGINT)
    stop = demo_calls._stop_by_interrupt()
    assert demo_calls._Demo(spark, tmp_path, Console(file=out), stop).run(2, serve=True) == 0
    assert signal.getsignal(signal.SIGINT) == before, "a second Ctrl-C would not end it"
    assert files == [1, 1, 1]
    assert "stopped" in out.getvalue()
    assert "kept 1,500 + late 0 + rejected 0 = 1,500" in out.getvalue()
