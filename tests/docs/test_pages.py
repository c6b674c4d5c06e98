"""What the documentation says is run: the examples of its pages; every technique has its card."""

import doctest
import re
from pathlib import Path

import pytest

from windowpane.planner.rules import Final, Lane

ROOT = Path(__file__).parents[2]
PAGES = ["windows.md", "semantics.md", "spill.md"]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CARDS = re.findall(
    r"^## (.+?)\n\n```text\n(.*?)^```",
    (ROOT / "docs" / "techniques.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)
FIELDS = ["order", "needs", "insert", "window", "space", "paper", "code", "figure", "limits"]


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_the_page_are_true(name):
    text = (ROOT / "docs" / name).read_text("utf-8")
    names, runner = {}, doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for block in re.finditer(r"^```pycon\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, block.start(1))
        test = doctest.DocTestParser().get_doctest(block[1], names, name, name, line)
        runner.run(test, clear_globs=False)
        names.update(test.globs)
    assert runner.failures == 0
    assert runner.tries > 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_example_is_short(path):
    assert len(path.read_text("utf-8").splitlines()) < 40


def test_there_are_eight_examples():
    first = ["dashboard", "idempotent_sink", "overload", "own_aggregate", "own_window"]
    assert [path.stem for path in EXAMPLES] == [*first, "push", "sessions", "vwap"]


@pytest.mark.parametrize(
    "path", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda p: p.name
)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(path):
    prose = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", prose, re.MULTILINE):
        cells = [len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row))) for row in table.splitlines()]
        assert len(set(cells)) == 1, table.splitlines()[0]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_example_imports_public_names_only(path):
    found = re.findall(r"^(?:from|import) (windowpane[.\w]*)", path.read_text("utf-8"), re.MULTILINE)
    assert set(found) <= {"windowpane", "windowpane.simulate", "windowpane.spark", "windowpane.testing"}


@pytest.mark.parametrize("choice", [*Lane, *Final], ids=lambda choice: choice.value)
def test_every_lane_and_every_final_aggregation_has_a_card(choice):
    assert any(f"explain says `{choice.value}`" in text for text in prose()), choice.value


def prose() -> list[str]:
    page = (ROOT / "docs" / "techniques.md").read_text("utf-8")
    return [part.split("```")[-1] for part in page.split("\n## ")[1:]]


@pytest.mark.parametrize(("title", "card"), CARDS, ids=[title for title, _ in CARDS])
def test_a_card_has_every_field_and_names_files_that_exist(title, card):
    found = re.findall(r"(?:^|  )(" + "|".join(FIELDS) + r")  +", card, re.MULTILINE)
    assert sorted(found) == sorted(FIELDS), title
    for file in re.findall(r"\b(?:core|bench|planner)/[\w/]+\.py", card):
        assert (ROOT / "src" / "windowpane" / file).exists(), f"{title}: {file}"


def test_the_python_of_the_reliability_page_runs():
    text = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "reliability.md", "exec"), {})  # noqa: S102 - our own text
