from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest

from windowpane.values import windows as w
from windowpane.values.errors import BadWindow, WindowpaneError


def refusal(build):
    with pytest.raises(BadWindow) as error:
        build()
    return str(error.value)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: w.sliding(0, 1), "sliding window: size is 0, but it must be above 0. Give a positive size."),
        (
            lambda: w.sliding(1, -2),
            "sliding window: slide is -2, but it must be above 0. Give a positive slide.",
        ),
        (
            lambda: w.tumbling("0 s"),
            "sliding window: size is 0, but it must be above 0. Give a positive size.",
        ),
        (
            lambda: w.landmark(0),
            "landmark window: slide is 0, but it must be above 0. Give a positive slide.",
        ),
        (
            lambda: w.cumulative(0, 5),
            "cumulative window: step is 0, but it must be above 0. Give a positive step.",
        ),
        (
            lambda: w.cumulative(5, 0),
            "cumulative window: period is 0, but it must be above 0. Give a positive period.",
        ),
        (lambda: w.session(-1), "session window: gap is -1, but it must be above 0. Give a positive gap."),
        (lambda: w.rows(0), "rows window: size is 0, but it must be above 0. Give a positive size."),
        (lambda: w.rows(1, 0), "rows window: slide is 0, but it must be above 0. Give a positive slide."),
        (lambda: w.per_row(0), "per_row window: size is 0, but it must be above 0. Give a positive size."),
        (
            lambda: w.per_row(1, every=0),
            "per_row window: every is 0, but it must be above 0. Give a positive every.",
        ),
        (
            lambda: w.last_rows(0, every=1),
            "last_rows window: size is 0, but it must be above 0. Give a positive size.",
        ),
        (
            lambda: w.last_rows(1, every=0),
            "last_rows window: every is 0, but it must be above 0. Give a positive every.",
        ),
    ],
)
def test_a_length_that_is_not_positive_is_refused_by_name(build, message):
    assert refusal(build) == message


def test_a_step_that_does_not_divide_its_period_is_refused():
    assert refusal(lambda: w.cumulative(7, 60)) == (
        "cumulative window: period 60 is no multiple of step 7. Choose a step that divides the period."
    )


@pytest.mark.parametrize(
    ("build", "name"),
    [(lambda: w.rows(1, order="rank"), "rows"), (lambda: w.per_row(1, order="rank"), "per_row")],
)
def test_an_unknown_order_is_refused_with_the_two_that_exist(build, name):
    assert refusal(build) == (f"{name} window: order is 'rank'. Use 'time' (event-time rank) or 'arrival'.")


def test_a_delimited_window_needs_a_marker():
    assert refusal(w.delimited) == (
        "delimited window: neither start nor end is given. Name at least one boolean column."
    )


@pytest.mark.parametrize("length", ["10 minutes", timedelta(minutes=10)])
def test_a_window_on_another_measure_takes_plain_numbers_alone(length):
    assert refusal(lambda: w.tumbling(length, on="km")) == (
        f"a window on 'km' is measured in that column's units, so {length!r} must be an int."
    )


def test_a_refused_window_can_be_caught_as_value_error_and_as_windowpane_error():
    assert issubclass(BadWindow, ValueError)
    assert issubclass(BadWindow, WindowpaneError)


def test_durations_become_microseconds():
    assert w.sliding("10 min", timedelta(minutes=1), origin="5 s") == w.Sliding(
        600_000_000, 60_000_000, 5_000_000
    )
    assert w.landmark("1 min", start=7) == w.Landmark(60_000_000, 7)
    assert w.cumulative("1 min", "1 day") == w.Cumulative(60_000_000, 86_400_000_000)
    assert w.session("30 s") == w.Session(30_000_000)
    assert w.per_row("5 min", every=5) == w.PerRow(300_000_000, 5)
    assert w.last_rows(10, every="5 s") == w.LastRows(10, 5_000_000)


def test_a_tumbling_window_is_a_sliding_window_that_slides_by_its_size():
    assert w.tumbling("1 min") == w.sliding("1 min", "1 min")


def test_rows_slide_by_their_size_unless_told():
    assert w.rows(1000) == w.Rows(1000, 1000)
    assert w.rows(1000, 10) == w.rows(1000, slide=10)


def test_a_slide_above_the_size_is_allowed():
    assert w.sliding(5, 10) == w.Sliding(5, 10)
    assert w.rows(1, 3) == w.Rows(1, 3)


@pytest.mark.parametrize("window", [w.rows(3), w.per_row(3), w.last_rows(3, every=1)])
def test_per_names_the_partition_and_stands_for_the_own_keys_when_empty(window):
    assert window.partition == ()
    assert window.per("ip", "port").partition == ("ip", "port")
    assert window.per().partition == w.OWN_KEYS
    assert window.partition == ()


def test_windows_are_frozen_and_equal_by_value_so_that_they_can_be_shared():
    window = w.sliding(10, 5)
    assert window == w.sliding(10, 5)
    assert hash(window) == hash(w.sliding(10, 5))
    with pytest.raises(FrozenInstanceError):
        window.size = 3
