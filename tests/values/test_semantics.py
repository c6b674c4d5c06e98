from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import OracleQuery, answer
from tests.oracle.samples import FAMILIES, Shifts, at, rows, streams, times_of
from windowpane.values import windows as w
from windowpane.values.errors import BadWindow
from windowpane.values.semantics import Tuple, bounds, extent, meaning, wids, windows

each_family = pytest.mark.parametrize("family", FAMILIES)
far = range(-80, 120)
"""Ids that reach beyond every window that the sample streams can fill."""


def marked(*moments, key="a"):
    """Tuples of one key, each written as time and markers, such as '5', '7u' or '9ud'."""
    return [
        Tuple(int(m.rstrip("ud")), i, key=key, marks={"up": "u" in m, "down": "d" in m})
        for i, m in enumerate(moments)
    ]


def reported(window, tuples):
    """Start, end and times held of every window."""
    means = meaning(window, tuples)
    return sorted(
        ((*means.bounds(wid), times_of(means.extent(wid))) for wid in means.windows()), key=lambda r: r[1]
    )


@each_family
@given(data=st.data())
def test_extent_and_wids_are_duals(family, data):
    window, tuples = data.draw(FAMILIES[family]), data.draw(streams())
    ids = windows(window, tuples)
    holds = {wid: set(extent(window, tuples, wid)) for wid in ids}
    for t in tuples:
        assert wids(window, tuples, t) == {wid for wid in ids if t in holds[wid]}


@each_family
@given(data=st.data())
def test_every_window_holds_a_tuple(family, data):
    window, tuples = data.draw(FAMILIES[family]), data.draw(streams())
    assert all(extent(window, tuples, wid) for wid in windows(window, tuples))


