"""A job file as a tree of values that know their line: YAML by its marks, TOML by a search for keys."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from windowpane.values.errors import WindowpaneError

Scalar = str | int | float | bool | None
_DEEPEST = 50
_TOO_DEEP = "values are nested too deeply. Is a bracket left open, or does an alias refer to itself?"
_WIDEST = 1000
"""Bits of a whole number: Python writes no text of one with some thousand digits, not even in a message."""
_TOO_WIDE = "this number has too many digits. Write a smaller one, or put it in quotes if it is a text."
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "timestamp": "a date or time",
}
_UNREADABLE = (ValueError, LookupError, AttributeError, OverflowError)
"""What PyYAML lets through of a value that does not fit its tag, such as 2024-02-30 or `!!int abc`."""


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


def shortened(text: str) -> str:
    """The text, or its beginning where it is too long for a message."""
    return text if len(text) <= 60 else f"{text[:60]}..."


def _yaml(text: str, file: Path) -> Node:
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        place = Place(file, text.count("\n", 0, error.position) + 1)
        raise place.error(
            f"this is no YAML: {chr(error.character)!r} cannot stand there. Remove this character."
        ) from None
    try:
        node = loader.get_single_node()
        if node is None:
            raise Place(file, 1).error("the file is empty. Begin with `source:`.")
        return _from_yaml(node, "", loader, file, 0)
    except BadJob:
        raise
    except RecursionError:
        raise Place(file, _deep_line(text) or loader.line + 1).error(_TOO_DEEP) from None
    except (yaml.YAMLError, *_UNREADABLE) as error:
        raise _yaml_error(error, Place(file, loader.line + 1)) from None
    finally:
        loader.dispose()


def _yaml_error(error: Exception, reached: Place) -> BadJob:
    """The error of a text that PyYAML gave up at; not each of its errors knows the line."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        place = Place(reached.file, mark.line + 1 if mark else 1)
        return place.error(f"this is no YAML: {error.problem or error.context}.{_yaml_remedy(error)}")
    told = shortened(" ".join(str(error).split()))
    return reached.error(f"this is no YAML: {told}. Check the escapes such as \\U0001F600 there.")


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
        raise place.error(_TOO_DEEP)
    if isinstance(node, yaml.SequenceNode):
        items = tuple(
            _from_yaml(child, f"{name}[{i}]", loader, file, depth + 1) for i, child in enumerate(node.value)
        )
        return Node(items, name, place)
    if isinstance(node, yaml.MappingNode):
        return Node(_yaml_fields(node, name, loader, file, depth), name, place)
    empty = Node(None, name, place)
    value = _yaml_value(empty, node, loader)
    return _scalar(empty, value if isinstance(value, Scalar) else str(node.value))


def _yaml_value(where: Node, node: Any, loader: Any) -> Any:
    """What a text stands for by its tag, which may be one that YAML gave it."""
    try:
        return loader.construct_object(node)
    except _UNREADABLE:
        kind = _KINDS.get(node.tag.rpartition(":")[2], node.tag)
        raise where.error(
            f"{shortened(node.value)!r} cannot be read as {kind}. Correct it, or put it in quotes, without a "
            "tag such as !!int, if it is a text."
        ) from None


def _scalar(where: Node, value: Scalar) -> Node:
    """The node with a value that any message can show."""
    if isinstance(value, int) and value.bit_length() > _WIDEST:
        raise where.error(_TOO_WIDE)
    return replace(where, value=value)


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
    except RecursionError:
        raise Place(file, _deep_line(text) or 1).error(_TOO_DEEP) from None
    except ValueError:  # of int(), which tells no line
        digits = re.search(rf"\d[\d_]{{{_WIDEST}}}", text)
        line = text.count("\n", 0, digits.start()) + 1 if digits else 1
        raise Place(file, line).error(_TOO_WIDE) from None
    return _from_toml(values, Node(None, "", Place(file, 1)), _toml_lines(text), 0)


def _deep_line(text: str) -> int | None:
    """The first line with more open brackets than values may be nested, in YAML or TOML."""
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        depth += len(re.findall(r"[\[{]", line))
        if depth > _DEEPEST:
            return number
        depth -= len(re.findall(r"[\]}]", line))
    return None


def _from_toml(value: Any, above: Node, lines: dict[str, int], depth: int) -> Node:
    """The node of a value; `above` has its name, and the place of what it stands in."""
    name = above.name
    where = replace(above, place=Place(above.place.file, lines.get(name, above.place.line)))
    if depth > _DEEPEST:
        line = next((number for key, number in lines.items() if key.startswith(name)), where.place.line)
        raise Place(where.place.file, line).error(_TOO_DEEP)
    if isinstance(value, dict):
        named = {key: replace(where, name=_dotted(name, key)) for key in value}
        fields = {key: _from_toml(v, named[key], lines, depth + 1) for key, v in value.items()}
        return replace(where, value=fields)
    if isinstance(value, list):
        items = (
            _from_toml(v, replace(where, name=f"{name}[{i}]"), lines, depth + 1) for i, v in enumerate(value)
        )
        return replace(where, value=tuple(items))
    return _scalar(where, value if isinstance(value, Scalar) else str(value))


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
