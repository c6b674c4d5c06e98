from tests.oracle import OracleQuery, answer
from windowpane.values import windows as w

COUNT = {"n": ("count",)}


def rows(*found):
    return [dict(zip(("ts", "k", "p"), row, strict=False)) for row in found]


def counts(query, found, **how):
    return {where: row["n"] for where, row in answer(query, found, **how).items()}


def test_groups_without_tuples_do_not_appear():
    query = OracleQuery(w.Sliding(10, 10), {"n": ("count",), "last": ("last", "ts")}, keys=("k",))
    assert answer(query, rows((1, "a"), (2, "a"), (15, "b"))) == {
        (("a",), 0, 10): {"n": 2, "last": 2},
        (("b",), 10, 20): {"n": 1, "last": 15},
    }


def test_a_partition_beside_the_keys_joins_the_result_key():
    query = OracleQuery(w.Rows(2, 2).per("p", "k"), COUNT, keys=("k",))
    assert counts(query, rows((1, "a", 7), (2, "a", 7), (3, "a", 8))) == {
        (("a", 7), 0, 2): 2,
        (("a", 8), 0, 2): 1,
    }


def test_per_without_columns_partitions_by_the_keys():
    found = rows((1, "a"), (2, "b"), (3, "a"))
    expected = {(("a",), 0, 2): 2, (("b",), 0, 2): 1}
    assert counts(OracleQuery(w.Rows(2, 2).per(), COUNT, keys=("k",)), found) == expected
    assert counts(OracleQuery(w.Rows(2, 2).per("k"), COUNT, keys=("k",)), found) == expected


def test_a_window_on_another_measure_uses_that_column():
    found = [{"ts": 1, "km": 95}, {"ts": 2, "km": 105}]
    assert counts(OracleQuery(w.tumbling(100, on="km"), COUNT), found) == {((), 0, 100): 1, ((), 100, 200): 1}


def test_a_tie_column_orders_rows_of_one_time():
    found = [{"ts": 5, "id": 2}, {"ts": 5, "id": 1}, {"ts": 5, "id": None}]
    query = OracleQuery(w.Rows(1, 1), {"id": ("collect", "id")}, ties="id")
    assert [row["id"] for _, row in sorted(answer(query, found).items())] == [[], [1], [2]]


def test_a_half_open_window_closes_when_the_punctuation_reaches_its_end():
    query = OracleQuery(w.Sliding(10, 10), COUNT)
    assert counts(query, rows((1,), (12,)), closed_by=9) == {}
    assert counts(query, rows((1,), (12,)), closed_by=10) == {((), 0, 10): 1}


def test_a_landmark_reports_every_slide_up_to_the_punctuation():
    assert counts(OracleQuery(w.Landmark(10), COUNT), rows((1,)), closed_by=35) == {
        ((), None, 10): 1,
        ((), None, 20): 1,
        ((), None, 30): 1,
    }


def test_a_session_closes_once_no_tuple_can_join_it():
    query = OracleQuery(w.Session(5), COUNT)
    assert counts(query, rows((1,), (3,)), closed_by=8) == {}
    assert counts(query, rows((1,), (3,)), closed_by=9) == {((), 1, 8): 2}


def test_row_windows_by_rank_close_when_their_positions_are_settled():
    query = OracleQuery(w.Rows(2, 2), COUNT)
    assert counts(query, rows((1,), (3,), (9,)), closed_by=3) == {}
    assert counts(query, rows((1,), (3,), (9,)), closed_by=4) == {((), 0, 2): 2}
    assert counts(query, rows((1,), (3,), (9,))) == {((), 0, 2): 2, ((), 2, 4): 1}


def test_row_windows_by_arrival_close_when_they_are_full():
    query = OracleQuery(w.Rows(2, 2, "arrival"), COUNT)
    assert counts(query, rows((9,), (3,), (1,)), closed_by=0) == {((), 0, 2): 2}


def test_last_rows_are_reported_when_the_punctuation_reaches_their_time():
    query = OracleQuery(w.LastRows(1, 10), COUNT)
    assert counts(query, rows((1,), (12,)), closed_by=19) == {((), 1, 10): 1}
    assert counts(query, rows((1,), (12,)), closed_by=20) == {((), 1, 10): 1, ((), 12, 20): 1}


def test_a_delimited_window_closes_when_its_marker_lies_below_the_punctuation():
    found = [{"ts": 1, "up": True}, {"ts": 4, "up": False}, {"ts": 6, "up": True}]
    query = OracleQuery(w.Delimited(start="up"), COUNT)
    assert counts(query, found, closed_by=6) == {}
    assert counts(query, found, closed_by=7) == {((), 1, 6): 2}
    assert counts(query, found, closed_by=99) == {((), 1, 6): 2}
    assert counts(query, found) == {((), 1, 6): 2, ((), 6, 7): 1}


def test_an_end_marker_closes_its_window_once_the_punctuation_has_passed_it():
    found = [{"ts": 1, "down": False}, {"ts": 4, "down": True}]
    query = OracleQuery(w.Delimited(end="down"), COUNT)
    assert counts(query, found, closed_by=4) == {}
    assert counts(query, found, closed_by=5) == {((), None, 5): 2}


def test_no_rows_give_no_answer():
    assert answer(OracleQuery(w.Landmark(10), COUNT), [], closed_by=100) == {}