@given(FAMILIES["sliding"], streams())
def test_sliding_windows_are_all_those_of_equation_5_2_that_hold_a_tuple(window, tuples):
    for wid in far:
        panes = -(-window.size // window.slide)
        end = window.origin + (wid + 1 - panes) * window.slide + window.size
        held = {t for t in tuples if end - window.size <= t.time < end}
        assert set(extent(window, tuples, wid)) == held
        assert (wid in windows(window, tuples)) == bool(held)


@given(FAMILIES["landmark"], streams())
def test_landmark_windows_run_from_the_first_that_holds_a_tuple_to_the_first_that_holds_all(window, tuples):
    kept = {t for t in tuples if window.start is None or t.time >= window.start}
    holds = {wid: {t for t in kept if t.time < window.origin + (wid + 1) * window.slide} for wid in far}
    ids = windows(window, tuples)
    assert all(set(extent(window, tuples, wid)) == holds[wid] for wid in far)
    assert ids == {wid for wid in far if holds[wid] and holds[wid - 1 if wid - 1 in holds else wid] != kept}


@given(FAMILIES["cumulative"], streams())
def test_cumulative_windows_are_the_prefixes_of_each_period(window, tuples):
    expected = set()
    for p in range(window.origin - 40 * window.period, window.origin + 80 * window.period, window.period):
        for end in range(p + window.step, p + window.period + 1, window.step):
            held = frozenset(t for t in tuples if p <= t.time < end)
            expected |= {(p, end, held)} if held else set()
    means = meaning(window, tuples)
    assert {(*means.bounds(wid), frozenset(means.extent(wid))) for wid in means.windows()} == expected


@given(FAMILIES["rows"], streams())
def test_row_windows_are_ranges_of_positions_in_their_order_and_partition(window, tuples):
    for part in {t.partition for t in tuples} if window.partition else {None}:
        mine = [t for t in tuples if part is None or t.partition == part]
        mine.sort(key=lambda t: t.arrival if window.order == "arrival" else (t.time, t.tie, t.arrival))
        for number in range(30):
            end = (number + 1) * window.slide
            held = {t for i, t in enumerate(mine) if end - window.size <= i < end}
            wid = number if part is None else (number, part)
            assert set(extent(window, tuples, wid)) == held
            assert (wid in windows(window, tuples)) == bool(held)


@given(FAMILIES["last_rows"], streams())
def test_last_rows_are_the_end_of_what_lies_below_each_time(window, tuples):
    for part in {t.partition for t in tuples} if window.partition else {None}:
        mine = sorted((t for t in tuples if part is None or t.partition == part), key=lambda t: t.rank)
        for number in far:
            below = [t for t in mine if t.time < window.origin + number * window.every]
            wid = number if part is None else (number, part)
            assert list(extent(window, tuples, wid)) == below[-window.size :]


@given(FAMILIES["session"], streams())
def test_two_tuples_share_a_session_exactly_if_no_silence_longer_than_the_gap_parts_them(window, tuples):
    for a in tuples:
        for b in (b for b in tuples if b.key == a.key and b.time >= a.time):
            between = sorted(t.time for t in tuples if t.key == a.key and a.time <= t.time <= b.time)
            quiet = any(y - x > window.gap for x, y in pairwise(between))
            assert (wids(window, tuples, a) == wids(window, tuples, b)) != quiet


@each_family
@given(data=st.data())
def test_the_answer_does_not_depend_on_arrival_order(family, data):
    window, found = data.draw(FAMILIES[family]), data.draw(rows)
    if getattr(window, "order", "time") == "arrival":
        return
    query = OracleQuery(window, {"all": ("collect", "v"), "n": ("count",)}, keys=("k",), ties="tie")
    assert answer(query, data.draw(st.permutations(found))) == answer(query, found)


@each_family
@given(data=st.data(), p=st.integers(-20, 45))
def test_a_closed_window_never_depends_on_tuples_at_or_above_the_punctuation(family, data, p):
    window, found = data.draw(FAMILIES[family]), data.draw(rows)
    if getattr(window, "order", "time") == "arrival":
        return
    query = OracleQuery(window, {"n": ("count",)}, keys=("k",), ties="tie")
    below = [row for row in found if row["ts"] < p]
    assert answer(query, found, closed_by=p) == answer(query, below, closed_by=p)


@each_family
@given(data=st.data())
def test_what_the_last_punctuation_closes_is_part_of_the_drained_answer(family, data):
    window, found = data.draw(FAMILIES[family]), data.draw(rows)
    query = OracleQuery(window, {"n": ("count",)}, keys=("k",), ties="tie")
    drained = answer(query, found, upto=60)
    assert answer(query, found, closed_by=60).items() <= drained.items()


def test_starts_of_sliding_windows_lie_on_the_grid_even_if_the_slide_does_not_divide_the_size():
    assert reported(w.Sliding(5, 3), at(4)) == [(0, 5, [4]), (3, 8, [4])]


def test_a_slide_above_the_size_leaves_tuples_in_no_window():
    window, tuples = w.Sliding(2, 5), at(-1, 0, 1, 2)
    assert wids(window, tuples, tuples[0]) == frozenset()
    assert reported(window, tuples) == [(0, 2, [0, 1])]


def test_ids_count_from_the_origin_and_are_negative_before_it():
    tuples = at(-1)
    assert windows(w.Sliding(10, 10), tuples) == {-1}
    assert bounds(w.Sliding(10, 10), tuples, -1) == (-10, 0)


def test_a_landmark_holds_nothing_below_its_start():
    assert reported(w.Landmark(10, start=5), at(3, 7, 25)) == [
        (5, 10, [7]),
        (5, 20, [7]),
        (5, 30, [7, 25]),
    ]
    assert windows(w.Landmark(10, start=50), at(3, 7, 25)) == frozenset()


def test_landmark_and_last_rows_go_on_until_the_time_asked_for():
    assert windows(w.Landmark(10), at(3), upto=40) == {0, 1, 2, 3}
    assert windows(w.Landmark(10), at(3), upto=39) == {0, 1, 2}
    assert windows(w.LastRows(1, 10), at(3), upto=40) == {1, 2, 3, 4}
    assert windows(w.LastRows(1, 10), at(3)) == {1}


def test_a_time_asked_for_that_has_passed_takes_no_window_away():
    assert windows(w.Landmark(10), at(3, 25), upto=5) == windows(w.Landmark(10), at(3, 25)) == {0, 1, 2}
    assert windows(w.LastRows(1, 10), at(3, 25), upto=5) == windows(w.LastRows(1, 10), at(3, 25)) == {1, 2, 3}


def test_a_cumulative_window_grows_by_its_step_and_starts_anew_each_period():
    assert reported(w.Cumulative(2, 6), at(1, 3, 6)) == [
        (0, 2, [1]),
        (0, 4, [1, 3]),
        (0, 6, [1, 3]),
        (6, 8, [6]),
        (6, 10, [6]),
        (6, 12, [6]),
    ]


def test_row_windows_report_positions_that_may_begin_below_zero():
    assert reported(w.Rows(4, 2), at(30, 10, 20)) == [(-2, 2, [10, 20]), (0, 4, [10, 20, 30]), (2, 6, [30])]
    assert reported(w.Rows(2, 2, "arrival"), at(30, 10, 20)) == [(0, 2, [10, 30]), (2, 4, [20])]


def test_rank_goes_by_time_then_tie_then_arrival():
    tuples = [Tuple(5, 0, tie="b"), Tuple(5, 1, tie="a"), Tuple(5, 2, tie="a"), Tuple(1, 3, tie="z")]
    assert [t.arrival for t in extent(w.Rows(4, 4), tuples, 0)] == [3, 1, 2, 0]


def test_partitioned_ids_name_their_partition():
    tuples = [Tuple(i, i, partition=p) for i, p in enumerate("xyxxy")]
    assert windows(w.Rows(2, 2).per("p"), tuples) == {(0, "x"), (1, "x"), (0, "y")}
    assert windows(w.PerRow(5, 2).per("p"), tuples) == {(2, "x"), (4, "y")}
    assert times_of(extent(w.PerRow(5, 2).per("p"), tuples, (4, "y"))) == [1, 4]
    assert windows(w.LastRows(1, 4).per("p"), tuples) == {(1, "x"), (2, "x"), (1, "y"), (2, "y")}


def test_slide_by_tuple_windows_of_one_time_are_one_window():
    assert reported(w.PerRow(5), at(3, 3, 7, 8)) == [
        (-2, 3, [3, 3]),
        (2, 7, [3, 3, 7]),
        (3, 8, [7, 8]),
    ]


def test_last_rows_report_from_their_oldest_tuple_to_the_time_of_the_report():
    assert reported(w.LastRows(2, 10), at(3, 4, 5, 25)) == [
        (4, 10, [4, 5]),
        (4, 20, [4, 5]),
        (5, 30, [5, 25]),
    ]


def test_tuples_exactly_a_gap_apart_share_a_session():
    assert reported(w.Session(5), at(0, 5, 11)) == [(0, 10, [0, 5]), (11, 16, [11])]


def test_sessions_of_different_keys_do_not_touch():
    tuples = [Tuple(0, 0, key="a"), Tuple(4, 1, key="b"), Tuple(8, 2, key="a")]
    assert windows(w.Session(5), tuples) == {("a", 0), ("b", 4), ("a", 8)}


def test_start_markers_cut_the_stream_and_nothing_before_the_first_counts():
    tuples = marked("1", "3u", "4", "6u", "6", "9")
    assert reported(w.Delimited(start="up"), tuples) == [(3, 6, [3, 4]), (6, 10, [6, 6, 9])]
    assert windows(w.Delimited(start="up"), tuples) == {("a", 3, 0), ("a", 6, 1)}


def test_an_end_marker_belongs_to_the_window_it_ends_with_all_tuples_of_its_time():
    tuples = marked("1", "3d", "3", "6d", "8")
    assert reported(w.Delimited(end="down"), tuples) == [(None, 4, [1, 3, 3]), (4, 7, [6]), (7, 9, [8])]


def test_no_window_is_open_just_after_an_end_marker():
    assert reported(w.Delimited(end="down"), marked("1", "3d")) == [(None, 4, [1, 3])]


def test_a_start_within_an_open_window_is_ignored_and_tuples_outside_are_left_out():
    both = w.Delimited(start="up", end="down")
    tuples = marked("0", "1u", "2", "3u", "4d", "5", "6d", "7u", "8")
    assert reported(both, tuples) == [(1, 5, [1, 2, 3, 4]), (7, 9, [7, 8])]


def test_a_start_just_after_an_end_opens_the_next_window():
    tuples = marked("1u", "3d", "4u", "5d")
    assert reported(w.Delimited(start="up", end="down"), tuples) == [(1, 4, [1, 3]), (4, 6, [4, 5])]


def test_at_one_time_starts_act_before_ends():
    both = w.Delimited(start="up", end="down")
    assert reported(both, marked("5ud", "6", "7u")) == [(5, 6, [5]), (7, 8, [7])]
    assert reported(both, marked("1u", "5ud", "6")) == [(1, 6, [1, 5])]
    assert reported(both, marked("5d", "5u", "6")) == [(5, 6, [5, 5])]


def test_a_null_marker_does_not_mark():
    tuples = [Tuple(1, 0, marks={"up": None}), Tuple(2, 1, marks={"up": True})]
    assert reported(w.Delimited(start="up"), tuples) == [(2, 3, [2])]


def test_a_users_context_free_window_is_found_through_its_triggers():
    assert reported(Shifts(), at(1, 3, 9, 11)) == [(0, 4, [1, 3]), (2, 9, [3]), (10, 14, [11])]


def test_a_stream_without_tuples_has_no_windows():
    for window in (w.Sliding(1, 1), w.Landmark(1), w.Rows(1, 1), w.PerRow(1), w.LastRows(1, 1), w.Session(1)):
        assert windows(window, [], upto=10) == frozenset()


def test_what_is_no_window_is_refused():
    with pytest.raises(BadWindow) as error:
        windows(10, [])
    assert str(error.value) == "10 is no window. Use a windowpane window, or subclass ContextFreeWindow."
