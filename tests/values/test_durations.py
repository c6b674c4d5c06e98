from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.values.durations import microseconds, render
from windowpane.values.errors import BadWindow


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("7 us", 7),
        ("1 microsecond", 1),
        ("250 ms", 250_000),
        ("3 milliseconds", 3_000),
        ("30 s", 30_000_000),
        ("1 sec", 1_000_000),
        ("10 minutes", 600_000_000),
        ("10min", 600_000_000),
        ("5 m", 300_000_000),
        ("2 hours", 7_200_000_000),
        ("1 day", 86_400_000_000),
        ("1 w", 604_800_000_000),
    ],
)
def test_a_number_and_a_unit_make_a_duration(text, length):
    assert microseconds(text) == length


@pytest.mark.parametrize("text", ["1 h 30 min", "1h30min", "1 hour 30 minutes", "90 min", "  1 H  30 Min "])
def test_parts_add_up_whatever_the_spacing_and_case(text):
    assert microseconds(text) == 5_400_000_000


def test_a_fraction_of_a_unit_is_rounded_to_the_nearest_microsecond():
    assert microseconds("1.5 s") == 1_500_000
    assert microseconds("0.1 us") == 0
    assert microseconds("1.2345678 s") == 1_234_568


def test_an_int_is_microseconds_already_and_may_be_negative():
    assert microseconds(1_500) == 1_500
    assert microseconds(-3) == -3


def test_a_timedelta_is_taken_exactly():
    assert microseconds(timedelta(days=1, microseconds=1)) == 86_400_000_001
    assert microseconds(timedelta(seconds=-1)) == -1_000_000


@pytest.mark.parametrize(
    "text", ["10", "ten minutes", "10 fortnights", "-5 s", "1 h and 5 min", " ", "5 s 3", "1,5 s"]
)
def test_other_texts_are_refused_with_an_example_of_the_right_form(text):
    with pytest.raises(BadWindow) as error:
        microseconds(text)
    assert str(error.value) == (
        f"{text!r} is no duration. Write a number and a unit, such as '10 minutes' or '1 h 30 min'."
    )


def test_an_empty_text_is_refused():
    with pytest.raises(BadWindow) as error:
        microseconds("")
    assert (
        str(error.value) == "an empty text is no duration. Write a number and a unit, such as '10 minutes'."
    )


@pytest.mark.parametrize("value", [1.5, None, True, [10]])
def test_other_types_are_refused(value):
    with pytest.raises(BadWindow) as error:
        microseconds(value)
    assert str(error.value) == (
        f"{value!r} is no duration. Write '10 minutes', a timedelta or int microseconds."
    )


@pytest.mark.parametrize(
    ("length", "text"),
    [(90_000_000, "90 s"), (60_000_000, "1 min"), (172_800_000_000, "2 d"), (1_500, "1500 us"), (0, "0 us")],
)
def test_a_length_is_written_in_its_largest_whole_unit(length, text):
    assert render(length) == text


@given(st.integers(min_value=0, max_value=10**15))
def test_a_written_length_reads_back_as_itself(length):
    assert microseconds(render(length)) == length
