"""JSON objects as columns: what an object does not have is told apart from what it has as null.

Spark makes a null of both. So where a column that is read is null, and only there, the names that the object
has are looked at. Nor may a text change on the way: bytes that are no UTF-8 would become one letter for all,
and a number in a column of texts would be written anew (1.10 as 1.1).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from windowpane.jobs.columns import Path
from windowpane.spark.session import quoted

RECORD = "_record"
"""The column with the text of a record that is malformed, which the rejects have."""
FAULT = "_windowpane_fault"
"""The column that says what is wrong with a record, where a job stops at it."""
_ROW, _REST, _TEXT, _BAD, _LACKS = (f"_windowpane_{name}" for name in ("row", "rest", "text", "bad", "lacks"))
_NUMBER = r"^[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_FAULTS = (
    f"case when {_BAD} is not null then 'cannot be read as the schema says' "
    f"when {_LACKS} is not null then concat('has no column ', {_LACKS}, ', which a query reads') end"
)
_CORRUPT = "columnNameOfCorruptRecord"
_THERE = r"\S"
Options = Mapping[str, str]


@dataclass(frozen=True)
class Texts:
    """What is known of the texts: the SQL text for the place of one, columns beside it, and JSON options.

    `skips`: a text without any object, such as a comment, is no record.
    """

    place: str
    about: Sequence[str] = ()
    options: Options = field(default_factory=dict)
    skips: bool = False


def lines(found: Any) -> Any:
    """The lines of files that are not blank."""
    return found.where(f"value rlike {literal(_THERE)}")


def objects(found: Any, schema: Any, paths: Sequence[Path], texts: Texts) -> Any:
    """The texts in `value` as columns and RECORD, beside columns that tell about them, and then FAULT.

    What nobody reads makes no record malformed, and Catalyst leaves out the parsing of it.
    """
    options, about = texts.options, texts.about
    tops = {path[0] for path in paths}
    read, rest = (_some(schema, tops, among=among) for among in (True, False))
    strict = _parsed(read.add(RECORD, "string"), {**options, _CORRUPT: RECORD})
    found = found.selectExpr(f"cast(value as string) as {_TEXT}", *about)
    other = [f"{_parsed(rest, options)} as {_REST}"] if rest.names else []
    found = found.selectExpr("*", f"{strict} as {_ROW}", *other)
    found = found.where(f"{_ROW} is not null") if texts.skips else found
    columns = [f"{_ROW if name in tops else _REST}.{quoted(name)}" for name in schema.names]
    lacks = f"{_lacks(paths, options)} as {_LACKS}"
    bad = f"coalesce({_ROW}.{RECORD}, if({_changed(read, paths)}, {_TEXT}, null)) as {_BAD}"
    found = found.selectExpr(*columns, bad, *about, _TEXT, lacks)
    record = f"coalesce({_BAD}, if({_LACKS} is null, null, {_TEXT})) as {RECORD}"
    fault = f"concat({texts.place}, ': a record ', {_FAULTS}) as {FAULT}"
    return found.selectExpr(*map(quoted, schema.names), record, *about, fault)


def _changed(schema: Any, paths: Sequence[Path]) -> str:
    """The SQL text that tells whether a text would be another than the one in the record."""
    tests = [f"not is_valid_utf8({_TEXT})"]
    for path in paths:
        kind = schema
        for name in path:
            kind = getattr(kind[name], "dataType", None) if hasattr(kind, "fieldNames") else None
        if kind is None or kind.typeName() != "string":
            continue
        column = ".".join([_ROW, *map(quoted, path)])
        like = f"{column} rlike {literal(_NUMBER)} and {column} rlike '[.eE]'"
        bare = literal(f'"{re.escape(path[-1])}"' + r"\s*:\s*[-+0-9.]")
        tests.append(f"({like} and {_TEXT} rlike {bare})")
    return " or ".join(f"coalesce({test}, false)" for test in tests)


def _some(schema: Any, names: Collection[str], *, among: bool) -> Any:
    """The schema with only the columns that are among these names, or that are not."""
    return type(schema)([one for one in schema if (one.name in names) == among])


def _lacks(paths: Sequence[Path], options: Options) -> str:
    """The SQL text of the first column that the object in _TEXT does not have; null if it has all."""
    parents = list(dict.fromkeys(path[:-1] for path in paths))
    names = [[path[-1] for path in paths if path[:-1] == parent] for parent in parents]
    found = [_lacks_in(parent, some, options) for parent, some in zip(parents, names, strict=True)]
    return f"coalesce({', '.join(found)})" if found else "cast(null as string)"


def _lacks_in(parent: Path, names: Sequence[str], options: Options) -> str:
    """The same of the names within one object."""
    place = [_ROW, *map(quoted, parent)]
    nulls = " or ".join(f"{'.'.join([*place, quoted(name)])} is null" for name in names)
    there = f"{'.'.join(place)} is not null and ({nulls})"
    wanted = ", ".join(literal(name) for name in names)
    first = f"get(array_except(array({wanted}), map_keys({_map_of(parent, options)})), 0)"
    name = f"concat({literal('.'.join(parent) + '.')}, {first})" if parent else first
    return f"if({there}, {name}, null)"


def _map_of(path: Path, options: Options) -> str:
    """The SQL text of an object as a map of texts; the parser is the one of the columns, with its options."""
    text = _TEXT if not path else f"element_at({_map_of(path[:-1], options)}, {literal(path[-1])})"
    return f"from_json({text}, 'map<string,string>'{_map(options)})"


def _parsed(schema: Any, options: Options) -> str:
    return f"from_json({_TEXT}, {literal(schema.toDDL())}{_map(options)})"


def _map(options: Options) -> str:
    pairs = ", ".join(f"{literal(name)}, {literal(value)}" for name, value in options.items())
    return f", map({pairs})" if pairs else ""


def literal(words: str) -> str:
    """A text as Spark SQL writes it."""
    escaped = words.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
