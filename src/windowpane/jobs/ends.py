"""The two ends of a job as its file writes them: the source and the sink."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

from windowpane.jobs.document import Node
from windowpane.jobs.fields import Fields, choice, text_of
from windowpane.jobs.job import Malformed, Sink, Source
from windowpane.values.errors import BadQuery, unknown_column
from windowpane.values.paths import SCHEME, local_path

FILES = ("parquet", "csv", "json", "orc")
DATABASES = ("sqlite", "postgresql")
DRIVERS = ("psycopg", "psycopg2")
_SOURCE = ("format", "path", "schema", "options", "select", "where", "malformed")
_SINK = ("format", "path", "table", "options", "partition_by", "rows", "url")
_SPARKS = ("format", "path", "options", "partition_by")
_TAKES = {
    **dict.fromkeys(FILES, _SPARKS),
    "sqlite": ("format", "path", "table"),
    "postgresql": ("format", "url", "table"),
    "kafka": ("format", "options"),
    "console": ("format", "rows"),
    "memory": ("format", "rows"),
}
"""The keys that a sink of a format heeds; of any other format, those that Spark's writers do."""
_INSTEAD = {
    ("console", "options"): "Write rows: 50 for as many rows of each micro-batch; values are printed whole.",
    ("memory", "options"): "Write rows: 50 for as many rows at the end.",
    ("memory", "table"): "The table has the name of the query: give it one with name.",
    ("sqlite", "url"): "Write the file as path.",
    ("postgresql", "path"): "Write the connection text as url.",
    ("postgresql", "options"): "Write settings of the connection into url.",
    ("kafka", "table"): "Write the topic into options.",
    ("kafka", "url"): "Write kafka.bootstrap.servers into options.",
}
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)?")


def read_source(node: Node, folder: Path) -> Source:
    """The source; a local path must be there."""
    fields = Fields(node, _SOURCE, "source: {format: parquet, path: a-directory}")
    form = text_of(fields.need("format"))
    path, schema, options = fields.text("path"), fields.text("schema"), fields.options("options")
    if form in (*FILES, "text"):
        path = _existing(fields.need("path"), folder)
        if schema is None and form != "parquet":
            raise node.error(
                f"'schema' is missing, which {form} files need. Write: schema: ts timestamp, k string."
            )
    elif path is not None:
        path = resolved(path, folder)
    for option in _needed(form):
        if option not in options:
            raise (fields.get("options") or node).error(f"the source {form} needs the option {option!r}.")
    found = Source(form, path, schema, options, fields.texts("select") or (), fields.text("where"))
    return replace(found, malformed=_malformed(fields, found))


def _malformed(fields: Fields, source: Source) -> Malformed:
    node = fields.get("malformed")
    if node is None:
        return "fail" if source.of_files else "reject"
    if not source.of_texts and not source.of_files:
        raise node.error(
            "only what is read from texts or files can be malformed: csv and json, kafka and socket with a "
            f"schema, parquet and orc, not {source.format}. Remove it."
        )
    kinds: dict[str, Malformed] = {"reject": "reject", "fail": "fail", "keep": "keep"}
    found = kinds[choice(node, tuple(kinds))]
    if source.of_files and found == "reject":
        raise node.error(
            f"the rows of a {source.format} file that lacks a column cannot be told apart. Write fail, which "
            "stops the job at such a file, or keep, which has nulls in its rows."
        )
    return found


def _needed(form: str) -> tuple[str, ...]:
    return {"socket": ("host", "port"), "kafka": ("kafka.bootstrap.servers",)}.get(form, ())


def _existing(node: Node, folder: Path) -> str:
    path = resolved(text_of(node), folder)
    if SCHEME.match(path) or re.search(r"[*?\[{]", path):
        return path
    if not Path(path).exists():
        raise node.error(f"there is no {path!r}. Make the directory, or correct the path.")
    if Path(path).is_file():
        raise node.error(
            f"{path!r} is a file. Give the directory that holds it: new files there are read too."
        )
    return path


def resolved(path: str, folder: Path) -> str:
    """A path as Spark takes it: relative ones start from the job file's folder."""
    return path if SCHEME.match(path) else str(folder.resolve() / path)


