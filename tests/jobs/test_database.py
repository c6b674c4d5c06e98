"""Answers into SQLite by upsert: what comes again changes nothing, revisions replace, withdrawals delete."""

import sqlite3
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from windowpane.errors import BadQuery
from windowpane.jobs.database import Upsert, sqlite

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("window", pa.struct([("start", TIME), ("end", TIME)])),
        ("n", pa.int64()),
        ("top", pa.list_(pa.struct([("value", pa.string()), ("count", pa.int64())]))),
        ("revision", pa.int32()),
    ]
)


def answers(*rows):
    def at(second):
        return datetime.fromtimestamp(second, UTC)

    return pa.Table.from_pylist(
        [
            {"k": k, "window": {"start": at(s), "end": at(s + 1)}, "n": n, "top": top, "revision": revision}
            for k, s, n, top, revision in rows
        ],
        schema=SCHEMA,
    )


@pytest.fixture
def table(tmp_path):
    upsert = Upsert(sqlite(), str(tmp_path / "a.db"), "answers")
    upsert.prepare(SCHEMA)

    def rows():
        with sqlite3.connect(tmp_path / "a.db") as connection:
            return connection.execute(
                "SELECT k, window_start, n, revision FROM answers ORDER BY 2, 1"
            ).fetchall()

    return upsert, rows


def test_a_micro_batch_that_comes_again_changes_nothing_also_for_null_keys(table):
    upsert, rows = table
    batch = answers(("a", 0, 3, None, 0), (None, 0, 4, None, 0), ("a", 1, 5, None, 0))
    upsert.write(batch)
    before = rows()
    upsert.write(batch)
    assert rows() == before
    assert before == [
        (None, "1970-01-01 00:00:00.000000", 4, 0),
        ("a", "1970-01-01 00:00:00.000000", 3, 0),
        ("a", "1970-01-01 00:00:01.000000", 5, 0),
    ]


def test_an_old_micro_batch_that_comes_again_does_not_undo_a_newer_one(table):
    upsert, rows = table
    upsert.write(answers(("a", 0, 3, None, 0)), ("query", 0))
    upsert.write(answers(("a", 0, 5, None, 1)), ("query", 1))
    upsert.write(answers(("a", 0, 3, None, 0)), ("query", 0))
    upsert.write(answers(("a", 0, 9, None, 0)), ("query", 1))
    assert rows() == [("a", "1970-01-01 00:00:00.000000", 5, 1)]
    upsert.write(answers(("a", 0, 4, None, 0)), ("another checkpoint's query", 0))
    assert rows() == [("a", "1970-01-01 00:00:00.000000", 4, 0)]


def test_a_micro_batch_that_fails_leaves_nothing_and_may_come_again(table, monkeypatch):
    upsert, rows = table
    upsert.write(answers(("a", 0, 3, None, 0)), ("query", 0))
    with monkeypatch.context() as patch:
        patch.setattr(Upsert, "_put", lambda *_: "INSERT INTO nothing VALUES (?)")
        with pytest.raises(sqlite3.Error):
            upsert.write(answers(("b", 0, 1, None, 0), ("a", 0, None, None, -1)), ("query", 1))
    assert [row[0] for row in rows()] == ["a"]
    upsert.write(answers(("b", 0, 1, None, 0), ("a", 0, None, None, -1)), ("query", 1))
    assert [row[0] for row in rows()] == ["b"]


def test_a_database_that_cannot_be_opened_is_told(tmp_path):
    (tmp_path / "a.db").write_text("this is no database, but it is long enough to be taken for one" * 20)
    with pytest.raises(BadQuery, match=r"'answers' cannot be made ready: file is not a database\. Check"):
        Upsert(sqlite(), str(tmp_path / "a.db"), "answers").prepare(SCHEMA)


def test_a_revision_replaces_and_a_withdrawal_deletes(table):
    upsert, rows = table
    upsert.write(answers(("a", 0, 3, None, 0), ("b", 0, 1, None, 0)))
    upsert.write(answers(("a", 0, 5, None, 2), ("a", 0, 4, None, 1), ("b", 0, None, None, -1)))
    assert rows() == [("a", "1970-01-01 00:00:00.000000", 5, 2)]
    upsert.write(answers(("b", 0, 2, None, 2)))
    assert [row[0] for row in rows()] == ["a", "b"]


def test_nested_values_are_json(table, tmp_path):
    upsert, _ = table
    upsert.write(answers(("a", 0, 3, [{"value": "x", "count": 2}], 0)))
    with sqlite3.connect(tmp_path / "a.db") as connection:
        assert connection.execute("SELECT top FROM answers").fetchone() == ('[{"value": "x", "count": 2}]',)


def test_a_table_with_other_columns_is_refused(tmp_path):
    Upsert(sqlite(), str(tmp_path / "a.db"), "answers").prepare(SCHEMA)
    other = SCHEMA.remove(3)
    with pytest.raises(
        BadQuery, match=r"the table 'answers' has the columns row_key, k, .*Name another table"
    ):
        Upsert(sqlite(), str(tmp_path / "a.db"), "answers").prepare(other)


def test_names_are_quoted_so_that_any_column_will_do(tmp_path):
    odd = 'k"; DROP TABLE answers; --'
    table = answers(("a", 0, 3, None, 0)).rename_columns([odd, "window", "n", "top", "revision"])
    upsert = Upsert(sqlite(), str(tmp_path / "a.db"), "order")
    upsert.prepare(table.schema)
    upsert.write(table)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        assert connection.execute('SELECT count(*) FROM "order"').fetchone() == (1,)


def test_an_empty_micro_batch_leaves_the_table_as_it_is(table):
    upsert, rows = table
    upsert.write(answers())
    assert rows() == []
