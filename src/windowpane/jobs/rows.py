"""The rows of a source as a DataFrame; what cannot be read as the schema says is told apart, not made null.

Spark's own readers of texts put a null in the place of a value that they cannot read, and take the columns of
a CSV file by their places whatever its heading says. Options that the job gives itself count instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from windowpane.core.required import WELL_FORMED
from windowpane.jobs.columns import Path, columns_read, paths_read, tree_of
from windowpane.jobs.footers import Footers
from windowpane.jobs.job import Job, Source
from windowpane.jobs.objects import FAULT, RECORD, Texts, lines, literal, objects
from windowpane.spark.session import ERRORS, quoted
from windowpane.values.punctuation import marker_of

_OF_RECORD = ("topic", "partition", "offset")
"""Columns of Kafka's own that stay beside those of the value."""
_OWN_WAY = {"mode", "columnnameofcorruptrecord"}
"""Options by which a job says itself what becomes of a malformed record."""
_NO_LINES = {"multiline", "encoding", "charset", "singlevariantcolumn"}
"""Options with which the lines of a file are not the texts of its JSON objects."""
_LINES = {("multiline", "false"), ("encoding", "utf-8"), ("charset", "utf-8"), ("encoding", "utf8")}
"""Those that say what is so anyway."""
_DROPS = re.compile(r"\b(explode|posexplode|inline)\s*\(", re.IGNORECASE)
"""Functions that leave no row where a column is null, as it is in a record that could not be read."""
_REMEDY = (
    " (Correct the record, or write malformed: reject, which counts such records, or keep, which has nulls.)"
)
_SPARKS = "spark.sql.columnNameOfCorruptRecord"
_MOST = 300
"""Letters of a record that a message shows."""


@dataclass(frozen=True)
class Opened:
    """A source: its rows, and where it has files whose columns are to be looked at, what does so."""

    frame: Any
    files: Footers | None = None


def opened(job: Job, session: Any) -> Opened:
    """The source of a job, streaming unless its trigger is `batch`."""
    source = job.source
    schema = _schema(source, session)
    paths = () if schema is None else paths_read(source, tree_of(schema), columns_read(job))
    checked = source.of_texts and source.malformed != "keep" and not _own_way(source, schema, session)
    reader = session.readStream if job.streaming else session.read
    if checked and (source.in_values or _of_lines(source, session)):
        found, marks = _objects(reader, source, schema, paths)
    else:
        found, marks = _read(reader, source, schema, checked=checked)
    return Opened(_chosen(found, job, marks), Footers.of(source, paths))


def _schema(source: Source, session: Any) -> Any:
    """The columns to read: those that are given, or those of the files that the source's options choose."""
    if source.schema is not None:
        return session.createDataFrame([], source.schema).schema
    parquet = source.format == "parquet" and source.path is not None
    return _loaded(session.read.format("parquet"), source).schema if parquet else None


def _own_way(source: Source, schema: Any, session: Any) -> bool:
    own = _OWN_WAY & {name.lower() for name in source.options}
    return bool(own) or session.conf.get(_SPARKS) in schema.names


def _of_lines(source: Source, session: Any) -> bool:
    """Whether a source has files of JSON objects in lines, and no columns in the names of directories."""
    given = {(name.lower(), value.lower()) for name, value in source.options.items()} - _LINES
    if source.format != "json" or _NO_LINES & {name for name, _ in given}:
        return False
    try:
        there = session.read.format("text").options(**source.options).load(source.path).columns
    except ERRORS:  # nothing is there yet
        return True
    return list(there) == ["value"]


def _objects(reader: Any, source: Source, schema: Any, paths: Sequence[Path]) -> tuple[Any, tuple[str, ...]]:
    """JSON objects as columns, with what says that one is malformed."""
    if source.in_values:
        found = _loaded(reader.format(source.format), source)
        about = [name for name in _OF_RECORD if name in found.columns and name not in schema.names]
        found = objects(found, schema, paths, Texts(_place(about, source), about))
    else:
        found = lines(_loaded(reader.format("text"), source))
        found = objects(found, schema, paths, Texts("input_file_name()", options=source.options, skips=True))
    if source.malformed == "fail":
        return found, (RECORD, FAULT)
    return found.drop(FAULT).selectExpr("*", _WELL_FORMED), (WELL_FORMED, RECORD)


def _place(about: Sequence[str], source: Source) -> str:
    """The SQL text that says where a record is."""
    if list(about) != list(_OF_RECORD):
        return literal(f"the source {source.format}")
    return "concat('topic ', topic, ', partition ', partition, ', offset ', offset)"


_WELL_FORMED = f"if({RECORD} is null, true, null) as {WELL_FORMED}"


def _read(reader: Any, source: Source, schema: Any, *, checked: bool) -> tuple[Any, tuple[str, ...]]:
    """The rows as Spark's own reader has them, with marks at malformed ones where they are to be rejects."""
    marked = checked and source.malformed == "reject"
    if schema is not None and not source.in_values:
        reader = reader.schema(f"{schema.toDDL()}, {RECORD} string" if marked else schema)
    reader = reader.format(source.format).options(**_strict(source, marked=marked))
    found = _loaded(reader, source)
    if source.in_values:
        about = [name for name in _OF_RECORD if name in found.columns and name not in schema.names]
        how = ", map('mode', 'FAILFAST')" if source.malformed == "fail" else ""
        columns = f"from_json(cast(value as string), {literal(schema.toDDL())}{how})"
        found = found.selectExpr(f"inline(array({columns}))", *about)
    if marked:
        return found.selectExpr("*", _WELL_FORMED), (WELL_FORMED, RECORD)
    return found, ()


def _loaded(reader: Any, source: Source) -> Any:
    reader = reader.options(**source.options)
    return reader.load() if source.path is None else reader.load(source.path)


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


def _chosen(found: Any, job: Job, marks: tuple[str, ...]) -> Any:
    """What `select` and `where` leave; a malformed record stays, to be counted or to stop the job."""
    select, where = job.source.select, job.source.where
    if select:
        _need_outer(job, select if marks else ())
        there = found.selectExpr(*select).columns
        found = found.selectExpr(*select, *(name for name in marks if name not in there))
    if where is not None:
        kept = f"({where}\n) or {RECORD} is not null" if marks else where
        found = found.where(kept)
    return _stopping(found, job).drop(*marks) if FAULT in marks else found


def _need_outer(job: Job, select: Sequence[str]) -> None:
    """Fail where a function would drop malformed records before they are counted."""
    for drops in filter(None, map(_DROPS.search, select)):
        raise job.section("source").error(
            f"select has {drops[1]}(), which drops malformed records uncounted. Write {drops[1]}_outer() "
            "and leave nulls out by where, which malformed records pass, or write malformed: keep."
        )


def _stopping(found: Any, job: Job) -> Any:
    """The rows with a time that stops the job where one is malformed; a marker needs no columns."""
    time, policy = job.stream["time"], job.stream.get("punctuation")
    marker = "" if policy is None else marker_of(policy) or ""
    if time not in found.columns:
        return found
    is_marker = f"coalesce(cast({quoted(marker)} as boolean), false)" if marker in found.columns else "false"
    told = f"concat({FAULT}, ': ', left({RECORD}, {_MOST}), {literal(_REMEDY)})"
    bad = f"{FAULT} is not null and not {is_marker}"
    whole = f"if({bad}, raise_error({told}), {quoted(time)}) as {quoted(time)}"
    return found.selectExpr(*(whole if name == time else quoted(name) for name in found.columns))
