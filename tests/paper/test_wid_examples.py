"""The worked examples of Li 2008 (WID thesis), chapter 5 and section 6.1."""

import pytest

from tests.oracle import OracleQuery, answer
from windowpane.values import windows as w
from windowpane.values.semantics import Tuple, bounds, extent, wids, windows

pytestmark = pytest.mark.paper
COUNT = {"count": ("count",)}
MAX = {"longest": ("max", "length")}


def clock(text):
    """Seconds since midnight."""
    hours, minutes, seconds = map(int, text.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def at(*times):
    return [Tuple(time, i, row=i) for i, time in enumerate(times)]


def packets(*rows):
    """Packets as (time, source, length), in order of arrival."""
    return [{"ts": ts, "srcIP": ip, "length": length} for ts, ip, length in rows]


def values(found, name):
    """What a query without keys found, by the end of the window."""
    return {end: row[name] for (_, _, end), row in found.items()}


@pytest.mark.parametrize(
    ("wid", "first", "end"),
    [
        (0, "00:00:00", "00:01:00"),
        (1, "00:00:00", "00:02:00"),
        (8, "00:00:00", "00:09:00"),
        (9, "00:00:00", "00:10:00"),
        (10, "00:01:00", "00:11:00"),
        (11, "00:02:00", "00:12:00"),
        (12, "00:03:00", "00:13:00"),
        (13, "00:04:00", "00:14:00"),
        (14, "00:05:00", "00:15:00"),
    ],
)
def test_the_window_ids_of_q5_1_name_the_extents_of_the_table_in_section_5_1_1(wid, first, end):
    every_second = at(*range(clock("00:20:00")))
    held = [t.time for t in extent(w.Sliding(600, 60), every_second, wid)]
    assert held == list(range(clock(first), clock(end)))
    assert bounds(w.Sliding(600, 60), every_second, wid) == (clock(end) - 600, clock(end))


def test_in_q5_1_a_tuple_five_seconds_after_the_start_belongs_to_windows_0_to_9():
    tuples = at(clock("00:00:05"))
    assert wids(w.Sliding(600, 60), tuples, tuples[0]) == set(range(10))


def test_counted_from_a_start_at_ten_the_tuple_five_seconds_later_belongs_to_windows_0_to_9():
    tuples = at(clock("10:00:00"), clock("10:00:05"))
    window = w.Sliding(600, 60, origin=clock("10:00:00"))
    assert wids(window, tuples, tuples[1]) == set(range(10))
    assert windows(window, tuples) == set(range(10))


def test_a_window_of_q5_1_is_the_same_in_every_arrival_order():
    forth = at(*range(clock("10:05:00"), clock("10:25:00"), 7))
    back = at(*reversed([t.time for t in forth]))
    wid = clock("10:20:00") // 60 - 1
    held = [[t.time for t in extent(w.Sliding(600, 60), tuples, wid)] for tuples in (forth, back)]
    assert held[0] == held[1]
    assert min(held[0]) >= clock("10:10:00")
    assert max(held[0]) < clock("10:20:00")


MIXED = packets((1, "x", 50), (2, "x", 10), (3, "y", 40), (4, "x", 20), (5, "y", 30), (6, "y", 60))


def test_q5_2_partitions_the_stream_first_and_takes_windows_of_each_source():
    query = OracleQuery(w.Rows(2, 2, "arrival").per("srcIP"), MAX)
    assert answer(query, MIXED) == {
        (("x",), 0, 2): {"longest": 50},
        (("x",), 2, 4): {"longest": 20},
        (("y",), 0, 2): {"longest": 40},
        (("y",), 2, 4): {"longest": 60},
    }


def test_q5_3_takes_windows_of_the_whole_stream_first_and_groups_each():
    query = OracleQuery(w.Rows(2, 2, "arrival"), MAX, keys=("srcIP",))
    assert answer(query, MIXED) == {
        (("x",), 0, 2): {"longest": 50},
        (("x",), 2, 4): {"longest": 20},
        (("y",), 2, 4): {"longest": 40},
        (("y",), 4, 6): {"longest": 60},
    }


def test_the_windows_of_one_partition_of_q5_2_do_not_wait_for_another():
    query = OracleQuery(w.Rows(2, 2, "arrival").per("srcIP"), MAX)
    only_x = [row for row in MIXED if row["srcIP"] == "x"]
    assert answer(query, only_x).items() <= answer(query, MIXED).items()


def test_each_landmark_window_of_q5_4_holds_the_one_before():
    found = answer(
        OracleQuery(w.Landmark(60), COUNT, keys=("srcIP",)),
        packets((10, "x", 1), (70, "y", 1), (75, "x", 1), (200, "x", 1)),
    )
    assert {(key[0], end): row["count"] for (key, _, end), row in found.items()} == {
        ("x", 60): 1,
        ("x", 120): 2,
        ("x", 180): 2,
        ("x", 240): 3,
        ("y", 120): 1,
        ("y", 180): 1,
        ("y", 240): 1,
    }


def test_a_tuple_of_q5_4_belongs_to_all_windows_that_end_after_it():
    tuples = at(10, 70, 200)
    assert wids(w.Landmark(60), tuples, tuples[1]) == {1, 2, 3}
    assert wids(w.Landmark(60), tuples, tuples[1], upto=360) == {1, 2, 3, 4, 5}


def test_in_q5_5_every_tuple_ends_a_window_of_the_five_minutes_up_to_and_with_it():
    found = answer(
        OracleQuery(w.PerRow(300), MAX), packets((0, "x", 9), (100, "x", 3), (300, "x", 5), (401, "x", 4))
    )
    assert found == {
        ((), -300, 0): {"longest": 9},
        ((), -200, 100): {"longest": 9},
        ((), 0, 300): {"longest": 5},
        ((), 101, 401): {"longest": 5},
    }


def test_the_window_ids_of_a_tuple_in_q5_5_lie_between_its_time_and_five_minutes_on():
    tuples = at(0, 100, 299, 300)
    assert wids(w.PerRow(300), tuples, tuples[0]) == {0, 100, 299}


def test_with_a_slide_of_five_tuples_every_fifth_arrival_ends_a_window():
    arrivals = at(10, 30, 20, 50, 40, 60, 80, 70, 90, 65, 100)
    assert windows(w.PerRow(300, 5, "arrival"), arrivals) == {40, 65}
    assert [t.time for t in extent(w.PerRow(25, 5, "arrival"), arrivals, 40)] == [20, 30, 40]


def test_q5_6_counts_its_five_tuples_in_the_order_of_time_whatever_the_arrival():
    arrivals = at(10, 30, 20, 50, 40, 60, 80, 70, 90, 65, 100)
    assert windows(w.PerRow(300, 5), arrivals) == {50, 90}
    assert windows(w.PerRow(300, 5), list(reversed(arrivals))) == {50, 90}


def test_q6_1_maps_a_tuple_to_windows_10_to_19_and_closes_window_10_at_eleven_past():
    noon = clock("12:00:00")
    window = w.Sliding(600, 60, origin=noon)
    tuples = at(clock("12:10:30"))
    assert wids(window, tuples, tuples[0]) == set(range(10, 20))
    closed = answer(
        OracleQuery(window, COUNT), packets((noon, "x", 1), (noon + 630, "x", 1)), closed_by=noon + 660
    )
    assert max(end for _, _, end in closed) == bounds(window, tuples, 10)[1] == clock("12:11:00")


# Figure 6-5 with a range of 10: s1 < s5 < s2 < s3 < s1 + 10 < s5 + 10 < s4 < s2 + 10, as its text implies.
S1, S2, S3, S4, S5 = 0, 3, 5, 12, 1
BY_TUPLE = OracleQuery(w.PerRow(10), COUNT)


def test_the_counts_of_figure_6_5_before_the_late_tuple():
    found = values(answer(BY_TUPLE, packets(*((s, "x", 1) for s in (S1, S2, S3, S4)))), "count")
    assert found == {S1: 1, S2: 2, S3: 3, S4: 3}


def test_the_late_tuple_of_figure_6_5_adds_its_window_and_counts_in_those_after_it():
    found = values(answer(BY_TUPLE, packets(*((s, "x", 1) for s in (S1, S2, S3, S4, S5)))), "count")
    assert found == {S1: 1, S5: 2, S2: 3, S3: 4, S4: 3}


def test_a_punctuation_above_s2_emits_the_counts_of_s1_s5_and_s2_in_figure_6_5():
    arrivals = packets(*((s, "x", 1) for s in (S1, S2, S3, S4, S5)))
    assert values(answer(BY_TUPLE, arrivals, closed_by=S2 + 1), "count") == {S1: 1, S5: 2, S2: 3}
    assert values(answer(BY_TUPLE, arrivals, closed_by=S2), "count") == {S1: 1, S5: 2}


def test_the_variations_of_section_6_1_4_2_emit_every_third_tuple_alone():
    arrivals = packets(*((s, "x", 1) for s in (S1, S2, S3, S4, S5)))
    assert values(answer(OracleQuery(w.PerRow(10, 3, "arrival"), COUNT), arrivals), "count") == {S3: 4}
    assert values(answer(OracleQuery(w.PerRow(10, 3), COUNT), arrivals), "count") == {S2: 3}
