"""Which columns of its source a job reads: those that no record and no file may lack without a word.

A column is a path: `("k",)`, or `("payload", "k")` for a field of a struct. What a query reads is known from
its parts. Of the SQL texts of the source the columns that they name as words count, which may be a few more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from windowpane.jobs.job import Job, QuerySpec, Source
from windowpane.plan.nodes import Stream, WindowQuery
from windowpane.values.punctuation import ordered
from windowpane.values.windows import ContextAwareWindow, Delimited

Path = tuple[str, ...]
Tree = Mapping[str, Any]
"""The names of columns, each with the tree of its fields; empty for what is no struct."""
_LITERAL = re.compile(r"`[^`]*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_WORDS = re.compile(r"(?:`[^`]+`|\w+)(?:\s*\.\s*(?:`[^`]+`|\w+|\*))*")
_ALIAS = re.compile(r"\s+as\s+`?(\w+)`?\s*$", re.IGNORECASE)
_ALL = re.compile(r"\s*\*\s*|.*\(\s*\*\s*\).*", re.DOTALL)
_EXCEPT = re.compile(r"^(\s*\*)\s*except\s*\(.*\)\s*$", re.IGNORECASE | re.DOTALL)


def tree_of(struct: Any) -> Tree:
    """The tree of a Spark or Arrow schema or struct; fields of what lies in lists and maps are not told."""
    kinds = {field.name: field.dataType if hasattr(field, "dataType") else field.type for field in struct}
    return {
        name: tree_of(kind) if hasattr(kind, "fieldNames") or isinstance(kind, pa.StructType) else {}
        for name, kind in kinds.items()
    }


def columns_read(job: Job) -> tuple[str, ...]:
    """The columns of the stream that any query of the job reads."""
    known = {name: job.stream[name] for name in ("ties", "required", "ids") if name in job.stream}
    policy = job.stream.get("punctuation") or ordered()
    node = Stream((), job.stream["time"], job.stream["keys"], policy, 0, None, **{"ties": None, **known})
    found = [node.time, *node.policy_columns(), *node.required, *node.ids]
    found += [node.ties] if node.ties else []
    for spec in job.queries:
        found += _of_query(spec, node)
    return tuple(dict.fromkeys(found))


def _of_query(spec: QuerySpec, stream: Stream) -> Iterator[str]:
    keys = stream.keys if spec.keys is None else spec.keys
    yield from WindowQuery(spec.name, spec.windows, spec.aggregates, keys).grouping
    for aggregate in spec.aggregates:
        yield from aggregate.columns
    for window in spec.windows:
        if isinstance(window, Delimited):
            yield from (column for column in (window.start, window.end) if column is not None)
        if isinstance(window, ContextAwareWindow):
            yield from window.columns


def paths_read(source: Source, tree: Tree, columns: Sequence[str]) -> tuple[Path, ...]:
    """The columns and fields of the source that are behind these columns of the stream."""
    select = [_EXCEPT.sub(r"\1", text) for text in source.select]
    words = [word for text in select for word in _named(_ALIAS.sub("", text))]
    made = {alias[1].lower() for text in select if (alias := _ALIAS.search(text))}
    words += [word for word in _named(source.where or "") if word[0].lower() not in made]
    found: list[Path] = []
    if not select or any(_ALL.fullmatch(text) for text in select):
        for name in columns:
            found += _whole((), name, tree)
    for word in words:
        found += _walk(word, tree, columns)
    return tuple(dict.fromkeys(found))


def _named(text: str) -> Iterator[Path]:
    """The dotted words of an SQL text."""
    for match in _WORDS.finditer(_LITERAL.sub(lambda found: found[0] if found[0][0] == "`" else "''", text)):
        yield tuple(part.strip().strip("`") for part in re.split(r"\.(?=(?:[^`]*`[^`]*`)*[^`]*$)", match[0]))


def _walk(word: Path, tree: Tree, columns: Sequence[str]) -> Iterator[Path]:
    """The column that a dotted word begins with and the fields on the way; none if it is no column."""
    path: Path = ()
    for part in word:
        if part == "*" and path:
            yield from ((*path, name) for name in tree if name in columns)
        name = _known(part, tree)
        if name is None:
            return
        path, tree = (*path, name), tree[name]
        yield path
    for name in tree:  # a struct that is read whole, or by box['v']
        yield from _whole(path, name, tree)


def _whole(above: Path, name: str, tree: Tree) -> Iterator[Path]:
    """A column and all its fields."""
    if name in tree:
        yield (*above, name)
        for field in tree[name]:
            yield from _whole((*above, name), field, tree[name])


def _known(name: str, tree: Tree) -> str | None:
    """The column of this name; Spark SQL does not tell upper from lower case."""
    return next((known for known in tree if known.lower() == name.lower()), None)


def lacking(paths: Sequence[Path], tree: Tree) -> Path | None:
    """The first of the paths that is not in a tree, whatever the case of its letters."""
    for path in paths:
        below = tree
        for part in path:
            name = _known(part, below)
            if name is None:
                return path
            below = below[name]
    return None
