"""Streams of updates through the public API: the operators on tables, against plain loops."""

import datetime as dt
import math
import pickle
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.errors import BadQuery, BadState, OutOfMemory, Overflow, UnknownColumn, WrongType

QUOTES = wp.Updates("symbol", "t")
ROWS = st.lists(st.tuples(st.integers(1, 5), st.sampled_from("ABC"), st.integers(0, 3)), max_size=8)


def table(rows):
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    kinds = (pa.int64(), pa.string(), pa.int64())
    return pa.table({n: pa.array(c, k) for n, c, k in zip(("t", "symbol", "v"), columns, kinds, strict=True)})


def rising(pushes):
    """The first number of a row is how much later it is than the one before of its key and input."""
    last, made = {}, []
    for inputs in pushes:
        made.append([])
        for number, rows in enumerate(inputs):
            some = []
            for step, key, value in rows:
                last[number, key] = last.get((number, key), 0) + step
                some.append((last[number, key], key, value))
            made[-1].append(some)
    return made


pushes = st.lists(st.tuples(ROWS, ROWS), min_size=1, max_size=5).map(rising)


def test_filter():
    rows = table([(1, "A", 5), (2, "B", 6), (3, "A", None)])
    assert QUOTES.filter(rows, lambda r: pc.greater(r["v"], 5)).to_pylist() == [
        {"t": 2, "symbol": "B", "v": 6}
    ]
    assert QUOTES.filter(rows, lambda _: np.array([True, False, False])).num_rows == 1
    with pytest.raises(WrongType, match="gave 3 values of int64 for 3 rows"):
        QUOTES.filter(rows, lambda r: r["v"])
    with pytest.raises(UnknownColumn, match="'symbol'"):
        QUOTES.filter(pa.table({"t": [1]}), lambda _: [True])


def test_map_may_change_all_but_the_key():
    rows = pa.table({"t": [1, 2], "k": [math.nan, None], "v": [1, 2]})
    updates = wp.Updates("k", "t")
    doubled = updates.map(rows, lambda r: r.set_column(2, "v", pc.multiply(r["v"], 2)))
    assert doubled["v"].to_pylist() == [2, 4]
    with pytest.raises(BadQuery, match=r"map changes 'k', which is part of the update key, from nan to 1\.0"):
        updates.map(rows, lambda r: r.set_column(1, "k", pa.array([1.0, None])))
    with pytest.raises(BadQuery, match="map drops 'k'"):
        updates.map(rows, lambda r: r.drop_columns(["k"]))
    with pytest.raises(BadQuery, match="map made 1 rows of 2"):
        updates.map(rows, lambda r: r.slice(0, 1))


@given(pushes=pushes)
def test_a_union_gives_the_youngest_row_of_each_key_once(pushes):
    union, last = QUOTES.union(), {}
    for inputs in pushes:
        got = union.push(*map(table, inputs)).to_pylist()
        best = {}
        for rows in reversed(inputs):
            for t, key, v in rows:
                if t >= best.get(key, (t, 0))[0]:
                    best[key] = (t, v)
        wanted = {key: pair for key, pair in best.items() if pair[0] > last.get(key, -1)}
        last |= {key: t for key, (t, _) in wanted.items()}
        assert {row["symbol"]: (row["t"], row["v"]) for row in got} == wanted
        assert len(got) == len(wanted)


