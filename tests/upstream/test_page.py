"""The page on freshness is true: its examples run, and its timelines are those of a run."""

import doctest
import re
from pathlib import Path

import pytest

import windowpane as wp
from tests.upstream.test_staleness import Figure2

PAGE = Path(__file__).parents[2] / "docs" / "upstream.md"


def test_the_examples_of_the_page_are_true():
    names, runner = {}, doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for block in re.finditer(r"^```pycon\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        test = doctest.DocTestParser().get_doctest(block[1], names, PAGE.name, PAGE.name, 0)
        runner.run(test, clear_globs=False)
        names.update(test.globs)
    assert runner.failures == 0
    assert runner.tries > 15


def need_drawn(figure, lines):
    """The first drawing after the name of a figure has these lines; what is said beside each of them."""
    block = re.search(rf"{figure} of the paper.*?```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[1]
    page = block.splitlines()
    assert [line[: len(made)] for line, made in zip(page, lines, strict=True)] == lines
    beside = [line[len(made) :] for line, made in zip(page, lines, strict=True)]
    assert all(not said or said.startswith("      ") for said in beside)
    return [said.strip() for said in beside]


def cells(values):
    return "".join(f"{value!s:>3}" for value in values)[2:].rstrip()


@pytest.mark.paper
def test_the_timeline_of_figure_2_is_that_of_a_run():
    run = Figure2().run()
    moments = range(13)
    lines = {
        "arrives": cells("abcdefg"[now // 2] if now % 2 == 0 else "" for now in moments),
        "time": cells(moments),
        "serves": "".join(run.serves.get(now, "-") + "--" for now in moments).rstrip("-"),
        "delivers": "".join(f"{run.delivers[now]}' " if now in run.delivers else "   " for now in moments),
        "application": cells(run.application),
        "queue": cells(run.queue),
    }
    beside = need_drawn("Figure 2", [f"{name:<12}{line}".rstrip() for name, line in lines.items()])
    lost = [name for name in "abcdefg" if name not in run.serves.values()]
    assert lost == ["c", "f"]
    assert beside[2] == "c is overwritten by d, f by g"


@pytest.mark.paper
def test_the_lines_of_figure_6_are_those_of_a_queue():
    lines = []
    for policy in ("append", "fifo", "in_place"):
        queue = wp.UpdateQueue(lambda name: name[:-1], policy)
        for name in ("IBM1", "GM1", "MSFT1", "IBM2"):
            queue.put(name)
        queue.close()
        lines.append(f"{policy:<10}" + "  ".join(queue))
    need_drawn("Figure 6", lines)
