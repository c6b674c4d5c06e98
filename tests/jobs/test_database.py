"""Answers into databases by upsert: what comes again changes nothing, revisions replace what they revise."""

from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from windowpane.errors import BadQuery
from windowpane.jobs.database import Upsert, postgresql, sqlite

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


SHOWN = {
    "sqlite": "SELECT k, window_start, n, revision FROM answers ORDER BY 2, 1 NULLS FIRST",
    "postgresql": """SELECT k, to_char(window_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), n,
                     revision FROM answers ORDER BY 2, 1 NULLS FIRST""",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    """A way to write, and the way to read what is there."""
    if request.param == "sqlite":
        upsert = Upsert(sqlite(), str(tmp_path / "a.db"), "answers")
    else:
        upsert = Upsert(postgresql(), request.getfixturevalue("postgres"), "answers")
    upsert.prepare(SCHEMA)

    def read(text=SHOWN[request.param]):
        with closing(upsert.dialect.connect(upsert.target)) as connection:
            cursor = connection.cursor()
            cursor.execute(text)
            return cursor.fetchall()

    yield upsert, read
    with closing(upsert.dialect.connect(upsert.target)) as connection:
        connection.cursor().execute("DROP TABLE answers")
        connection.cursor().execute("DROP TABLE windowpane_batches")
        connection.commit()


def test_a_micro_batch_that_comes_again_changes_nothing_also_for_null_keys(database):
    upsert, rows = database
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


def test_an_old_micro_batch_that_comes_again_does_not_undo_a_newer_one(database):
    upsert, rows = database
    upsert.write(answers(("a", 0, 3, None, 0)), ("query", 0))
    upsert.write(answers(("a", 0, 5, None, 1)), ("query", 1))
    upsert.write(answers(("a", 0, 3, None, 0)), ("query", 0))
    upsert.write(answers(("a", 0, 9, None, 0)), ("query", 1))
    assert rows() == [("a", "1970-01-01 00:00:00.000000", 5, 1)]
    upsert.write(answers(("a", 0, 4, None, 0)), ("another checkpoint's query", 0))
    assert rows() == [("a", "1970-01-01 00:00:00.000000", 4, 0)]


def test_a_micro_batch_that_fails_leaves_nothing_and_may_come_again(database, monkeypatch):
    upsert, rows = database
    upsert.write(answers(("a", 0, 3, None, 0)), ("query", 0))
    with monkeypatch.context() as patch:
        mark = upsert.dialect.mark
        patch.setattr(Upsert, "_put", lambda *_: f"INSERT INTO nothing VALUES ({mark})")  # noqa: S608
        with pytest.raises(upsert.dialect.errors):
            upsert.write(answers(("b", 0, 1, None, 0), ("a", 0, None, None, -1)), ("query", 1))
    assert [row[0] for row in rows()] == ["a"]
    upsert.write(answers(("b", 0, 1, None, 0), ("a", 0, None, None, -1)), ("query", 1))
    assert [row[0] for row in rows()] == ["b"]


def test_a_database_that_cannot_be_opened_is_told(tmp_path):
    (tmp_path / "a.db").write_text("this is no database, but it is long enough to be taken for one" * 20)
    with pytest.raises(BadQuery, match=r"'answers' cannot be made ready: file is not a database\. Check"):
        Upsert(sqlite(), str(tmp_path / "a.db"), "answers").prepare(SCHEMA)


def test_a_revision_replaces_and_a_withdrawal_deletes(database):
    upsert, rows = database
    upsert.write(answers(("a", 0, 3, None, 0), ("b", 0, 1, None, 0)))
    upsert.write(answers(("a", 0, 5, None, 2), ("a", 0, 4, None, 1), ("b", 0, None, None, -1)))
    assert rows() == [("a", "1970-01-01 00:00:00.000000", 5, 2)]
    upsert.write(answers(("b", 0, 2, None, 2)))
    assert [row[0] for row in rows()] == ["a", "b"]


def test_nested_values_are_json(database):
    upsert, read = database
    upsert.write(answers(("a", 0, 3, [{"value": "x", "count": 2}], 0)))
    assert read("SELECT top FROM answers") == [('[{"value": "x", "count": 2}]',)]


def test_a_table_with_other_columns_is_refused(tmp_path):
    Upsert(sqlite(), str(tmp_path / "a.db"), "answers").prepare(SCHEMA)
    other = SCHEMA.remove(3)
    with pytest.raises(
        BadQuery, match=r"the table 'answers' has the columns row_key, k, .*Name another table"
    ):
        Upsert(sqlite(), str(tmp_path / "a.db"), "answers").prepare(other)


def test_names_are_quoted_so_that_any_column_will_do(database):
    upsert, read = database
    odd = 'k"; DROP TABLE answers; -- 100%s'
    table = answers(("a", 0, 3, None, 0)).rename_columns([odd, "window", "n", "top", "revision"])
    other = Upsert(upsert.dialect, upsert.target, "order")
    other.prepare(table.schema)
    other.write(table)
    assert read('SELECT n FROM "order"') == [(3,)]
    assert read() == []


def test_an_empty_micro_batch_leaves_the_table_as_it_is(database):
    upsert, rows = database
    upsert.write(answers())
    assert rows() == []


def test_what_is_no_number_is_told_from_what_is_not_there(tmp_path):
    """SQLite makes a null of NaN: a key that is NaN could not be told from one that is null."""
    kind = pa.struct([("start", pa.int64()), ("end", pa.int64())])
    window = pa.array([{"start": 0, "end": 1}] * 3, kind)
    table = pa.table({"k": [float("nan"), None, float("inf")], "window": window, "revision": [0] * 3})
    upsert = Upsert(sqlite(), str(tmp_path / "a.db"), "answers")
    upsert.prepare(table.schema)
    upsert.write(table)
    with closing(upsert.dialect.connect(upsert.target)) as connection:
        found = connection.execute("SELECT k, typeof(k) FROM answers ORDER BY k").fetchall()
    assert found == [(None, "null"), (float("inf"), "real"), ("NaN", "text")]


def test_every_type_of_value_comes_back_from_postgresql(postgres):
    day, moment = date(2024, 2, 29), datetime(2024, 2, 29, 12, 30, 0, 5)  # noqa: DTZ001 - a wall clock
    values = {
        "flag": True,
        "small": 5,
        "ratio": 0.1,
        "endless": float("inf"),
        "price": Decimal("12.50"),
        "day": day,
        "wall": moment,
        "raw": b"\x00\xff",
        "text": "größe \"'; --",
    }
    window = {"start": moment.replace(tzinfo=UTC), "end": moment.replace(tzinfo=UTC)}
    kind = pa.struct([("start", TIME), ("end", TIME)])
    table = pa.table(
        {"window": pa.array([window], kind)} | {k: [v] for k, v in values.items()} | {"revision": [0]}
    )
    upsert = Upsert(postgresql(), postgres, "kinds")
    upsert.prepare(table.schema)
    upsert.write(table)
    with closing(upsert.dialect.connect(postgres)) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SELECT {', '.join(values)}, window_end FROM kinds")  # noqa: S608 - our own names
        assert dict(zip(values, cursor.fetchone(), strict=False)) == values


def test_a_server_that_is_not_there_is_told():
    with pytest.raises(BadQuery, match=r"'answers' cannot be made ready: .*Check that the database is there"):
        Upsert(postgresql(), "host=127.0.0.1 port=9 connect_timeout=2", "answers").prepare(SCHEMA)


@pytest.mark.parametrize("name", ["window_start", "Window_End", "row_key"])
def test_a_column_that_the_sink_has_itself_is_refused(tmp_path, name):
    """An aggregate named window_start took the place of the window."""
    schema = SCHEMA.set(2, pa.field(name, pa.int64()))
    with pytest.raises(BadQuery, match=f"the answers have a column '{name}'"):
        Upsert(sqlite(), str(tmp_path / "a.db"), "answers").prepare(schema)
