"""The helpers that windowpane offers to tests."""

import math

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.testing import assert_same_windows, latest

ROWS = [
    {"k": "a", "window": {"start": 0, "end": 10}, "mean": 1.5, "revision": 0},
    {"k": "a", "window": {"start": 10, "end": 20}, "mean": math.nan, "revision": 0},
    {"k": None, "window": {"start": 0, "end": 10}, "mean": None, "revision": 0},
]


def run(times, window, **options):
    rows = pa.table({"ts": times, "k": ["a"] * len(times)})
    runner = wp.stream(rows, time="ts", keys="k", **options).window(window).agg(wp.count()).start()
    steps = [runner.push(rows.slice(i, 1)) for i in range(len(times))] + [runner.close()]
    return pa.concat_tables([runner.answers(step) for step in steps])


def test_rows_may_come_in_any_order_and_columns_too():
    reordered = [dict(reversed(row.items())) for row in reversed(ROWS)]
    assert_same_windows(pa.Table.from_pylist(ROWS), pa.Table.from_pylist(reordered))
    assert_same_windows(ROWS, reordered)


def test_floats_may_differ_by_the_tolerance():
    near = [{**ROWS[0], "mean": 1.5 + 1e-12}, *ROWS[1:]]
    assert_same_windows(ROWS, near)
    with pytest.raises(AssertionError):
        assert_same_windows(ROWS, near, tolerance=0)


def test_a_difference_is_shown_side_by_side():
    other = [{**ROWS[0], "mean": 2.25}, ROWS[1]]
    with pytest.raises(AssertionError) as failure:
        assert_same_windows(ROWS, other)
    assert str(failure.value).splitlines() == [
        "2 windows differ, of 3 rows on the left and 2 on the right",
        "       k     window   mean  revision",
        "left   a     0 .. 10  1.5   0",
        "right  a     0 .. 10  2.25  0",
        "left   None  0 .. 10  None  0",
        "right  -     -        -     -",
    ]


def test_a_row_that_comes_twice_is_a_difference():
    with pytest.raises(AssertionError, match="1 windows differ, of 3 rows on the left and 4 on the right"):
        assert_same_windows(ROWS, [*ROWS, ROWS[0]])


def test_many_differences_are_counted():
    many = [{"window": {"start": i, "end": i + 1}, "count": i} for i in range(12)]
    with pytest.raises(AssertionError, match=r"and 2 more$"):
        assert_same_windows(many, [{**row, "count": -1} for row in many])


def test_other_columns_are_named():
    with pytest.raises(AssertionError) as failure:
        assert_same_windows([{"a": 1}], [{"b": 1}])
    assert str(failure.value) == "the columns differ\nleft   a\nright  b"


def test_two_empty_tables_are_the_same():
    assert_same_windows(
        pa.table({"count": pa.array([], pa.int64())}), pa.table({"count": pa.array([], pa.int32())})
    )


def test_the_latest_revision_stands():
    table = run([1, 12, 3, 25], wp.tumbling(10), lateness=100)
    assert table["revision"].to_pylist() == [0, 1, 0, 0]
    in_order = run([1, 3, 12, 25], wp.tumbling(10))
    assert_same_windows(latest(table), in_order, ignore=["revision"])
    with pytest.raises(AssertionError, match="1 windows differ"):
        assert_same_windows(latest(table), in_order)


def test_a_withdrawn_window_does_not_stand():
    table = run([0, 8, 30, 4], wp.session(5), lateness=100)
    assert -1 in table["revision"].to_pylist()
    assert_same_windows(latest(table), run([0, 4, 8, 30], wp.session(5)))


def test_a_withdrawn_window_that_returned_stands():
    table = run([0, 10, 20, 5, 7], wp.per_row(3, every=2), lateness=100)
    assert [r for r in table.to_pylist() if r["window"]["end"] == 10][-1]["revision"] == 2
    in_order = run([0, 5, 7, 10, 20], wp.per_row(3, every=2))
    assert_same_windows(latest(table), in_order, ignore=["revision"])


def test_provisional_rows_do_not_stand():
    rows = {"ts": [1, 2, 12], "k": ["a", "a", "a"]}
    query = wp.stream(rows, time="ts", keys="k").window(wp.tumbling(10)).agg(wp.count(), emit="update")
    table = query.run().table
    assert table.num_rows > 2
    assert latest(table)["count"].to_pylist() == [2, 1]
    assert latest(table)["final"].to_pylist() == [True, True]