def ours(sink: Sink) -> bool:
    """Whether micro-batches pass through a function of ours, and not through a sink of Spark's."""
    local = sink.path is not None and local_path(sink.path) is not None
    return sink.format in {*DATABASES, "console"} or (sink.format in FILES and local)


def need_partitions(partition_by: Sequence[str], schema: pa.Schema, what: str) -> None:
    """Fail if files cannot be shared out to directories by a column: it is not there or no plain value."""
    for name in partition_by:
        if name not in schema.names:
            raise unknown_column(name, what, schema.names)
        if pa.types.is_nested(schema.field(name).type):
            raise BadQuery(
                f"partition_by names {name!r}, which holds several values, and a directory is named by one. "
                "Name a column of plain values, such as a key."
            )


def need_plain(schema: pa.Schema, what: str) -> None:
    """Fail if a column holds what a CSV file cannot."""
    nested = [f.name for f in schema if pa.types.is_nested(f.type)]
    if nested:
        raise BadQuery(
            f"{what} have a column {nested[0]!r} that holds several values, which CSV cannot. "
            "Use json or parquet."
        )


def need_free(names: Sequence[str], *taken: str) -> None:
    """Fail if a column of the answers has a name that the sink gives to a column of its own."""
    for name in names:
        if name.lower() in taken:  # databases do not tell upper from lower case
            raise BadQuery(f"the answers have a column {name!r}, as the sink has itself. Name it anew.")


def read_sink(node: Node, folder: Path, query: str, *, alone: bool) -> Sink:
    """The sink of one query; queries that share a sink get a directory or table each."""
    fields = Fields(node, _SINK, "sink: {format: parquet, path: a-directory}")
    form = text_of(fields.need("format"))
    path, options, rows = fields.text("path"), fields.options("options"), fields.whole("rows", 20)
    if form == "text":
        raise fields.need("format").error(
            "a text file holds one column, and answers have several. Use csv or json."
        )
    _need_heeded(fields, form)
    if form in FILES or form == "sqlite":
        path = resolved(text_of(fields.need("path")), folder)
    elif path is not None:
        path = resolved(path, folder)
    if form in DATABASES:
        path = _database(fields, form, path)
    elif not alone and form not in {*FILES, "console", "memory"}:
        raise node.error(f"several queries cannot share the sink {form}. Give each query a sink of its own.")
    if form in FILES and not alone:
        path = f"{path}/{query}"
    if form == "kafka":
        _need_kafka(fields, options)
    table = _table(fields, query, alone=alone)
    return Sink(form, path, table, options, fields.texts("partition_by") or (), rows, node)


def _need_heeded(fields: Fields, form: str) -> None:
    """Fail at a key that a sink of this format does nothing with: who wrote it relies on it."""
    takes = _TAKES.get(form, _SPARKS)
    for key in _SINK:
        node = fields.get(key)
        if node is not None and key not in takes:
            others = "Remove it." if form in _TAKES else "Write it into options if Spark's sink knows it."
            raise node.error(
                f"the sink {form} does nothing with it. {_INSTEAD.get((form, key), others)} "
                f"There are: {', '.join(takes)}."
            )


def _database(fields: Fields, form: str, path: str | None) -> str:
    if form == "sqlite":
        assert path is not None
        if not Path(path).parent.is_dir():
            raise fields.need("path").error(
                f"there is no directory {str(Path(path).parent)!r}. Make it first."
            )
        return path
    url = text_of(fields.need("url"))
    if not any(find_spec(driver) for driver in DRIVERS):
        raise fields.need("format").error(
            "no PostgreSQL driver is installed. Install one: pip install 'psycopg[binary]'."
        )
    return url


def _table(fields: Fields, query: str, *, alone: bool) -> str:
    node = fields.get("table")
    if node is None:
        return query
    if not alone:
        raise node.error(
            "several queries share the sink, and each has a table by its own name. Remove it, or give each "
            "query a sink of its own."
        )
    table = text_of(node)
    if not _NAME.fullmatch(table):
        raise node.error(f"{table!r} is no table name. Use letters, digits and underscores.")
    return table


def _need_kafka(fields: Fields, options: dict[str, str]) -> None:
    for option in ("kafka.bootstrap.servers", "topic"):
        if option not in options:
            raise (fields.get("options") or fields.node).error(f"the sink kafka needs the option {option!r}.")