@pytest.mark.parametrize("on", [None, lambda a, b: pc.less_equal(a["v"], b["v"])], ids=["all", "on"])
@given(pushes=pushes)
def test_a_join_gives_the_newest_match_and_forgets_what_is_too_old(on, pushes):
    join, size = QUOTES.join(4, on), 4
    sides, newest, sent = ([], []), {}, {}
    for inputs in pushes:
        before = tuple(len(side) for side in sides)
        for side, rows in zip(sides, inputs, strict=True):
            side.extend(rows)
        got = join.push(*map(table, inputs)).to_pylist()
        wanted = {}
        for i, (t, key, v) in enumerate(sides[0]):
            for j, (u, other, w) in enumerate(sides[1]):
                new = i >= before[0] or j >= before[1]
                if key == other and abs(t - u) < size and new and (on is None or v <= w):
                    rank = (max(t, u), min(t, u), i, j)
                    wanted[key] = max(wanted.get(key, (rank, (t, v, u, w))), (rank, (t, v, u, w)))
        wanted = {key: pair for key, pair in wanted.items() if pair[0][:2] >= sent.get(key, (0, 0))}
        sent |= {key: rank[:2] for key, (rank, _) in wanted.items()}
        found = {row["symbol"]: (row["t"], row["v"], row["right_t"], row["right_v"]) for row in got}
        assert found == {key: pair for key, (_, pair) in wanted.items()}
        for t, key, _ in (row for side in sides for row in side):
            newest[key] = max(newest.get(key, t), t)
        for side in sides:  # a row leaves once one of its key is younger by the window
            side[:] = [row for row in side if row[0] > newest[row[1]] - size]
        for side, rows in zip(sides, join._rows, strict=True):
            assert len(side) <= len(rows) <= 2 * len(side)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.set_column(2, "v", t["v"].cast(pa.float64())),
            "column 'v' has type double, but int64 as",
        ),
        (lambda t: t.drop_columns(["v"]), "input 2 of the union has no column 'v', but input 1 of the union"),
        (
            lambda t: t.append_column("w", t["v"]),
            "input 1 of the union has no column 'w', but input 2 of the",
        ),
    ],
)
def test_streams_that_do_not_fit_are_refused_before_anything_counts_as_sent(change, message):
    union, one, two = QUOTES.union(), table([(1, "A", 5)]), table([(2, "A", 6), (1, "B", 7)])
    with pytest.raises((BadQuery, WrongType), match=message):
        union.push(one, change(two))
    assert union.push(one, two).to_pylist() == two.to_pylist()
    join = QUOTES.join(5)
    join.push(one, two)
    with pytest.raises((BadQuery, WrongType), match=r"what (is|was) left (now|before)"):
        join.push(change(one), two)
    assert join.push(table([(3, "A", 8)]), two.slice(0, 0))["v"].to_pylist() == [8]


def test_a_union_takes_columns_in_any_order_and_nulls_or_not():
    strict = pa.schema(
        [pa.field("v", pa.int64(), nullable=False), ("symbol", pa.string()), ("t", pa.int64())]
    )
    other = table([(3, "A", 8)]).select(["v", "symbol", "t"]).cast(strict)
    found = QUOTES.union().push(table([(1, "A", 1), (1, "B", None)]), other)
    assert found.column_names == ["t", "symbol", "v"]
    assert found["v"].to_pylist() == [None, 8]


def test_one_idle_key_does_not_keep_the_rows_of_the_others():
    join = QUOTES.join(2)
    join.push(table([(1, "A", 0)]), table([]))
    for t in range(1, 500):
        join.push(table([(t, "B", t)]), table([(t, "B", t)]))
    assert max(len(rows) for rows in join._rows) <= 8


def test_rows_that_came_one_by_one_lie_in_few_pieces():
    join = QUOTES.join(1_000)
    for t in range(1, 200):
        found = join.push(table([(t, "A", t)]), table([(t, "A", t)]))
        assert found["right_v"].to_pylist() == [t]
        assert max(len(rows.pieces) for rows in join._rows) <= 4


def test_windows_of_rows_are_whole_and_the_newest():
    fresh = QUOTES.window(3, 1, clock=lambda: 0.0).agg(wp.mean("v"), wp.count())
    assert fresh.put(table([(t, "A", t) for t in range(1, 6)] + [(1, "B", 9)])) == 0
    assert fresh.get().to_pylist() == [
        {"symbol": "A", "window": {"start": 2, "end": 5}, "mean_v": 4.0, "count": 3}
    ]
    fresh.put(table([(2, "B", 9), (3, "B", 12)]))
    assert [row["mean_v"] for row in fresh.get().to_pylist()] == [10.0]
    freshness = fresh.staleness()
    assert (freshness.keys, freshness.puts, freshness.gets) == (("A", "B"), 8, 2)
    assert (freshness.lost, freshness.late, freshness.waiting) == (2, 0, 0)


