"""What the documentation shows is run: docstrings, the README's Python and the examples."""

import doctest
import importlib
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import windowpane

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    info.name
    for info in pkgutil.walk_packages(windowpane.__path__, "windowpane.")
    if not info.name.startswith("windowpane.spark")  # those need a session: tests/spark runs them
)
BLOCKS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SPARKS = [path for path in EXAMPLES if "pyspark" in path.read_text("utf-8")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCKS:  # in order, as a reader would type them
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102 - our own text
    assert f"```text\n{names['out'].explain()}```\n" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.spark
@pytest.mark.parametrize("path", SPARKS, ids=lambda path: path.name)
def test_the_example_runs_in_a_process_of_its_own(path, tmp_path):
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2  # twice the same: what came again changed nothing
    assert len(set(done.stdout.splitlines())) == 1


@pytest.mark.parametrize("path", [p for p in EXAMPLES if p not in SPARKS], ids=lambda path: path.name)
def test_the_example_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")


def test_the_readme_is_short_enough_to_read():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 160


def test_links_between_the_documents_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
