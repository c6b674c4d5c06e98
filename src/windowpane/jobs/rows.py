"""The rows of a source as a DataFrame; what cannot be read as the schema says is told apart, not made null.

Spark's own readers of texts put a null in the place of a value that they cannot read, and take the columns of
a CSV file by their places whatever its heading says. Options that the job gives itself count instead.
"""

from __future__ import annotations

from typing import Any

from windowpane.core.required import WELL_FORMED
from windowpane.jobs.job import Source

RECORD = "_record"
"""The column with the text of a record that could not be read, which the rejects have."""
_OF_RECORD = ("topic", "partition", "offset")
"""Columns of Kafka's own that stay beside those of the value."""
_OWN_WAY = {"mode", "columnnameofcorruptrecord"}
"""Options by which a job says itself what becomes of a malformed record."""
_SPARKS = "spark.sql.columnNameOfCorruptRecord"


def rows_of(source: Source, session: Any, *, streaming: bool) -> Any:
    """The rows, with the columns and of the conditions that the source names."""
    reader = (session.readStream if streaming else session.read).format(source.format)
    schema = _schema(source, session)
    marked = RECORD in (schema.names if schema is not None else ())
    if schema is not None and not source.in_values:
        reader = reader.schema(schema)
    reader = reader.options(**_strict(source, marked=marked)).options(**source.options)
    found = reader.load() if source.path is None else reader.load(source.path)
    if source.in_values:
        found = parsed(found, source, schema)
    if marked:
        found = found.selectExpr("*", f"if({RECORD} is null, true, null) as {WELL_FORMED}")
    return _chosen(found, source, (WELL_FORMED, RECORD) if marked else ())


def _schema(source: Source, session: Any) -> Any:
    """The columns to read, and where a malformed record is to be a reject one for its text."""
    if source.schema is None:
        parquet = source.format == "parquet" and source.path is not None
        return session.read.parquet(source.path).schema if parquet else None
    found = session.createDataFrame([], source.schema).schema
    own_way = session.conf.get(_SPARKS) in found.names or _OWN_WAY & {name.lower() for name in source.options}
    if source.malformed != "reject" or not source.of_texts or own_way:
        return found
    return found.add(RECORD, "string")


def _strict(source: Source, *, marked: bool) -> dict[str, str]:
    """Options with which no value goes into another column, and none becomes null without a word."""
    if source.in_values or not source.of_texts or source.malformed == "keep":
        return {}
    found = {"columnNameOfCorruptRecord": RECORD} if marked else {}
    if source.malformed == "fail":
        found["mode"] = "FAILFAST"
    if source.format == "csv":
        found["columnPruning"] = "false"  # else a record that lacks a value is only noticed if it is read
        heads = {name.lower(): value.lower() for name, value in source.options.items()}.get("header")
        found |= {"enforceSchema": "false"} if heads == "true" else {}
    return found


def parsed(found: Any, source: Source, schema: Any) -> Any:
    """The JSON texts in `value` as columns, beside what Kafka tells of each."""
    about = [name for name in _OF_RECORD if name in found.columns and name not in schema.names]
    how = ", map('mode', 'FAILFAST')" if source.malformed == "fail" else ""
    how = f", map('columnNameOfCorruptRecord', '{RECORD}')" if RECORD in schema.names else how
    columns = f"from_json(cast(value as string), {text(schema.toDDL())}{how})"
    return found.selectExpr(f"inline(array({columns}))", *about)


def _chosen(found: Any, source: Source, marks: tuple[str, ...]) -> Any:
    """What `select` and `where` leave; a malformed record stays, to be counted."""
    if source.select:
        there = found.selectExpr(*source.select).columns
        found = found.selectExpr(*source.select, *(name for name in marks if name not in there))
    if source.where is None:
        return found
    return found.where(f"({source.where}\n) or {WELL_FORMED} is null" if marks else source.where)


def text(words: str) -> str:
    """A text as Spark SQL writes it."""
    escaped = words.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
