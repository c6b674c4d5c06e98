"""The examples of the page on freshness are true."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "upstream.md"


def test_the_examples_of_the_page_are_true():
    names, runner = {}, doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for block in re.finditer(r"^```pycon\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        test = doctest.DocTestParser().get_doctest(block[1], names, PAGE.name, PAGE.name, 0)
        runner.run(test, clear_globs=False)
        names.update(test.globs)
    assert runner.failures == 0
    assert runner.tries > 15
