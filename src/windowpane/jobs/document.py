"""A job file as a tree of values that know their line: YAML by its marks, TOML by a search for keys."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from windowpane.values.errors import WindowpaneError

Scalar = str | int | float | bool | None
_DEEPEST = 50


class BadJob(WindowpaneError, ValueError):
    """A job file that cannot be run; the message names the file, the line and the remedy."""


@dataclass(frozen=True)
class Place:
    """Where something stands: a file and a line of it, from 1."""

    file: Path
    line: int

    def error(self, message: str) -> BadJob:
        """An error that begins with the place."""
        return BadJob(f"{self.file}:{self.line}: {message}")


@dataclass(frozen=True)
class Node:
    """A value of the file, its name in messages such as `queries[0].window`, and its place."""

    value: Scalar | tuple[Node, ...] | dict[str, Node]
    name: str
    place: Place

    def error(self, message: str) -> BadJob:
        """An error about this value."""
        return self.place.error(f"{self.name}: {message}" if self.name else message)

    def leaves(self) -> Iterator[Node]:
        """Every scalar below, in the order of the file."""
        match self.value:
            case dict():
                for child in self.value.values():
                    yield from child.leaves()
            case tuple():
                for child in self.value:
                    yield from child.leaves()
            case _:
                yield self

    def plain(self) -> Any:
        """The value without places."""
        match self.value:
            case dict():
                return {key: child.plain() for key, child in self.value.items()}
            case tuple():
                return [child.plain() for child in self.value]
            case _:
                return self.value

    def mentioning(self, message: str) -> Node:
        """The first scalar below that holds the first 'quoted' word of a message, or else this node."""
        quoted = re.search(r"'([^']+)'", message)
        if quoted:
            word = re.compile(rf"(?<!\w){re.escape(quoted[1])}(?!\w)")
            for leaf in self.leaves():
                if isinstance(leaf.value, str) and word.search(leaf.value):
                    return leaf
        return self


def read_document(file: Path) -> Node:
    """The file's tree; the ending says which format it is in."""
    if file.suffix not in {".yaml", ".yml", ".toml"}:
        raise BadJob(f"{file}: a job file ends in .yaml, .yml or .toml. Rename it.")
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        raise BadJob(f"{file}: there is no such file. Give the path of a job file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadJob(f"{file}: cannot be read: {error}.") from None
    root = _toml(text, file) if file.suffix == ".toml" else _yaml(text, file)
    if not isinstance(root.value, dict):
        raise root.error("a job file is a mapping. Begin with `source:`.")
    return root


def _yaml(text: str, file: Path) -> Node:
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise Place(file, 1).error("the file is empty. Begin with `source:`.")
        return _from_yaml(node, "", loader, file, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, mark.line + 1 if mark else 1)
        raise place.error(
            f"this is no YAML: {error.problem or error.context}.{_yaml_remedy(error)}"
        ) from None
    except yaml.YAMLError as error:
        raise Place(file, 1).error(f"this is no YAML: {' '.join(str(error).split())}.") from None
    finally:
        loader.dispose()


def _yaml_remedy(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem)
    if "mapping values" in problem:
        return " Put a text that holds a colon in quotes."
    if "\\t" in problem:
        return " Indent with spaces, not tabs."
    return " Check the indentation, quotes and brackets there."


def _from_yaml(node: Any, name: str, loader: Any, file: Path, depth: int) -> Node:
    place = Place(file, node.start_mark.line + 1)
    if depth > _DEEPEST:
        raise place.error("values are nested too deeply. Does an alias refer to itself?")
    if isinstance(node, yaml.SequenceNode):
        items = tuple(
            _from_yaml(child, f"{name}[{i}]", loader, file, depth + 1) for i, child in enumerate(node.value)
        )
        return Node(items, name, place)
    if isinstance(node, yaml.MappingNode):
        return Node(_yaml_fields(node, name, loader, file, depth), name, place)
    value = loader.construct_object(node)
    return Node(value if isinstance(value, Scalar) else str(node.value), name, place)


def _yaml_fields(node: Any, name: str, loader: Any, file: Path, depth: int) -> dict[str, Node]:
    fields: dict[str, Node] = {}
    for key, child in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise Place(file, line).error("a key must be a plain text.")
        text = str(key.value)  # as written: YAML would make the key `on` a truth value
        if text in fields:
            raise Place(file, line).error(
                f"{_dotted(name, text)}: this key is there twice. Remove one of them."
            )
        found = _from_yaml(child, _dotted(name, text), loader, file, depth + 1)
        nested = isinstance(found.value, dict | tuple)
        fields[text] = Node(found.value, found.name, Place(file, line)) if nested else found
    return fields


def _toml(text: str, file: Path) -> Node:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        problem = re.sub(r" \(at .*\)$", "", str(error))
        raise Place(file, line).error(f"this is no TOML: {problem}. Texts need quotes in TOML.") from None
    return _from_toml(values, "", _toml_lines(text), Place(file, 1))


def _from_toml(value: Any, name: str, lines: dict[str, int], above: Place) -> Node:
    place = Place(above.file, lines.get(name, above.line))
    if isinstance(value, dict):
        fields = {key: _from_toml(v, _dotted(name, key), lines, place) for key, v in value.items()}
        return Node(fields, name, place)
    if isinstance(value, list):
        items = tuple(_from_toml(v, f"{name}[{i}]", lines, place) for i, v in enumerate(value))
        return Node(items, name, place)
    return Node(value if isinstance(value, Scalar) else str(value), name, place)


def _toml_lines(text: str) -> dict[str, int]:
    """The line of each key, found by its name under the heading before it."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    under = ""
    for number, line in enumerate(text.splitlines(), 1):
        if many := re.match(r"\s*\[\[\s*([^\]]+?)\s*\]\]", line):
            index = counts.get(many[1], 0)
            counts[many[1]] = index + 1
            under = f"{many[1]}[{index}]"
            lines.setdefault(many[1], number)
            lines[under] = number
        elif one := re.match(r"\s*\[\s*([^\]\[]+?)\s*\]\s*(?:#.*)?$", line):
            under = _nested(one[1], counts)
            lines[under] = number
        elif key := re.match(r"""\s*(["']?)([^"'=\s]+)\1\s*=""", line):
            lines.setdefault(_dotted(under, key[2]), number)
    return lines


def _nested(heading: str, counts: dict[str, int]) -> str:
    """A heading such as `queries.sink` belongs to the last of `[[queries]]`."""
    first, dot, rest = heading.partition(".")
    return f"{first}[{counts[first] - 1}]{dot}{rest}" if first in counts else heading


def _dotted(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key
