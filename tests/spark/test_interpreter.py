"""Spark's Python processes import PySpark as it is installed, and not from Spark's zip file."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from windowpane.spark import interpreter

PACKAGE = Path(pyspark.__file__).parent
PRINT = "import os; print(os.environ['PYTHONPATH'])"


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "a folder"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return folder


def started(*entries):
    """The path that a process of the launcher has, of one that Spark set."""
    env = {**os.environ, "PYTHONPATH": ":".join(map(str, entries))}
    command = [interpreter.python("local[2]"), "-c", PRINT]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.strip()


def test_what_spark_puts_first_is_taken_off_the_path(home):
    zips = PACKAGE / "python" / "lib" / "pyspark.zip", PACKAGE / "python" / "lib" / "py4j-0.10-src.zip"
    mine = home / "mine", home / "pyspark.zip"
    assert started(*zips, PACKAGE / "jars" / "core.jar", *mine) == ":".join(map(str, mine))
    assert started(*zips) == ""
    assert started(*mine, zips[0]) == ":".join(map(str, (*mine, zips[0])))
    assert started() == ""


def test_the_launcher_is_written_once_and_when_damaged(home):
    first = interpreter.python("local[2]")
    written = Path(first).stat().st_mtime_ns
    assert interpreter.python("local-cluster[2,1,512]") == first
    assert Path(first).stat().st_mtime_ns == written
    Path(first).write_text("damaged")
    assert interpreter.python("local[2]") == first
    assert Path(first).read_text().startswith("#!/bin/sh")
    assert [path.parent for path in home.rglob("*") if path.is_file()] == [home / "windowpane"]


@pytest.mark.usefixtures("home")
def test_elsewhere_it_is_the_interpreter_itself(monkeypatch, tmp_path):
    assert interpreter.python("spark://host:7077") == sys.executable
    assert interpreter.python("yarn") == sys.executable
    monkeypatch.setenv("SPARK_HOME", str(PACKAGE))
    assert interpreter.python("local[2]") != sys.executable
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))  # the JVM is of another Spark, and so is its zip file
    assert interpreter.python("local[2]") == sys.executable
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setattr(interpreter, "_PACKAGE", tmp_path / "pyspark")  # on the path by other means
    assert interpreter.python("local[2]") == sys.executable


def test_where_no_launcher_can_be_kept_it_is_the_interpreter_itself(home, monkeypatch):
    home.write_text("a file")
    assert interpreter.python("local[2]") == sys.executable
    home.unlink()
    monkeypatch.setattr(os, "access", lambda *_: False)  # as in a folder that may hold no programs
    assert interpreter.python("local[2]") == sys.executable


def test_workers_import_pyspark_as_it_is_installed(spark):
    if os.environ["PYSPARK_PYTHON"] != interpreter.python("local[2]"):
        pytest.skip("PYSPARK_PYTHON names another interpreter")
    tasks = spark.sparkContext.parallelize([0], 1)
    assert tasks.map(lambda _: __import__("pyspark").__file__).collect() == [pyspark.__file__]
