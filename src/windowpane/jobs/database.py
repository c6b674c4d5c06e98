"""Answers into a database by upsert on (keys, window): a micro-batch that comes again changes nothing.

The primary key is one text made of the keys and the window, since a null key is a key like any other but
not for databases. The row of a window is the answer that stands: revisions replace it, and one that is
withdrawn is deleted. A micro-batch is one transaction, which also notes the micro-batch's number, so that
an old one that comes again, of a run that was thought dead, cannot undo a newer one.
"""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from windowpane.core.results import flattened
from windowpane.jobs.ends import DRIVERS, need_free
from windowpane.jobs.times import EARLIEST, LATEST, FarTime, as_text, rows_of
from windowpane.values.errors import BadQuery

IDENTITY = "row_key"
"""The column that tells rows apart."""
BATCHES = "windowpane_batches"
"""The table that holds the last micro-batch of each streaming query and table."""


@dataclass(frozen=True)
class Dialect:
    """What differs between databases; `texts`: times and decimals are stored as texts."""

    mark: str
    types: dict[str, str]
    connect: Callable[[str], Any]
    texts: bool
    errors: type[Exception]


def sqlite() -> Dialect:
    """SQLite; its times are texts in UTC that sort and that its own functions read."""
    types = {"integer": "INTEGER", "float": "REAL", "boolean": "INTEGER", "binary": "BLOB"}
    return Dialect(
        "?", types, lambda path: sqlite3.connect(path, timeout=30), texts=True, errors=sqlite3.Error
    )


def postgresql() -> Dialect:
    """PostgreSQL by whichever driver is installed; each follows DB-API."""
    driver = import_module(next(name for name in DRIVERS if find_spec(name)))
    types = {
        "integer": "BIGINT",
        "float": "DOUBLE PRECISION",
        "boolean": "BOOLEAN",
        "time": "TIMESTAMP WITH TIME ZONE",
        "local time": "TIMESTAMP",
        "date": "DATE",
        "decimal": "NUMERIC",
        "binary": "BYTEA",
    }
    return Dialect("%s", types, driver.connect, texts=False, errors=driver.Error)


def database_errors() -> tuple[type[Exception], ...]:
    """What the databases in use raise."""
    drivers = [sys.modules[name] for name in DRIVERS if name in sys.modules]
    return (sqlite3.Error, *(driver.Error for driver in drivers))


