"""The one Spark session of all tests, and a PostgreSQL server."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import spark

__all__ = ["spark"]
SCRIPT = Path(__file__).parents[2] / "scripts" / "postgres.py"


@pytest.fixture(scope="session")
def postgres():
    """The text to connect to a real server with, started for these tests."""
    command = [sys.executable, str(SCRIPT), "start"]
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    if started.returncode == 3:
        pytest.skip(started.stderr.strip())
    assert started.returncode == 0, started.stderr
    folder, address = started.stdout.splitlines()
    yield address
    subprocess.run([sys.executable, str(SCRIPT), "stop", folder], check=True)
