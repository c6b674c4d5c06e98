"""Windows, unions and joins forget keys that had no row for long; no result is wrong or goes back for it."""

import pickle
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.kernels.update_queue import WAITING
from windowpane.core.upstream.recency import Recency

QUOTES = wp.Updates("symbol", "t")
FORGET = 10.0


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def table(rows):
    t, symbol, n = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({"t": pa.array(t, pa.int64()), "symbol": pa.array(symbol, pa.string()), "n": pa.array(n)})


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("commit", ["lazy", "eager"])
def test_windows_over_ever_new_keys_do_not_grow(commit, timed):
    clock = Clock()
    span = ("20 us", "10 us") if timed else (3, 2)
    fresh = QUOTES.window(*span, commit=commit, clock=clock, forget=100.0, memory=1 << 21).agg(wp.count())
    for minute in range(40):
        keys = np.repeat(np.arange(500) + 500 * minute, 4)
        times = np.tile(np.arange(4) * 7, 500) + 100 * minute
        assert fresh.put(pa.table({"t": times, "symbol": keys})) == 0
        fresh.get()
        fresh.done()
        clock.now += 40.0
        assert len(fresh.staleness().keys) <= 4_000
        assert len(fresh._operator.queue.machine.buffers) <= 8_000
        assert fresh._operator.queue.usage.used <= 4_000 * 4
        assert fresh._operator.begun <= 4_000
    freshness = fresh.staleness()
    assert len(freshness.keys) + freshness.forgotten[0] == 40 * 500
    # A key that comes once starts a window that never ends, to which EAGER has committed.
    assert freshness.gets == (40 * 500 if commit == "lazy" else 0)
    assert freshness.puts == 40 * 2_000


@pytest.mark.parametrize("timed", [False, True])
def test_keys_that_wait_behind_a_window_that_never_ends_do_not_grow_either(timed):
    clock = Clock()
    span = ("30 us", "10 us") if timed else (3, 1)
    fresh = QUOTES.window(*span, commit="eager", clock=clock, forget=100.0, memory=1 << 21).agg(wp.count())
    for minute in range(40):
        keys = np.arange(500) + 500 * minute
        for row in range(2):  # EAGER has begun the first window when the second starts, and no more comes
            fresh.put(pa.table({"t": np.full(500, 100 * minute + 10 * row), "symbol": keys}))
            fresh.get()
        fresh.done()
        clock.now += 40.0
        freshness = fresh.staleness()
        assert len(freshness.keys) <= 4_000
        assert freshness.waiting <= 4_000
        assert fresh._operator.queue.usage.used <= 4_000 * 2
    assert len(freshness.keys) + freshness.forgotten[0] == 40 * 500
    assert fresh._operator.queue.machine.waiting.totals[WAITING] == freshness.waiting
    assert freshness.gets == 0


def test_what_waits_or_is_being_processed_is_not_forgotten():
    clock = Clock()
    fresh = QUOTES.window(2, clock=clock, forget=FORGET).agg(wp.sum("n"))
    fresh.put(table([(t, key, 1) for key in "abcd" for t in range(2)]))
    assert fresh.get(2)["symbol"].to_pylist() == ["a"]
    for _ in range(20):
        clock.now += 4.0
        fresh.put(table([(0, "new", 0)]))
    assert fresh.staleness().keys == ("a", "b", "c", "d", "new")  # a is not delivered yet
    fresh.done()
    for _ in range(20):
        clock.now += 4.0
        fresh.put(table([(0, key, 0) for key in "xyz"]))
    assert set(fresh.get()["symbol"].to_pylist()) >= {"b", "c", "d"}
    fresh.done()
    for _ in range(20):
        clock.now += 4.0
        fresh.put(table([(0, key, 0) for key in "xyz"]))
    assert "a" not in fresh.staleness().keys


