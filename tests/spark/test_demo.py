"""The demo in a process of its own, as `make demo` runs it, with fewer hours of calls."""

import subprocess
import sys

import pytest

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
