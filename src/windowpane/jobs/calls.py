"""Windows, aggregates and policies as a job file writes them: calls of the API in its own words.

`sliding(10 min, 1 s)`, `rows(1000, slide=10).per(srcIP)`, `vwap = weighted_mean(price, volume)`. Column names
and durations need no quotes. Only the functions listed here can be called, and only with literals.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import accumulate
from typing import Any, Literal

import windowpane as wp
from windowpane.jobs.document import shortened
from windowpane.values.errors import WindowpaneError

Kind = Literal["window", "aggregate", "policy"]

NAMES: dict[Kind, tuple[str, ...]] = {
    "window": (
        *("tumbling", "sliding", "landmark", "cumulative", "session"),
        *("rows", "delimited", "per_row", "last_rows"),
    ),
    "aggregate": (
        *("count", "sum", "min", "max", "mean", "weighted_mean", "geometric_mean", "variance", "stddev"),
        *("min_count", "max_count", "arg_min", "arg_max", "first", "last", "m4", "median", "quantile"),
        *("distinct", "heavy_hitters", "top_k", "collect", "approx_distinct", "approx_quantile"),
    ),
    "policy": ("ordered", "delay", "slack", "external", "manual", "heartbeat", "melded"),
}
EXAMPLES: dict[Kind, str] = {
    "window": "sliding(10 min, 1 s)",
    "aggregate": "vwap = weighted_mean(price, volume)",
    "policy": "delay(2 s)",
}
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'[^']*'|"[^"]*")|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))"""
    r"""|(?P<length>\d+(?:\.\d+)?[a-zA-Z]+)|(?P<name>[^\W\d]\w*)|(?P<sign>[()\[\],.=]))"""
)
_DEEPEST = 20
_LONGEST = 100
"""Digits of a number; Python reads no more than some thousand."""
_WORDS: dict[str, Any] = {"true": True, "false": False, "none": None, "null": None}


class BadCall(WindowpaneError, ValueError):
    """A text that is no call of the API; the message has the remedy, the caller adds the place."""


@dataclass(frozen=True)
class Call:
    """A call before it is made: the function's name, its arguments, and the columns of `.per(...)`."""

    function: str
    arguments: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()
    per: tuple[str, ...] | None = None
    output: str | None = None


def parse(text: str, kind: Kind) -> Call:
    """The call that a text writes.

    >>> parse("vwap = weighted_mean(price, volume)", "aggregate")
    Call(function='weighted_mean', arguments=('price', 'volume'), named=(), per=None, output='vwap')
    """
    reader = _Reader(text, kind)
    output = None
    if kind == "aggregate" and reader.peek(1) == ("sign", "="):
        output = reader.name("the name of a result column")
        reader.take("=")
    call = reader.call(output)
    reader.end()
    return call


def make(call: Call, kind: Kind) -> Any:
    """Make the call: a window, an aggregate or a policy."""
    function = _function(call.function, kind)
    nested = [make(a, "policy") if isinstance(a, Call) else a for a in call.arguments]
    named = {n: make(a, "policy") if isinstance(a, Call) else a for n, a in call.named}
    _check_arguments(function, call, nested, named)
    try:
        made = function(*nested, **named)
    except WindowpaneError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadCall(
            f"{call.function}(...) cannot take these arguments: {error}. {_usage(function)}"
        ) from None
    _check_columns(call, made)
    if call.per is not None:
        if not hasattr(made, "per"):
            raise BadCall(f"{call.function}(...) has no .per(...). Only rows, per_row and last_rows have it.")
        made = made.per(*call.per)
    return made if call.output is None else made.named(call.output)


