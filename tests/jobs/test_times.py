"""Times that Python has none for are shown and stored as any other; they stopped a job for good."""

import json
from contextlib import closing
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import BadQuery
from windowpane.jobs.database import Upsert, far_value, postgresql, sqlite
from windowpane.jobs.show import table_text
from windowpane.jobs.times import FarTime, as_text, rows_of

TIME = pa.timestamp("us", "UTC")
FIRST = -62_135_596_800_000_000
"""The beginning of the year 1, in microseconds since 1970."""
MINUTE = 60_000_000
BEFORE = "0000-12-31 23:59:10.000000"


def moments(*values, type_=TIME):
    return pa.array(values, pa.int64()).view(type_)


@pytest.fixture(scope="module")
def answers():
    """Of an ancient row among good ones; its first windows begin in the year 0."""
    rows = pa.table({"ts": moments(FIRST, 0, MINUTE), "k": ["old", "a", "a"]})
    stream = wp.stream(rows, time="ts", keys="k", max_ahead=None, delay="9999999 d")
    query = stream.window(wp.sliding("1 min", "10 s")).agg(wp.count(), seen=wp.collect("ts"))
    return query.run().table


def test_a_console_shows_windows_that_begin_before_the_year_1(answers):
    shown = table_text(answers, "query, batch 0", 30, answers.num_rows)
    assert "│ old │ 0000-12-31 23:59:10 │ 0001-01-01 00:00:10 │ 1 " in shown
    assert "│ a   │ 1970-01-01 00:01:00 │ 1970-01-01 00:02:00 │ 1 " in shown


def test_a_time_is_shown_the_same_whatever_stands_beside_it():
    near = pa.table({"ts": moments(0, 1), "v": [0.1, None]})
    far = pa.concat_tables([near, pa.table({"ts": moments(FIRST - 1), "v": [0.5]})])
    one, other = table_text(near, "", 9, 2).splitlines(), table_text(far, "", 9, 3).splitlines()
    wide = "1970-01-01 00:00:00.000001"
    assert [line for line in one if wide in line] == [line for line in other if wide in line]
    assert any("0000-12-31 23:59:59.999999" in line for line in other)


def test_sqlite_holds_windows_that_begin_before_the_year_1_and_sorts_them(answers, tmp_path):
    upsert = Upsert(sqlite(), str(tmp_path / "a.db"), "answers")
    upsert.prepare(answers.schema)
    upsert.write(answers)
    upsert.write(answers)  # the same row keys
    with closing(upsert.dialect.connect(upsert.target)) as connection:
        found = connection.execute(
            "SELECT k, window_start, window_end, count, datetime(window_start), row_key FROM answers "
            "ORDER BY window_start"
        ).fetchall()
    assert len(found) == answers.num_rows
    end = "0001-01-01 00:00:10.000000"
    key = json.dumps(["old", BEFORE, end])
    assert found[0] == ("old", BEFORE, end, 1, "0000-12-31 23:59:10", key)
    assert found[-1][:3] == ("a", "1970-01-01 00:01:00.000000", "1970-01-01 00:02:00.000000")


def test_postgresql_holds_windows_that_begin_before_the_year_1(answers, postgres):
    upsert = Upsert(postgresql(), postgres, "ancient")
    upsert.prepare(answers.schema)
    upsert.write(answers)
    with closing(upsert.dialect.connect(postgres)) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "SELECT k, extract(epoch FROM window_start)::bigint, extract(epoch FROM window_end)::bigint "
            "FROM ancient ORDER BY window_start"
        )
        found = cursor.fetchall()
    assert found[0] == ("old", FIRST // 10**6 - 50, FIRST // 10**6 + 10)
    assert found[-1] == ("a", 60, 120)
    assert len(found) == answers.num_rows


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (FarTime(BEFORE, zoned=True), "0001-12-31 23:59:10.000000+00 BC"),
        (FarTime(BEFORE), "0001-12-31 23:59:10.000000 BC"),
        (FarTime("-4712-01-01"), "4713-01-01 BC"),
        (FarTime("17814-05-16 00:53:20.000000", zoned=True), "17814-05-16 00:53:20.000000+00"),
    ],
)
def test_postgresql_is_given_years_as_it_counts_them(value, text):
    assert far_value(value, "ts") == text


@pytest.mark.parametrize("year", ["-4713", "-144000", "294277"])
def test_a_time_that_postgresql_does_not_hold_is_told_with_its_column(year):
    value = FarTime(f"{year}-01-01 00:00:00.000000", zoned=True)
    with pytest.raises(BadQuery) as raised:
        far_value(value, "window_start")
    assert str(raised.value) == (
        f"column 'window_start' holds {year}-01-01 00:00:00+00:00, and PostgreSQL holds the years from "
        "4713 BC to 294276 AD. Leave such rows out (source: where), or use sqlite or files."
    )


def test_rows_are_those_of_arrow_but_for_far_times_also_in_lists_and_structs():
    far, near = FarTime(BEFORE, zoned=True), datetime(1970, 1, 1, tzinfo=UTC)
    times = moments(FIRST - 50_000_000, 0, None)
    table = pa.table(
        {
            "t": times,
            "list": pa.ListArray.from_arrays([0, 2, 2, 3], times),
            "struct": pa.StructArray.from_arrays([times, pa.array([1, 2, 3])], ["t", "n"]),
            "wall": moments(0, 0, FIRST - 1, type_=pa.timestamp("us")),
            "day": pa.array([-719_163, 0, None], pa.int32()).view(pa.date32()),
            "text": ["x", None, "z"],
        }
    )
    rows = rows_of(table)
    assert [row["t"] for row in rows] == [far, near, None]
    assert [row["list"] for row in rows] == [[far, near], [], [None]]
    assert [row["struct"] for row in rows] == [{"t": far, "n": 1}, {"t": near, "n": 2}, {"t": None, "n": 3}]
    assert rows[2]["wall"] == FarTime("0000-12-31 23:59:59.999999")
    assert [row["day"] for row in rows] == [FarTime("0000-12-31"), date(1970, 1, 1), None]
    assert rows[1:2] == table.slice(1, 1).to_pylist()
    assert json.dumps(rows[0]["list"], default=str) == (
        '["0000-12-31 23:59:10+00:00", "1970-01-01 00:00:00+00:00"]'
    )


def test_a_time_has_one_text_in_every_zone():
    """When the year 1 begins in UTC it is still the year 0 in New York."""
    for zone in ("UTC", "America/New_York", "Europe/Berlin"):
        (row,) = rows_of(pa.table({"t": moments(FIRST, type_=pa.timestamp("us", zone))}))
        assert as_text(row["t"]) == "0001-01-01 00:00:00.000000"
