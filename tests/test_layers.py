"""The folders are the architecture: a module imports only its own layer or lower ones."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"

LAYERS = (
    ("values",),
    ("core",),
    ("plan",),
    ("planner",),
    ("query", "explain"),
    ("local", "spark", "errors", ""),  # "": the package itself, which gathers the public names
    ("testing", "simulate", "bench", "jobs", "cli", "dashboard", "__main__"),
)
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}

# A library that may be named in one place only, and why.
HOMES = {
    "pyspark": ("spark/", "the other layers run without Spark"),
    "numba": ("core/jit.py", "every jit option stands in one file"),
    "typer": ("cli/", "only a command parses arguments"),
}
LONGEST_FILE = 400  # lines; aim for 300


def imports_of(tree: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """Every module that the code names in an import, also inside functions and by `import_module`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module, names, level):
                base = ".".join([*package[: len(package) - level + 1], *([module] if module else [])])
                origin = base if level else module or ""
                yield from (f"{origin}.{alias.name}" for alias in names)
            case ast.Call(ast.Name("__import__" | "import_module"), [ast.Constant(str(name)), *_]):
                yield name
            case ast.Call(ast.Attribute(_, "import_module"), [ast.Constant(str(name)), *_]):
                yield name


def part_of(dotted: str, src: Path) -> str:
    """The layer's folder or file that `windowpane.x.y` lies in; '' for the package itself."""
    name = dotted.split(".")[1] if "." in dotted else ""
    home = src / "windowpane" / name
    return name if name in RANK or home.is_dir() or home.with_suffix(".py").is_file() else ""


def violations(src: Path) -> list[str]:
    """What breaks the rules under `src/windowpane`, one sentence each."""
    found = []
    for path in sorted((src / "windowpane").rglob("*.py")):
        inside = path.relative_to(src / "windowpane").as_posix()
        module = path.relative_to(src).with_suffix("").parts
        package = module[:-1]
        part = module[1] if module[1] != "__init__" else ""
        if part not in RANK:
            found.append(f"{inside} is in no layer: add {part!r} to LAYERS")
            continue
        for name in imports_of(ast.parse(path.read_text("utf-8")), package):
            top = name.split(".")[0]
            if top == "windowpane" and RANK.get(part_of(name, src), 0) > RANK[part]:
                found.append(f"{inside} must not import {name}: it lies in a higher layer")
            home, reason = HOMES.get(top, ("", ""))
            if not inside.startswith(home):
                found.append(f"{inside} must not import {top}: {reason}")
    return found


def test_no_module_imports_a_higher_layer():
    assert violations(SRC) == []


def test_no_file_is_too_long_to_read():
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in SRC.rglob("*.py")}
    assert {str(path): n for path, n in lengths.items() if n > LONGEST_FILE} == {}


@pytest.mark.parametrize(
    ("path", "code", "complaint"),
    [
        ("values/a.py", "import windowpane.core.jit", "higher layer"),
        ("values/a.py", "from windowpane import core", "higher layer"),
        ("values/a.py", "from ..core import jit", "higher layer"),
        ("core/deep/a.py", "from ...plan.nodes import Node", "higher layer"),
        ("core/a.py", "def f():\n    from windowpane.local import run", "higher layer"),
        ("core/a.py", "if TYPE_CHECKING:\n    from windowpane.query import Query", "higher layer"),
        ("query.py", "import importlib\nimportlib.import_module('windowpane.local')", "higher layer"),
        ("query.py", "import windowpane", "higher layer"),
        ("query.py", "from windowpane import stream", "higher layer"),
        ("local/a.py", "from windowpane.cli.main import app", "higher layer"),
        ("local/a.py", "import pyspark.sql", "run without Spark"),
        ("core/a.py", "from numba import njit", "one file"),
        ("stray/a.py", "", "in no layer"),
    ],
)
def test_the_checker_finds_a_broken_rule(tmp_path, path, code, complaint):
    write(tmp_path, path, code)
    (found,) = violations(tmp_path)
    assert complaint in found


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("values/a.py", "import numpy\nfrom windowpane.values.b import c\nfrom . import b"),
        ("core/a.py", "from windowpane.values import windows\nfrom .jit import kernel"),
        ("core/jit.py", "import numba"),
        ("planner/a.py", "from windowpane.plan.nodes import Scan"),
        ("spark/run.py", "import pyspark\nfrom windowpane.query import Query"),
        ("__init__.py", "from windowpane.local import run\nfrom windowpane.values.windows import rows"),
        ("bench/a.py", "import windowpane as wp\nfrom windowpane import stream"),
        ("cli/main.py", "import typer\nfrom windowpane.bench import registry"),
    ],
)
def test_the_checker_lets_good_imports_pass(tmp_path, path, code):
    write(tmp_path, path, code)
    assert violations(tmp_path) == []


def write(src: Path, path: str, code: str) -> None:
    for part in RANK:
        (src / "windowpane" / part).mkdir(parents=True, exist_ok=True)
    file = src / "windowpane" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(code, "utf-8")