def _function(name: str, kind: Kind) -> Callable[..., Any]:
    if name in NAMES[kind]:
        function: Callable[..., Any] = getattr(wp, name)
        return function
    for other, names in NAMES.items():
        if name in names:
            raise BadCall(f"{name} is no {kind} (it is of another kind: {other}). {_listed(kind)}")
    near = get_close_matches(name, NAMES[kind], n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    raise BadCall(f"there is no {kind} {name!r}. {hint}{_listed(kind)}")


def _listed(kind: Kind) -> str:
    return f"There are: {', '.join(NAMES[kind])}."


def _check_arguments(
    function: Callable[..., Any], call: Call, arguments: list[Any], named: dict[str, Any]
) -> None:
    signature = inspect.signature(function)
    for name in named:
        if name not in signature.parameters:
            near = get_close_matches(name, signature.parameters, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise BadCall(f"{call.function}(...) has no argument {name!r}. {hint}{_usage(function)}")
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        raise BadCall(f"{call.function}(...): {error}. {_usage(function)}") from None


def _usage(function: Callable[..., Any]) -> str:
    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        optional = parameter.default is not inspect.Parameter.empty
        keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        shown = f"{name}=..." if keyword or optional else name
        parameters.append(f"[{shown}]" if optional else shown)
    return f"Write {function.__name__}({', '.join(parameters)})."


def _check_columns(call: Call, made: Any) -> None:
    """Columns go by texts; a number in their place would only fail later."""
    columns = getattr(made, "columns", None) or ()
    for column in (*columns, *(call.per or ())):
        if not isinstance(column, str):
            raise BadCall(
                f"{call.function}(...): {column!r} is no column name. Put it in quotes if it is one."
            )


def _depth(tokens: Sequence[tuple[str, str]]) -> int:
    """The most brackets that are open at once."""
    steps = {("sign", "("): 1, ("sign", "["): 1, ("sign", ")"): -1, ("sign", "]"): -1}
    return max(accumulate(steps.get(token, 0) for token in tokens), default=0)


class _Reader:
    """Reads a call from left to right; nothing is ever evaluated."""

    def __init__(self, text: str, kind: Kind) -> None:
        self._text, self._kind = text, kind
        self._tokens = self._split()
        self._at = 0
        if _depth(self._tokens) > _DEEPEST:
            raise self._wrong("its brackets are nested too deeply")

    def _split(self) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        at, text = 0, self._text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                rest = text[at:].strip()
                raise self._wrong(f"{rest[0]!r} cannot stand there")
            group = match.lastgroup
            if group in {"number", "length"} and len(match[group]) > _LONGEST:
                raise self._wrong("a number has too many digits")
            tokens.append((group, match[group]))
            at = match.end()
        return tokens

    def _wrong(self, problem: str) -> BadCall:
        text, example = shortened(self._text), EXAMPLES[self._kind]
        return BadCall(f"{text!r} is no {self._kind}: {problem}. Write one such as {example}.")

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        """The token so far ahead, or an empty one at the end."""
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ("", "")

    def take(self, sign: str) -> None:
        """Read this sign."""
        if self.peek() != ("sign", sign):
            raise self._wrong(
                f"{sign!r} is missing before {self.peek()[1]!r}" if self.peek()[1] else f"{sign!r} is missing"
            )
        self._at += 1

    def name(self, what: str) -> str:
        """Read a name."""
        group, text = self.peek()
        if group != "name":
            raise self._wrong(f"{what} is missing")
        self._at += 1
        return text

    def end(self) -> None:
        """Nothing may follow."""
        if self.peek()[0]:
            raise self._wrong(f"{self.peek()[1]!r} is too much")

    def call(self, output: str | None = None) -> Call:
        """Read a call and what is chained to it."""
        function = self.name("a function")
        arguments, named = self._arguments()
        per: tuple[str, ...] | None = None
        while self.peek() == ("sign", "."):
            self._at += 1
            chained = self.name("what to call")
            if chained != "per" or per is not None:
                raise self._wrong(f".{chained}(...) cannot follow; only one .per(...) can")
            columns, extra = self._arguments()
            if extra:
                raise self._wrong(".per(...) takes column names only")
            per = tuple(columns)
        return Call(function, tuple(arguments), tuple(named), per, output)

    def _arguments(self) -> tuple[list[Any], list[tuple[str, Any]]]:
        self.take("(")
        arguments: list[Any] = []
        named: list[tuple[str, Any]] = []
        while self.peek() != ("sign", ")"):
            if self.peek()[0] == "name" and self.peek(1) == ("sign", "="):
                name = self.name("a name")
                self.take("=")
                if name in dict(named):
                    raise self._wrong(f"{name!r} is given twice")
                named.append((name, self._value()))
            elif named:
                raise self._wrong("an argument without a name follows one with a name")
            else:
                arguments.append(self._value())
            self._comma(")")
        self.take(")")
        return arguments, named

    def _comma(self, end: str) -> None:
        if self.peek() != ("sign", end):
            self.take(",")

    def _value(self) -> Any:
        group, text = self.peek()
        if group == "name" and self.peek(1) == ("sign", "("):
            return self.call()
        if (group, text) == ("sign", "["):
            return self._list()
        if group in {"number", "length"}:
            return self._measure()
        if group not in {"text", "name"}:
            raise self._wrong("an argument is missing")
        self._at += 1
        return text[1:-1] if group == "text" else _WORDS.get(text.lower(), text)

    def _list(self) -> list[Any]:
        self.take("[")
        items: list[Any] = []
        while self.peek() != ("sign", "]"):
            items.append(self._value())
            self._comma("]")
        self.take("]")
        return items

    def _measure(self) -> Any:
        """A number, or with a unit (`10 min`, `1 h 30 min`) a duration."""
        parts: list[str] = []
        group, text = self.peek()
        while group == "length" or (group == "number" and self.peek(1)[0] == "name"):
            parts.append(text)
            self._at += 1
            if group == "number":
                parts.append(self.name("a unit"))
            group, text = self.peek()
        if parts:
            return " ".join(parts)
        self._at += 1
        return float(text) if re.search(r"[.eE]", text) else int(text)