def test_a_counted_key_that_comes_back_begins_anew():
    clock = Clock()
    fresh = QUOTES.window(3, 1, clock=clock, forget=FORGET).agg(wp.collect("n"))
    fresh.put(table([(t, "A", t) for t in range(5)]))
    assert fresh.get()["window"].to_pylist() == [{"start": 2, "end": 5}]
    fresh.done()
    for _ in range(4):
        clock.now += 4.0
        fresh.put(table([(0, "B", 0)]))
    assert fresh.staleness().keys == ("B",)
    fresh.put(table([(t, "A", t) for t in (7, 8, 9)]))
    found = [row for row in fresh.get().to_pylist() if row["symbol"] == "A"]
    assert [(row["window"], row["collect_n"]) for row in found] == [({"start": 0, "end": 3}, [7, 8, 9])]


@pytest.mark.parametrize("commit", ["lazy", "eager"])
def test_windows_that_may_hold_forgotten_rows_are_not_given(commit):
    clock = Clock()
    fresh = QUOTES.window("10 us", "5 us", commit=commit, clock=clock, forget=FORGET).agg(wp.collect("n"))
    fresh.put(table([(1, "A", 1)]))
    fresh.get()
    for _ in range(4):
        clock.now += 4.0
        fresh.put(table([(1, "B", 0)]))
    assert fresh.staleness().keys == ("B",)
    assert fresh.put(table([(4, "A", 4)])) == 1  # lies in [0, 10) and older windows only
    assert fresh.put(table([(4, "new", 4)])) == 1  # nobody knows that it is another key
    got = []
    for t in (5, 12, 16):
        assert fresh.put(table([(t, "A", t)])) == 0
        got += [row for row in fresh.get().to_pylist() if row["symbol"] == "A"]
    assert [(row["window"]["start"], row["collect_n"]) for row in got] == [(5, [5, 12])]


PUT = st.tuples(st.just("put"), st.sampled_from("ABCD"), st.integers(-3, 3), st.integers(2, 5))
MOVES = st.lists(
    st.one_of(
        *[PUT] * 6,
        st.tuples(st.just("get"), st.integers(1, 9)),
        st.tuples(st.just("punctuate"), st.integers(0, 3)),
    ),
    min_size=20,
    max_size=60,
)


@given(
    moves=MOVES, size=st.integers(1, 20), slide=st.integers(1, 20), commit=st.sampled_from(["lazy", "eager"])
)
@settings(max_examples=100, deadline=None)
def test_windows_of_event_time_are_whole_and_given_once_whatever_is_forgotten(moves, size, slide, commit):
    """Against all rows that ever came and were not late, those of forgotten keys included."""
    clock, time, number = Clock(), 0, 0
    span, options = (f"{size} us", f"{slide} us"), {"commit": commit, "forget": FORGET, "memory": 1 << 16}
    fresh = QUOTES.window(*span, clock=clock, **options).agg(wp.collect("n"))
    fresh.put(table([(time, "A", number)]))
    came, given_ = defaultdict(list, {"A": [(time, number)]}), defaultdict(list)
    for kind, *what in [*moves, ("punctuate", 99), ("get", 10_000)]:
        if kind == "put":
            key, step, pause = what
            clock.now += pause
            time, number = time + max(step, 0), number + 1
            if fresh.put(table([(time + min(step, 0), key, number)])) == 0:
                came[key].append((time + min(step, 0), number))
        elif kind == "get":
            for row in fresh.get(what[0]).to_pylist():
                given_[row["symbol"]].append((row["window"]["start"], row["window"]["end"], row["collect_n"]))
        else:
            time += what[0]
            fresh.punctuate(time)
    for key, windows in given_.items():
        starts = [start for start, *_ in windows]
        assert starts == sorted(set(starts))  # never back, never twice
        for start, end, rows in windows:
            assert rows == [n for t, n in came[key] if start <= t < end]
    freshness = fresh.staleness()
    assert freshness.puts == number + 1 == sum(map(len, came.values())) + freshness.late
    assert freshness.lost >= 0


