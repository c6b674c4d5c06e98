"""Revisions of single windows, step by step."""

import pytest

import windowpane as wp
from tests.property.harness import Case, batch_of, check
from tests.property.strategies import AGGREGATES
from windowpane.values import windows as w

BLANK = {
    "k": "a",
    "g": None,
    "p": 0,
    "i": 1,
    "j": 1,
    "f": 1.0,
    "w": 1.0,
    "s": "x",
    "up": False,
    "down": False,
}
COUNT = {"count": AGGREGATES["count"]}


def rows(*times, **values):
    return [{**BLANK, "ts": t, "seq": i, **values} for i, t in enumerate(times)]


def answers(case):
    """`(start, end, count, revision)` of each step."""
    runner = case.query().start()
    steps = [runner.push(batch_of(batch)) for batch in case.batches]
    return [
        sorted(
            (r["window"]["start"], r["window"]["end"], r["count"], r["revision"]) for r in table.to_pylist()
        )
        for table in (runner.answers(step) for step in steps)
    ]


def test_a_late_row_brings_the_next_revision():
    case = Case((wp.tumbling(10),), COUNT, rows(1, 12, 3, 4), lateness=100, cuts=[2, 3])
    assert answers(case) == [[(0, 10, 1, 0)], [(0, 10, 2, 1)], [(0, 10, 3, 2)]]


def test_the_first_answer_of_a_window_has_revision_0_even_if_a_late_row_brings_it():
    case = Case((wp.tumbling(10),), COUNT, rows(1, 22, 12, 13), lateness=100, cuts=[2, 3])
    assert answers(case) == [[(0, 10, 1, 0)], [(10, 20, 1, 0)], [(10, 20, 2, 1)]]


def test_a_late_row_that_joins_sessions_withdraws_both():
    case = Case((wp.session(5),), COUNT, rows(0, 8, 30, 4), lateness=100, cuts=[3])
    assert answers(case) == [
        [(0, 5, 1, 0), (8, 13, 1, 0)],
        [(0, 5, None, -1), (0, 13, 3, 0), (8, 13, None, -1)],
    ]


def test_a_withdrawn_window_that_returns_goes_on_with_its_revisions():
    # every second tuple: the window of t=10 goes when 5 makes it the third, and returns with 7 as the fourth
    case = Case((w.PerRow(3, 2),), COUNT, rows(0, 10, 20, 5, 7), lateness=100, cuts=[3, 4])
    assert answers(case) == [
        [(7, 10, 1, 0)],
        [(2, 5, 1, 0), (7, 10, None, -1)],
        [(7, 10, 1, 2)],
    ]
    check(case, steps=True)


@pytest.mark.parametrize(
    "window",
    [
        wp.session(5),
        wp.tumbling(10),
        wp.delimited(start="up"),
        wp.delimited(end="up"),
        wp.per_row(5),
        wp.last_rows(2, 5),
    ],
)
def test_settled_answers_stay_as_they_are(window):
    # the lateness ends exactly at each window's end, one below and one above it
    for last in range(8, 40):
        found = rows(0, 4, 9, 10, last, last, last + 1, up=True)
        for lateness in (1, 5, 10):
            check(Case((window,), COUNT, found, lateness=lateness, cuts=[3, 5, 6]), steps=True)