@dataclass(frozen=True)
class Upsert:
    """Writes tables of answers; the columns before `window` are the keys."""

    dialect: Dialect
    target: str
    table: str

    def write(self, answers: pa.Table, batch: tuple[str, int] | None = None) -> None:
        """Write answers in one transaction; those of a micro-batch (streaming query, number) only once."""
        flat = flattened(answers)
        names = flat.schema.names
        put, gone = self._standing(flat, _identity_columns(names))
        with closing(self.dialect.connect(self.target)) as connection:
            cursor = connection.cursor()
            if batch is not None and not self._first_time(cursor, *batch):
                connection.rollback()
                return
            cursor.executemany(self._remove(), gone)
            cursor.executemany(self._put(names), put)
            connection.commit()

    def _first_time(self, cursor: Any, owner: str, number: int) -> bool:
        """Note the micro-batch; False where it, or a later one of the same query, was written before."""
        cursor.execute(self._note(), (owner, self.table, number))
        return bool(cursor.rowcount)

    def need_columns(self, schema: pa.Schema) -> None:
        """An error if the answers have a column that the table has itself; nothing is touched."""
        need_free(schema.names, IDENTITY, "window_start", "window_end")

    def prepare(self, schema: pa.Schema) -> None:
        """Make the table if it is not there; an error if it has other columns than the answers."""
        self.need_columns(schema)
        flat = flattened(schema.empty_table()).schema
        try:
            with closing(self.dialect.connect(self.target)) as connection:
                cursor = connection.cursor()
                cursor.execute(self._create(flat))
                cursor.execute(_CREATE_BATCHES)
                self._check(cursor, flat.names)
                connection.commit()
        except self.dialect.errors as error:
            told = str(error).strip().splitlines() or [type(error).__name__]
            raise BadQuery(
                f"the table {self.table!r} cannot be made ready: {told[0]}. "
                "Check that the database is there and that this user may write to it."
            ) from error

    def _standing(self, flat: pa.Table, identity: Sequence[str]) -> tuple[list[Any], list[Any]]:
        """The rows to put and those to remove: of each key and window only its last answer."""
        newest: dict[str, dict[str, Any]] = {}
        for row in sorted(rows_of(flat), key=lambda row: (row.get("final", True), abs(row["revision"]))):
            newest[json.dumps([_key_value(row[name]) for name in identity])] = row
        put = [
            (key, *(self._value(value, name) for name, value in row.items()))
            for key, row in newest.items()
            if row["revision"] >= 0
        ]
        return put, [(key,) for key, row in newest.items() if row["revision"] < 0]

    def _value(self, value: Any, name: str) -> Any:
        if isinstance(value, dict | list):
            return json.dumps(value, default=str)
        if self.dialect.texts and isinstance(value, date | Decimal | FarTime):
            return as_text(value)
        if isinstance(value, FarTime):
            return far_value(value, name)
        if self.dialect.texts and isinstance(value, float) and math.isnan(value):
            return "NaN"  # SQLite would make a null of it, as which a key would be taken for another
        return value

    def _create(self, schema: pa.Schema) -> str:
        columns = ", ".join(
            f"{quoted(f.name)} {self.dialect.types.get(kind_of(f.type), 'TEXT')}" for f in schema
        )
        return f"CREATE TABLE IF NOT EXISTS {self._table} ({IDENTITY} TEXT PRIMARY KEY, {columns})"

    def _check(self, cursor: Any, names: Sequence[str]) -> None:
        cursor.execute(f"SELECT * FROM {self._table} LIMIT 0")  # noqa: S608 - a quoted name
        there = [column[0] for column in cursor.description]
        wanted = [IDENTITY, *names]
        if set(there) != set(wanted):
            raise BadQuery(
                f"the table {self.table!r} has the columns {', '.join(there)}, but the answers need "
                f"{', '.join(wanted)}. Name another table, or drop this one."
            )

    def _put(self, names: Sequence[str]) -> str:
        there = [self._marked(name) for name in names]
        columns = ", ".join(there)
        marks = ", ".join([self.dialect.mark] * (len(names) + 1))
        updates = ", ".join(f"{name} = excluded.{name}" for name in there)
        return (
            f"INSERT INTO {self._table} ({IDENTITY}, {columns}) VALUES ({marks}) "  # noqa: S608 - quoted names
            f"ON CONFLICT ({IDENTITY}) DO UPDATE SET {updates}"
        )

    def _marked(self, name: str) -> str:
        """A quoted name in a statement with marks, where a driver may take a % for one."""
        return quoted(name).replace("%", "%%") if "%" in self.dialect.mark else quoted(name)

    def _note(self) -> str:
        mark = self.dialect.mark
        return (
            f"INSERT INTO {BATCHES} (owner, target, batch) VALUES ({mark}, {mark}, {mark}) "  # noqa: S608 - our own names
            f"ON CONFLICT (owner, target) DO UPDATE SET batch = excluded.batch "
            f"WHERE {BATCHES}.batch < excluded.batch"
        )

    def _remove(self) -> str:
        return f"DELETE FROM {self._table} WHERE {IDENTITY} = {self.dialect.mark}"  # noqa: S608 - a quoted name

    @property
    def _table(self) -> str:
        return ".".join(quoted(part) for part in self.table.split("."))


_CREATE_BATCHES = (
    f"CREATE TABLE IF NOT EXISTS {BATCHES} "
    "(owner TEXT, target TEXT, batch BIGINT NOT NULL, PRIMARY KEY (owner, target))"
)


def _identity_columns(names: Sequence[str]) -> list[str]:
    keys = list(names[: names.index("window_end") + 1])
    return [*keys, "definition"] if "definition" in names else keys


def quoted(name: str) -> str:
    """A name as SQL takes any."""
    return '"' + name.replace('"', '""') + '"'


def kind_of(type_: pa.DataType) -> str:
    """The kind of column that a type needs; what is no plain value is a text in JSON."""
    tests = {
        "boolean": pa.types.is_boolean,
        "integer": pa.types.is_integer,
        "float": pa.types.is_floating,
        "time": lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
        "local time": pa.types.is_timestamp,
        "date": pa.types.is_date,
        "decimal": pa.types.is_decimal,
        "binary": pa.types.is_binary,
    }
    return next((kind for kind, test in tests.items() if test(type_)), "text")


def far_value(value: FarTime, name: str) -> str:
    """A time beyond Python's years as PostgreSQL takes it."""
    if not EARLIEST <= value.year <= LATEST:
        raise BadQuery(
            f"column {name!r} holds {value}, and PostgreSQL holds the years from 4713 BC to 294276 AD. Leave "
            "such rows out (source: where), or use sqlite or files."
        )
    return value.counted


def _key_value(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else as_text(value)