@given(moves=MOVES, commit=st.sampled_from(["lazy", "eager"]))
@settings(max_examples=25, deadline=None)
def test_forgetting_changes_nothing_for_the_keys_that_stay(moves, commit):
    """Beside keys that come once, those that keep coming have the same results, in the same order."""
    clock = Clock()
    make = {"commit": commit, "clock": clock, "memory": 1 << 16}
    lossy, whole = (QUOTES.window(3, 2, forget=f, **make).agg(wp.collect("n")) for f in (FORGET, np.inf))
    for number, (kind, *what) in enumerate(moves):
        clock.now += 3.0
        steady = [(0, key, number) for key in "PQR"]
        once = [(0, f"{what[0]}{number}", number)] if kind == "put" else []
        for fresh in (lossy, whole):
            fresh.put(table([*steady, *once]))
        if kind == "get":
            assert lossy.get(what[0]).to_pylist() == whole.get(what[0]).to_pylist()
    if moves:
        assert lossy.get().to_pylist() == whole.get().to_pylist()
    a, b = lossy.staleness(), whole.staleness()
    assert a.average_application == pytest.approx(b.average_application)
    assert (a.gets, a.lost, a.late) == (b.gets, b.lost, b.late)


@pytest.mark.parametrize("kind", ["union", "join"])
def test_unions_and_joins_over_ever_new_keys_do_not_grow(kind):
    clock = Clock()
    operator = QUOTES.union(forget=100.0, clock=clock) if kind == "union" else QUOTES.join(
        50, forget=100.0, clock=clock
    )  # fmt: skip
    for minute in range(40):
        rows = pa.table({"t": np.zeros(500, np.int64), "symbol": np.arange(500) + 500 * minute})
        assert len(operator.push(rows, rows)) == 500
        clock.now += 40.0
        assert len(operator._known._index) <= 4_000
    if kind == "union":
        assert len(operator._union._last) <= 8_000
    else:
        assert sum(len(operator._join.kept(side)) for side in (0, 1)) <= 8_000
        assert max(len(rows) for rows in operator._rows) <= 8_000


def test_within_the_time_no_older_row_goes_out_and_after_it_a_key_is_new():
    clock = Clock()
    union, join = (
        make(forget=FORGET, clock=clock) for make in (QUOTES.union, lambda **o: QUOTES.join(9, **o))
    )
    union.push(table([(50, "A", 1)]))
    join.push(table([(50, "A", 1)]), table([(50, "A", 1)]))
    for _ in range(4):
        clock.now += 2.4  # within 10 seconds
        union.push(table([(1, "B", 1)]))
        join.push(table([(1, "B", 1)]), table([]))
    assert union.push(table([(49, "A", 2)])).num_rows == 0
    assert join.push(table([]), table([(49, "A", 2)])).num_rows == 0
    for _ in range(5):
        clock.now += 2.4
        union.push(table([(1, "B", 1)]))
        join.push(table([(1, "B", 1)]), table([]))
    assert union.push(table([(49, "A", 3)]))["n"].to_pylist() == [3]
    assert join.push(table([(49, "A", 3)]), table([])).num_rows == 0  # what it would match is forgotten
    assert join.push(table([]), table([(49, "A", 4)]))["right_n"].to_pylist() == [4]


def test_a_pause_of_the_stream_is_no_reason_to_forget():
    clock = Clock()
    fresh = QUOTES.window(2, clock=clock, forget=FORGET).agg(wp.sum("n"))
    fresh.put(table([(0, key, 1) for key in "ABCD"]))
    clock.now += 1_000_000.0
    fresh.put(table([(1, "A", 1)]))
    fresh.put(table([(1, key, 1) for key in "BCD"]))
    assert fresh.get()["sum_n"].to_pylist() == [2] * 4


def test_a_stored_operator_forgets_by_the_clock_that_it_wakes_up_with():
    recency = Recency(10.0)
    recency.saw(np.array([0]), 1, 1e9)
    again = pickle.loads(pickle.dumps(recency))  # noqa: S301 - our own bytes
    for now in np.arange(5.0, 13.0, 3.0):
        again.saw(np.array([1]), 2, now)
    assert again.gone(np.ones(2, np.bool_)) is None
    for now in np.arange(14.0, 20.0, 3.0):
        again.saw(np.array([1]), 2, now)
    assert again.gone(np.ones(2, np.bool_)).tolist() == [True, False]
