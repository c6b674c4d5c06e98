"""The classes of Spark's JVM are kept on disk, and a later JVM uses them."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from windowpane.cli.main import app
from windowpane.spark import classes

pytestmark = pytest.mark.usefixtures("home")

OPEN = """
from windowpane.spark.session import open_session
session = open_session("uses them", "local[1]", {"spark.driver.extraJavaOptions": "-Xshare:on"}, "OFF")
print("rows", session.range(3).count())
"""
"""With -Xshare:on the JVM does not start if it cannot use the archive."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "a folder"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def test_without_an_archive_the_jvm_gets_no_option():
    assert classes.java_options() == ""


def test_a_path_with_spaces_is_quoted():
    file = classes.archive()
    file.parent.mkdir(parents=True)
    file.touch()
    assert classes.java_options().startswith(f"'-XX:SharedArchiveFile={file}' ")


@pytest.mark.spark
def test_a_jvm_uses_what_another_kept(home):
    classes.write_archive()
    assert [path.name for path in home.rglob("*") if path.is_file()] == [classes.archive().name]
    done = subprocess.run([sys.executable, "-c", OPEN], capture_output=True, text=True, check=False)
    assert "rows 3" in done.stdout, done.stderr[-2000:]


@pytest.mark.spark
def test_an_archive_that_does_not_fit_is_not_used():
    file = classes.archive()
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not an archive" * 1000)
    opening = OPEN.replace("-Xshare:on", "")
    done = subprocess.run([sys.executable, "-c", opening], capture_output=True, text=True, check=False)
    assert "rows 3" in done.stdout, done.stderr[-2000:]


@pytest.mark.spark
def test_where_spark_does_not_run_nothing_is_kept(home, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(classes.NotKept, match=r"Spark did not run .*Java"):
        classes.write_archive()
    assert not classes.archive().exists()


def test_a_run_that_does_not_end_is_given_up(home, monkeypatch):
    monkeypatch.setattr(classes, "_LIMIT", 0)
    with pytest.raises(classes.NotKept, match="not ended after 0 s"):
        classes.write_archive()
    assert not list(home.rglob("*.jsa"))


def test_a_folder_that_cannot_be_made_is_named(home):
    home.touch()
    with pytest.raises(classes.NotKept, match=r"a folder.*XDG_CACHE_HOME"):
        classes.write_archive()


def test_warm_says_without_a_traceback_that_nothing_was_kept(home, monkeypatch):
    monkeypatch.setattr("windowpane.cli.warm._runs", lambda: iter(()))
    home.touch()
    done = CliRunner().invoke(app, ["warm"])
    assert done.exit_code == 1
    assert "no classes were kept" in done.output
    assert "Traceback" not in done.output