def test_lost_windows_and_late_rows_are_counted_apart():
    fresh = QUOTES.window("10 us", "10 us").agg(wp.count())
    assert fresh.put(table([(3, "A", 1), (12, "A", 1), (15, "A", 1), (11, "A", 1), (25, "A", 1)])) == 1
    freshness = fresh.staleness()  # [0, 10) was overtaken by [10, 20), which waits
    assert (freshness.puts, freshness.gets, freshness.lost, freshness.late) == (5, 0, 1, 1)
    assert freshness.waiting == 1
    fresh.get()
    fresh.punctuate(40)
    freshness = fresh.staleness()
    assert (freshness.gets, freshness.lost, freshness.waiting) == (1, 1, 1)


def test_rows_that_do_not_fit_into_memory_are_not_counted_as_put():
    fresh = QUOTES.window(1_000, 1, memory=4_096).agg(wp.sum("v"))
    with pytest.raises(OutOfMemory, match="full after 168 of 999 tuples, which are stored"):
        fresh.put(table([(t, "A", 1) for t in range(999)]))
    assert fresh.staleness().puts == 168


@pytest.mark.parametrize("commit", ["lazy", "eager"])
def test_windows_of_time_equal_the_query_over_those_windows(commit):
    rng = np.random.default_rng(5)
    n = 600
    rows = pa.table(
        {
            "t": pa.array(np.sort(rng.integers(0, 60_000_000, n)), pa.timestamp("us", "UTC")),
            "symbol": rng.choice(["A", "B", "C"], n),
            "v": rng.integers(0, 100, n).astype(np.int32),
        }
    )
    fresh = QUOTES.window("6 s", "2 s", commit=commit).agg(wp.sum("v"), wp.count())
    got = []
    for at in range(0, n, 50):
        fresh.put(rows.slice(at, 50))
        got += fresh.get(20).to_pylist()
    fresh.punctuate(100_000_000)
    got += fresh.get().to_pylist()
    query = (
        wp.stream(rows, time="t", keys="symbol").window(wp.sliding("6 s", "2 s")).agg(wp.sum("v"), wp.count())
    )
    whole = {(row["symbol"], row["window"]["start"]): row for row in query.run().table.to_pylist()}
    assert len(got) > 10
    for row in got:
        same = whole[row["symbol"], row["window"]["start"]]
        assert (row["sum_v"], row["count"], row["window"]) == (same["sum_v"], same["count"], same["window"])
    for symbol in "ABC":
        starts = [row["window"]["start"] for row in got if row["symbol"] == symbol]
        assert starts == sorted(set(starts))  # never back, never twice


