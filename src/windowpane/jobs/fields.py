"""Read typed fields from a mapping of a job file; what is unknown, missing or of a wrong type is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from windowpane.jobs.document import BadJob, Node
from windowpane.values.errors import WindowpaneError

T = TypeVar("T")
SPLIT = "Between [ ] and { } YAML splits at each comma: put the call in quotes, or on a line of its own. "


class Fields:
    """A mapping with a known set of keys."""

    def __init__(self, node: Node, known: Sequence[str], example: str) -> None:
        if not isinstance(node.value, dict):
            raise node.error(f"this must be a mapping, not {shown(node)}. Write: {example}.")
        self.node, self._values, self._example = node, node.value, example
        for key, child in node.value.items():
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"Did you mean {near[0]!r}? " if near else ""
                hint = SPLIT if key.count("(") != key.count(")") else hint
                raise child.error(f"there is no such key here. {hint}There are: {', '.join(known)}.")

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> Node | None:
        """The field's node; None where it is left out or null."""
        node = self._values.get(key)
        return None if node is None or node.value is None else node

    def need(self, key: str) -> Node:
        """The field's node, or an error that shows what to write."""
        node = self.get(key)
        if node is None:
            raise self.node.error(f"{key!r} is missing. Write: {self._example}.")
        return node

    def text(self, key: str, default: T = None) -> str | T:  # type: ignore[assignment] # None by default
        """A text."""
        node = self.get(key)
        return default if node is None else text_of(node)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A text or a list of texts."""
        node = self.get(key)
        return None if node is None else texts_of(node)

    def whole(self, key: str, default: int) -> int:
        """A whole number above 0."""
        node = self.get(key)
        if node is None:
            return default
        if not isinstance(node.value, int) or isinstance(node.value, bool) or node.value < 1:
            raise node.error(f"this must be a whole number above 0, not {shown(node)}.")
        return node.value

    def options(self, key: str) -> dict[str, str]:
        """A mapping of settings, as the texts that Spark takes."""
        node = self.get(key)
        if node is None:
            return {}
        if not isinstance(node.value, dict):
            raise node.error(f"this must be a mapping of settings, not {shown(node)}.")
        return {name: _setting(child) for name, child in node.value.items()}


def _setting(node: Node) -> str:
    match node.value:
        case bool():
            return str(node.value).lower()
        case str() | int() | float():
            return str(node.value)
    raise node.error(f"a setting is a text, a number or true or false, not {shown(node)}.")


def text_of(node: Node) -> str:
    """The node's text."""
    if not isinstance(node.value, str):
        raise node.error(f"this must be a text, not {shown(node)}. Put it in quotes if it is one.")
    if not node.value.strip():
        raise node.error("this text is empty. Leave the key out, or write something.")
    return node.value


def texts_of(node: Node) -> tuple[str, ...]:
    """The node's text, or its list of texts."""
    return (
        tuple(text_of(child) for child in node.value) if isinstance(node.value, tuple) else (text_of(node),)
    )


def items_of(node: Node) -> tuple[Node, ...]:
    """The items of a list; anything else is a list of itself."""
    return node.value if isinstance(node.value, tuple) else (node,)


def shown(node: Node) -> str:
    """A value as messages call it."""
    match node.value:
        case dict():
            return "a mapping"
        case tuple():
            return "a list"
        case None:
            return "nothing"
        case bool():
            return str(node.value).lower()
        case _:
            return repr(node.value)


def located(node: Node, make: Callable[[], T]) -> T:
    """What `make` gives; an error of the library is told with the line that it is about."""
    try:
        return make()
    except BadJob:
        raise
    except WindowpaneError as error:
        raise node.mentioning(str(error)).error(str(error)) from error


def choice(node: Node, choices: Sequence[str]) -> str:
    """One of several words."""
    text = text_of(node)
    if text not in choices:
        near = get_close_matches(text, choices, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise node.error(f"{text!r} is none of the choices. {hint}There are: {', '.join(choices)}.")
    return text


def literal(node: Node) -> Any:
    """A value of a mapping that stands for a call's arguments."""
    match node.value:
        case dict():
            raise node.error("an argument is a text, a number or a list of these, not a mapping.")
        case tuple():
            return [literal(child) for child in node.value]
        case _:
            return node.value
