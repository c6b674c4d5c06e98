"""Operators on update streams against plain loops over tuples."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.arrays import Column, Tuples
from windowpane.core.upstream.operators import Join, Union, check_grouping
from windowpane.errors import BadQuery

SIZE = 5
ROWS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2), st.integers(0, 3)), max_size=8)


def tuples(rows):
    time, key, value = (
        np.array(column, np.int64) for column in (zip(*rows, strict=True) if rows else ([], [], []))
    )
    return Tuples(time, key, {"symbol": Column(key), "price": Column(value)})


def rows_of(batch):
    if not len(batch):
        return []
    return list(
        zip(batch.time.tolist(), batch.key.tolist(), batch.columns["price"].values.tolist(), strict=True)
    )


def in_order(pushes):
    """Times rise within each key of each input, as update streams promise."""
    last = {}
    for inputs in pushes:
        for number, rows in enumerate(inputs):
            for i, (time, key, value) in enumerate(rows):
                last[number, key] = max(time, last.get((number, key), -1) + 1)
                rows[i] = (last[number, key], key, value)
    return pushes


PUSHES = st.lists(st.tuples(ROWS, ROWS), min_size=1, max_size=5).map(
    lambda pushes: in_order([(list(a), list(b)) for a, b in pushes])
)


def test_an_aggregate_must_group_by_the_update_key():
    check_grouping(["symbol"], ["exchange", "symbol"])
    with pytest.raises(
        BadQuery, match=r"groups by 'exchange', but 'symbol' is part of the update key\. Group by"
    ):
        check_grouping(["symbol"], ["exchange"])


@given(pushes=PUSHES)
def test_a_union_delivers_the_youngest_and_drops_older_ones(pushes):
    union, last = Union(), {}
    for inputs in pushes:
        expected = {}
        for rows in inputs:
            for time, key, value in rows:
                if time > expected.get(key, (last.get(key, -1),))[0]:
                    expected[key] = (time, value)
        last |= {key: time for key, (time, _) in expected.items()}
        out = rows_of(union.push(*(tuples(rows) for rows in inputs)))
        assert sorted(out) == sorted((time, key, value) for key, (time, value) in expected.items())


def matches(left, right, predicate):
    return predicate(left.columns["price"].values, right.columns["price"].values)


@pytest.mark.parametrize(
    "predicate", [None, np.less, lambda a, b: (a + b) % 2 == 0], ids=["all", "less", "even"]
)
@given(pushes=PUSHES)
def test_a_join_delivers_the_newest_match(predicate, pushes):
    join = Join(SIZE, None if predicate is None else lambda a, b: matches(a, b, predicate))
    kept, newest, sent = ([], []), {}, {}
    for inputs in pushes:
        fresh = [len(side) for side in kept]
        for side, rows in zip(kept, inputs, strict=True):
            side.extend(rows)
            for time, key, _ in rows:
                newest[key] = max(time, newest.get(key, -1))
        best = {}
        for i, (t, k, v) in enumerate(kept[0]):
            for j, (u, m, w) in enumerate(kept[1]):
                together = k == m and abs(t - u) < SIZE and (i >= fresh[0] or j >= fresh[1])
                if together and (predicate is None or predicate(np.array([v]), np.array([w]))[0]):
                    best[k] = max(best.get(k, (-1,)), (max(t, u), min(t, u), i, j))
        best = {k: rank for k, rank in best.items() if rank[:2] >= sent.get(k, (-1, -1))}
        sent |= {k: rank[:2] for k, rank in best.items()}
        out = join.push(*(tuples(rows) for rows in inputs))
        found = list(zip(rows_of(out.left), rows_of(out.right), strict=True))
        assert found == [(kept[0][i], kept[1][j]) for _, (_, _, i, j) in sorted(best.items())]
        assert out.time.tolist() == [a for _, (a, *_) in sorted(best.items())]
        for side in kept:
            side[:] = [row for row in side if row[0] > newest[row[1]] - SIZE]


ANY_TIME = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1), st.integers(0, 3)), max_size=6)


@pytest.mark.parametrize("predicate", [None, np.not_equal], ids=["all", "some"])
@given(pushes=st.lists(st.tuples(ANY_TIME, ANY_TIME), min_size=1, max_size=6), size=st.integers(1, 8))
def test_a_join_finds_what_all_pairs_would_give_where_times_are_equal_or_fall(predicate, pushes, size):
    join = Join(size, None if predicate is None else lambda a, b: matches(a, b, predicate))
    sent = {}
    for inputs in pushes:
        old = [rows_of(join.kept(side)) for side in (0, 1)]
        left, right = (a + list(b) for a, b in zip(old, inputs, strict=True))
        best = {}
        for i, (t, key, v) in enumerate(left):
            for j, (u, other, w) in enumerate(right):
                new = i >= len(old[0]) or j >= len(old[1])
                if new and key == other and abs(t - u) < size and (predicate is None or predicate(v, w)):
                    best[key] = max(best.get(key, (-1,)), (max(t, u), min(t, u), i, j))
        best = {key: rank for key, rank in best.items() if rank[:2] >= sent.get(key, (-1, -1))}
        sent |= {key: rank[:2] for key, rank in best.items()}
        out = join.push(*(tuples(rows) for rows in inputs))
        found = list(zip(rows_of(out.left), rows_of(out.right), strict=True))
        assert found == [(left[i], right[j]) for _, (_, _, i, j) in sorted(best.items())]


@pytest.mark.parametrize("left_first", [True, False])
def test_one_new_tuple_is_paired_with_those_of_its_key_alone(left_first):
    looked_at = []

    def counts(left, _):
        looked_at.append(len(left))
        return np.ones(len(left), np.bool_)

    join, n = Join(10_000, counts), 100
    some = tuples([(t, t % 2, 1) for t in range(n)])
    join.push(some, some)
    one = (tuples([(n, 0, 1)]), tuples([]))
    found = join.push(*(one if left_first else one[::-1]))
    assert found.time.tolist() == [n]
    assert looked_at == [n * n // 2, n // 2]


def test_without_a_predicate_there_are_no_more_pairs_than_new_tuples():
    join, n = Join(10_000), 100
    some = tuples([(t, 0, 1) for t in range(n)])
    one, none = tuples([(n, 0, 1)]), tuples([])
    assert [len(part) for part in join._candidates((some, some), (none, none), some)] == [n, n]
    assert [part.tolist() for part in join._candidates((one, none), (some, some), some)] == [[n], [n - 1]]


@pytest.mark.parametrize("n", [100, 5_000])
def test_a_push_looks_only_at_what_is_kept_of_its_keys(n):
    looked_at = []

    class Counted(Join):
        def _alive(self, side):
            looked_at.append(len(side))
            return super()._alive(side)

    join, all_keys = Counted(10_000), tuples([(0, key, 1) for key in range(n)])
    join.push(all_keys, all_keys)
    looked_at.clear()
    for key in range(64):
        assert join.push(tuples([(1, key, 1)]), tuples([])).time.tolist() == [1]
    assert sum(looked_at) < 64 * 16 + n
    assert join.sizes == (n + 64, n)


def test_a_match_that_is_older_than_the_last_one_is_dropped():
    join = Join(20, lambda a, b: matches(a, b, lambda v, w: v >= w))
    first = join.push(tuples([(2, 0, 9), (10, 0, 1)]), tuples([(3, 0, 1)]))
    assert first.time.tolist() == [10]
    later = join.push(tuples([]), tuples([(5, 0, 9)]))  # matches the tuple at 2 only
    assert later.time.tolist() == []
    assert join.push(tuples([(11, 0, 9)]), tuples([])).time.tolist() == [11]


def test_a_predicate_that_fails_leaves_the_join_as_it_was():
    calls = []

    def fails_once(left, _):
        calls.append(len(left))
        if len(calls) == 2:
            raise ZeroDivisionError
        return np.ones(len(left), np.bool_)

    join = Join(SIZE, fails_once)
    join.push(tuples([(1, 0, 1)]), tuples([(1, 0, 1)]))
    with pytest.raises(ZeroDivisionError):
        join.push(tuples([(3, 0, 1)]), tuples([(9, 0, 1), (3, 0, 1)]))
    assert join.push(tuples([(3, 0, 1)]), tuples([(3, 0, 1)])).time.tolist() == [3]
    assert [len(join.kept(side)) for side in (0, 1)] == [2, 2]


def test_a_join_keeps_only_its_window():
    join = Join(SIZE)
    for time in range(0, 1_000, 2):
        join.push(tuples([(time, 0, 1)]), tuples([]))
        assert sum(join.sizes) <= SIZE
        assert sum(side.stored for side in join._kept) <= 2 * SIZE


def test_a_join_needs_a_window():
    with pytest.raises(BadQuery, match="the window of a join is 0 long"):
        Join(0)


@pytest.mark.parametrize(
    "within", [2**61, 2**62, 2**62 + 7, 2**63 - 1, 2**63, 2**64, 2**70, dt.timedelta.max]
)
def test_a_join_may_reach_as_far_as_times_go(within):
    size = within if isinstance(within, int) else 2**66
    ends = [-(2**62), -(2**61) - 3, -5, 0, 7, 2**61 + 4, 2**62]
    updates = wp.Updates("k", "t")
    for one in ends:
        for other in ends:
            join = updates.join(within)
            rows = [pa.table({"k": ["a"], "t": [t]}) for t in (one, other)]
            found = [join.push(rows[0], rows[1].slice(0, 0)), join.push(rows[0].slice(0, 0), rows[1])]
            assert [len(part) for part in found] == [0, int(abs(one - other) < size)]
    join = updates.join(within)
    rows = pa.table({"k": [1] * 5, "t": range(5)})
    assert join.push(rows, rows).to_pylist() == [{"k": 1, "t": 4, "right_t": 4}]
    assert join.push(rows.slice(0, 0), pa.table({"k": [1], "t": [9]})).to_pylist() == [
        {"k": 1, "t": 4, "right_t": 9}
    ]
