"""Every public name and command is documented, and the generated pages are up to date."""

import importlib.util
from pathlib import Path

import pytest

import windowpane

ROOT = Path(__file__).parents[2]


def load(script: str):
    spec = importlib.util.spec_from_file_location(script, ROOT / "scripts" / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("script", ["api_docs", "cli_docs"])
def test_the_page_is_what_the_code_says(script):
    module = load(script)
    assert module.PAGE.read_text("utf-8") == module.render(), f"docs/{module.PAGE.name}: run `make golden`"


@pytest.mark.parametrize("name", getattr(windowpane, "__all__", ()))
def test_every_public_name_has_a_docstring_of_its_own(name):
    thing = getattr(windowpane, name)
    if callable(thing) and not isinstance(thing, type(int | str)):
        doc = thing.__doc__
        assert doc, f"windowpane.{name} has no docstring"
        assert not doc.startswith(f"{name}("), f"windowpane.{name} has only the docstring of a dataclass"
    assert f"## {name}\n" in (ROOT / "docs" / "api.md").read_text("utf-8")


def test_every_command_and_option_has_a_help_text():
    page = load("cli_docs")
    for command in page.commands():
        text = page.help_of(command)
        assert text.startswith(f"Usage: windowpane {command}"), text
        assert f"## windowpane {command}\n" in (ROOT / "docs" / "cli.md").read_text("utf-8")