@pytest.mark.parametrize("commit", ["lazy", "eager"])
def test_times_and_booleans_are_aggregated_as_a_query_does(commit):
    n = 60
    at = pa.array(np.arange(n) * 1_500_000 - 40_000_000)  # also before 1970
    some = pa.array([None if i % 7 == 0 else i for i in range(n)], pa.int64())
    rows = pa.table(
        {
            "t": at.cast(pa.timestamp("us", "Europe/Berlin")),
            "symbol": ["A", "B", "C"] * (n // 3),
            "at": some.cast(pa.timestamp("ms")),
            "day": some.cast(pa.int32()).cast(pa.date32()),
            "long": some.cast(pa.duration("s")),
            "up": pc.greater(some, 30),
            "small": some.cast(pa.float32()),
        }
    )
    wanted = (wp.min("at"), wp.last("at"), wp.max("day"), wp.first("long"), wp.max("up"), wp.first("small"))
    fresh = QUOTES.window("12 s", "6 s", commit=commit).agg(*wanted)
    fresh.put(rows.slice(0, 31))
    got = [fresh.get()]
    fresh.put(rows.slice(31))
    got.append(fresh.get(5))
    fresh.punctuate(dt.datetime(1971, 1, 1, tzinfo=dt.UTC))
    got = pa.concat_tables([*got, fresh.get()])
    query = wp.stream(rows, time="t", keys="symbol").window(wp.sliding("12 s", "6 s")).agg(*wanted)
    whole = query.run().table.drop_columns(["revision"])
    assert got.schema == whole.schema
    assert got.num_rows >= 6
    assert all(row in whole.to_pylist() for row in got.to_pylist())


def test_dates_may_be_the_event_time():
    days = pa.table({"t": pa.array([0, 1, 2, 5], pa.int32()).cast(pa.date32()), "symbol": ["A"] * 4})
    fresh = QUOTES.window("2 days").agg(wp.count())
    fresh.put(days)
    window = fresh.get()["window"][0].as_py()
    assert window == {"start": dt.datetime(1970, 1, 3), "end": dt.datetime(1970, 1, 5)}  # noqa: DTZ001
    fresh.punctuate(dt.date(1970, 1, 9))
    assert fresh.get()["count"].to_pylist() == [1]


def test_results_may_have_any_names_but_the_same():
    fresh = QUOTES.window(1).agg(wp.sum("v").named("key"), wp.max("v").named("done"), wp.count())
    fresh.put(table([(1, "A", 5)]))
    assert fresh.get().drop_columns(["window"]).to_pylist() == [
        {"symbol": "A", "key": 5, "done": 5, "count": 1}
    ]
    for taken in ("symbol", "window", "count"):
        with pytest.raises(BadQuery, match=f"two columns '{taken}'"):
            QUOTES.window(1).agg(wp.count(), wp.sum("v").named(taken))


def test_a_column_keeps_the_type_that_it_had_first():
    fresh = QUOTES.window(2).agg(wp.sum("v"))
    rows = table([(1, "A", 1)])
    fresh.put(rows)
    with pytest.raises(WrongType, match="column 'v' has type double, but int64 is needed"):
        fresh.put(rows.set_column(2, "v", pa.array([1.5])))
    fresh.put(rows.set_column(2, "v", pa.nulls(1)))
    assert fresh.get()["sum_v"].to_pylist() == [1]


@pytest.mark.parametrize("commit", ["lazy", "eager"])
def test_after_an_aggregate_failed_no_result_comes_that_lacks_rows(commit):
    fresh = QUOTES.window(3, commit=commit).agg(wp.sum("v"))
    fresh.put(table([(1, "B", 1), (1, "A", 2**62), (2, "A", 2**62), (3, "A", 1)]))
    with pytest.raises(Overflow):
        fresh.get()
    fresh.put(table([(2, "B", 1), (3, "B", 1)]))
    with pytest.raises(BadState, match=r"Overflow: .*Go on with an operator that was stored before"):
        pickle.loads(pickle.dumps(fresh)).get()  # noqa: S301 - our own bytes


def test_aggregates_may_be_named_as_in_queries():
    fresh = QUOTES.window(2).agg(wp.count(), dearest=wp.max("v"), cheapest=wp.min("v"))
    fresh.put(table([(1, "A", 3), (2, "A", 5)]))
    (found,) = fresh.get().select(["count", "dearest", "cheapest"]).to_pylist()
    assert found == {"count": 2, "dearest": 5, "cheapest": 3}


def test_groups_may_be_finer_than_the_key_but_not_coarser():
    trades = wp.Updates("symbol", "t")
    fine = trades.window(2, 2, by=["exchange", "symbol"]).agg(wp.sum("v"))
    fine.put(pa.table({"t": [1, 2, 3], "symbol": ["A"] * 3, "exchange": ["x", "y", "x"], "v": [1, 2, 3]}))
    assert fine.get().select(["exchange", "symbol", "sum_v"]).to_pylist() == [
        {"exchange": "x", "symbol": "A", "sum_v": 4}
    ]
    with pytest.raises(BadQuery, match="groups by 'exchange', but 'symbol' is part of the update key"):
        trades.window(2, 2, by=["exchange"])


def test_what_cannot_be_says_why():
    with pytest.raises(BadQuery, match="both be rows or both be times"):
        QUOTES.window(3, "1 s").agg(wp.count())
    with pytest.raises(BadQuery, match="Use 'lazy' or 'eager'"):
        QUOTES.window(3, 1, commit="soon").agg(wp.count())
    with pytest.raises(BadQuery, match="needs an aggregate"):
        QUOTES.window(3, 1).agg()
    fresh = QUOTES.window(1).agg(wp.count())
    fresh.put(table([(1, "A", 1)]))
    with pytest.raises(WrongType, match="the rows are a list"):
        fresh.put([{"t": 1, "symbol": "A"}])
    with pytest.raises(BadQuery, match=r"get\(-1\) would process less than nothing"):
        fresh.get(-1)
    for make in (QUOTES.union, lambda **options: QUOTES.join(3, **options)):
        with pytest.raises(BadQuery, match=r"forget=0, but .* Give seconds or a text such as '2 h', above 0"):
            make(forget=0)
    with pytest.raises(BadQuery, match="Put rows first"):
        QUOTES.window(3, 1).agg(wp.count()).get()
    with pytest.raises(WrongType, match="symbol"):
        QUOTES.window(3, 1).agg(wp.max("symbol")).put(table([(1, "A", 1)]))
    with pytest.raises(OutOfMemory):
        QUOTES.window(1_000, 1, memory=4_096).agg(wp.sum("v")).put(table([(t, "A", 1) for t in range(999)]))
    with pytest.raises(BadQuery, match="without a usable time"):
        QUOTES.union().push(table([(None, "A", 1)]))


def clock():
    return 7.0


@pytest.mark.parametrize("policy", ["in_place", "freshest"])
@pytest.mark.parametrize("commit", ["lazy", "eager"])
def test_a_stored_operator_goes_on_as_the_other_does(commit, policy):
    rng = np.random.default_rng(1)
    options = {"commit": commit, "policy": policy, "memory": 1 << 20, "clock": clock}
    fresh = stored = QUOTES.window(4, 2, **options).agg(wp.mean("v"), wp.count())
    for i in range(40):
        symbols = rng.integers(0, 5 if i < 20 else 60, 20).astype(str)  # more keys later: buffers grow
        rows = pa.table({"t": np.arange(20 * i, 20 * i + 20), "symbol": symbols, "v": rng.integers(0, 9, 20)})
        most = int(rng.integers(1, 15))
        for each in {id(o): o for o in (fresh, stored)}.values():
            each.put(rows)
        got = fresh.get(most)
        assert stored is fresh or stored.get(most).equals(got)
        if i % 7 == 3:
            data = zlib.compress(pickle.dumps(fresh))
            assert len(data) < 100_000
            stored = pickle.loads(zlib.decompress(data))  # noqa: S301 - our own bytes
    assert stored.staleness().keys == fresh.staleness().keys
    np.testing.assert_array_equal(stored.staleness().application, fresh.staleness().application)


def test_a_stored_union_and_join_go_on():
    union, join = QUOTES.union(), QUOTES.join(5)
    rows = table([(1, "A", 1), (2, "A", 2)])
    union.push(rows)
    join.push(rows, rows)
    union, join = pickle.loads(pickle.dumps((union, join)))  # noqa: S301 - our own bytes
    assert union.push(rows).num_rows == 0
    found = join.push(table([]), table([(4, "A", 4)])).to_pylist()
    assert [(row["t"], row["right_t"]) for row in found] == [(2, 4)]
