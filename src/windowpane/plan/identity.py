"""Identity: a value as a text that is the same in every process, so that it can be stored and compared."""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SHOWN = 100
"""Entries of an array that are told one by one; numpy itself leaves out the middle of a long one."""


def identity(value: object) -> str:
    """A value as text; what has no text of its own that lasts is known by its name and its attributes.

    A function is known by its module, its name and its code, with what it closes over.
    """
    return _identity(value, ())


def _identity(value: object, within: tuple[int, ...]) -> str:  # noqa: PLR0911 - one for each kind of value
    if id(value) in within:  # a function that calls itself closes over itself
        return "itself"
    inner = (*within, id(value))
    match value:
        case tuple():
            return f"({', '.join(_identity(part, inner) for part in value)})"
        case set() | frozenset():  # whose order is another one in another process
            return f"{{{', '.join(sorted(_identity(part, inner) for part in value))}}}"
        case FunctionType():
            return _function(value, inner)
        case MethodType():
            return f"{_identity(value.__self__, inner)}.{_identity(value.__func__, inner)}"
        case functools.partial():
            return f"partial({_parts((value.func, value.args, tuple(value.keywords.items())), inner)})"
        case type():
            return f"{value.__module__}.{value.__qualname__}"
        case np.ndarray() if value.size > _SHOWN:
            return f"array({value.shape}, {value.dtype}, {_short(value.tobytes())})"
    plain = type(value).__repr__ is not object.__repr__
    text = repr(value) if plain else ""
    if plain and not _ADDRESS.search(text):
        return text
    return _by_attributes(value, text, inner)


def _parts(values: tuple[object, ...], within: tuple[int, ...]) -> str:
    return ", ".join(_identity(part, within) for part in values)


def _by_attributes(value: object, text: str, within: tuple[int, ...]) -> str:
    """The name of the class and the attributes, or a text without the addresses in it."""
    if isinstance(value, list | dict):
        parts = tuple(value.items()) if isinstance(value, dict) else tuple(value)
        return f"{type(value).__name__}({_parts(parts, within)})"
    known: dict[str, Any] = dict(sorted(getattr(value, "__dict__", {}).items()))
    if is_dataclass(value) and not isinstance(value, type):
        known = {f.name: getattr(value, f.name, None) for f in fields(value)} | known
    if not known and text:
        return _ADDRESS.sub("", text)
    told = ", ".join(f"{name}={_identity(part, within)}" for name, part in known.items())
    return f"{type(value).__module__}.{type(value).__qualname__}({told})"


def _function(function: FunctionType, within: tuple[int, ...]) -> str:
    closed = tuple(cell.cell_contents for cell in function.__closure__ or ())
    defaults = (function.__defaults__ or (), tuple((function.__kwdefaults__ or {}).items()))
    held = _parts((*closed, *(part for part in defaults if part)), within)
    code = _short(_code(function.__code__).encode())
    return f"{function.__module__}.{function.__qualname__}(code {code}{', ' if held else ''}{held})"


def _code(code: CodeType) -> str:
    """What a function does: its instructions, the names and the constants in them."""
    constants = [_code(c) if isinstance(c, CodeType) else identity(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}"


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
