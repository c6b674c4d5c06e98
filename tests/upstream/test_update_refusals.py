"""What a stream of updates cannot do is refused where it is said, with the remedy."""

import math
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windowpane as wp
from windowpane.errors import BadAggregate, BadQuery, WrongType

UPDATES = wp.Updates("k", "t")
ROWS = pa.table({"t": [1, 2], "k": ["a", "b"], "v": [1, 2]})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"v": [10], "right_v": [99]}, {"v": [20]}),
        ({"v": [10]}, {"right_v": [99], "v": [20]}),
        ({"v": [10]}, {"v": [20], "right_v": [99]}),
    ],
)
def test_a_join_does_not_hide_a_column_behind_another(left, right):
    join, head = UPDATES.join(within=3), {"t": [1], "k": ["a"]}
    with pytest.raises(BadQuery, match=r"the join would have two columns 'right_v'\. Rename one of them"):
        join.push(pa.table(head | left), pa.table(head | right))
    found = join.push(pa.table(head | {"v": [1]}), pa.table(head | {"v": [2], "w": [3]}))
    assert found.to_pylist() == [{"t": 1, "k": "a", "v": 1, "right_t": 1, "right_v": 2, "w": 3}]


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (ROWS.drop_columns(["v"]), "input 1 of the union has no column 'v', but what came before has"),
        (ROWS.append_column("w", ROWS["v"]), "what came before has no column 'w', but input 1 of the union"),
        (
            ROWS.set_column(2, "v", pa.array(["x", "y"])),
            "column 'v' has type string, but int64 as in what came",
        ),
        (
            ROWS.set_column(0, "t", pa.array([9, 9], pa.timestamp("s"))),
            r"column 't' has type timestamp\[s\], but int64 as in what came before is",
        ),
    ],
)
def test_a_union_has_the_columns_of_its_first_push(later, message):
    union = UPDATES.union()
    union.push(ROWS.set_column(2, "v", pa.nulls(2)), ROWS)
    with pytest.raises((BadQuery, WrongType), match=message):
        union.push(later)
    newer = ROWS.set_column(0, "t", pa.array([3, 3])).select(["v", "k", "t"])
    assert pickle.loads(pickle.dumps(union)).push(newer).schema == ROWS.schema  # noqa: S301 - our own bytes
    assert union.push(newer, newer.set_column(0, "v", pa.nulls(2)))["v"].to_pylist() == [1, 2]


def test_a_join_compares_no_moments_with_numbers():
    moments = ROWS.set_column(0, "t", pa.array([1, 2], pa.timestamp("us")))
    for left, right in ((ROWS, moments), (moments, ROWS)):
        with pytest.raises(WrongType, match=r"column 't' has type .* on the right.* Cast it on one side"):
            UPDATES.join(within=3).push(left, right)
    days = ROWS.set_column(0, "t", pa.array([0, 0], pa.date32()))
    assert UPDATES.join(within=3).push(moments, days).num_rows == 2


def test_a_map_must_return_a_table_with_the_time():
    with pytest.raises(WrongType, match=r"map made a NoneType of the rows\. Return an Arrow table"):
        UPDATES.map(ROWS, lambda _: None)
    with pytest.raises(BadQuery, match=r"map drops 't', which is the event time\. Keep the column"):
        UPDATES.map(ROWS, lambda r: r.drop_columns(["t"]))


@pytest.mark.parametrize("given", [True, None, pa.scalar(True), [[True], [False]], [True, "yes", 5j]])
def test_a_predicate_must_give_a_boolean_for_each_row(given):
    with pytest.raises(WrongType, match=r"the predicate gave .* for 2 rows\. Return a boolean for each"):
        UPDATES.filter(ROWS, lambda _: given)
    join = UPDATES.join(within=3, on=lambda _left, _right: given)
    with pytest.raises(WrongType, match=r"the predicate gave .* for 2 rows\. Return a boolean for each"):
        join.push(ROWS, ROWS)
    assert UPDATES.filter(ROWS, lambda r: np.asarray(r["v"]) > 1).num_rows == 1
    assert UPDATES.filter(ROWS, lambda r: pc.greater(r["v"], 1)).num_rows == 1
    assert UPDATES.filter(ROWS, lambda _: [None, True]).num_rows == 1


def test_a_predicate_may_give_lists_for_no_rows_and_for_nulls_only():
    def dear(some):
        return [None if price is None else price > 1 for price in some["v"].to_pylist()]

    for rows in (ROWS.slice(0, 0), ROWS.set_column(2, "v", pa.nulls(2, pa.int64()))):
        assert UPDATES.filter(rows, dear).num_rows == 0
        assert UPDATES.join(within=3, on=lambda left, _: dear(left)).push(rows, rows).num_rows == 0


@pytest.mark.parametrize("cost", [math.nan, math.inf, -1, "soon", None])
def test_a_cost_by_which_keys_would_starve_is_refused(cost):
    with pytest.raises(BadQuery, match=r"cost=.* Give seconds or a text .* at least 0"):
        UPDATES.window(2, 1, cost=cost).agg(wp.count())


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("zzz", "there is no policy 'zzz'"),
        ("append", r"policy 'append' keeps every row.* Use fifo, in_place, linecutting, freshest"),
        ("shed", "policy 'shed' keeps every row"),
        ("switch", "policy 'switch' keeps every row"),
    ],
)
def test_a_policy_that_windows_cannot_have_is_refused_before_rows_come(policy, message):
    with pytest.raises(BadQuery, match=message):
        UPDATES.window(2, 1, policy=policy).agg(wp.count())


def test_a_text_is_one_column_to_group_by():
    fresh = UPDATES.window(1, by="k").agg(wp.count())
    fresh.put(ROWS)
    assert fresh.get()["k"].to_pylist() == ["a", "b"]
    with pytest.raises(BadQuery, match="groups by 'key', but 'k' is part of the update key"):
        UPDATES.window(1, by="key")


def test_memory_may_be_a_text():
    fresh = UPDATES.window(1, memory="64 KiB").agg(wp.sum("v"))
    fresh.put(ROWS)
    assert fresh.get()["sum_v"].to_pylist() == [1, 2]
    with pytest.raises(BadQuery, match=r"'64 pages' is no size\. Write '64 MB'"):
        UPDATES.window(1, memory="64 pages").agg(wp.sum("v"))


@pytest.mark.parametrize("commit", ["lazy", "eager"])
def test_as_many_columns_are_aggregated_as_can_be(commit):
    names = [f"c{i}" for i in range(63)]
    rows = pa.table({"t": range(40), "k": ["a"] * 40} | {name: range(40) for name in names})
    fresh = UPDATES.window(2, 2, commit=commit, memory=1 << 16).agg(*map(wp.sum, names))
    fresh.put(rows)
    (found,) = fresh.get().to_pylist()
    assert [found[f"sum_{name}"] for name in names] == [38 + 39] * 63
    more = rows.append_column("c63", rows["c0"])
    with pytest.raises(BadAggregate, match="64 columns are aggregated; at most 63 can be"):
        UPDATES.window(2).agg(*map(wp.sum, [*names, "c63"])).put(more)


@pytest.mark.parametrize("wanted", ["mean", None, wp.mean, ["v"]])
def test_what_is_no_aggregate_is_refused(wanted):
    with pytest.raises(BadQuery, match=r"that is no aggregate\. Give one such as wp\.mean\('price'\)"):
        UPDATES.window(2).agg(wp.count(), wp.sum("v"), wanted)
    with pytest.raises(BadQuery, match="that is no aggregate"):
        UPDATES.window(2).agg(m=wanted)


@pytest.mark.parametrize("wanted", [wp.first("s"), wp.count("s"), wp.max("s")])
@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_texts_are_not_aggregated_and_the_remedy_is_none_that_fails_too(wanted, kind):
    rows = pa.table({"k": ["a"], "t": [1], "s": pa.array(["x"]).cast(kind)})
    with pytest.raises(
        WrongType, match=r"'s' has type .*string.* or leave it out: wp\.count\(\) needs no col"
    ):
        UPDATES.window(2).agg(wanted).put(rows)


@pytest.mark.parametrize("given", [None, {"k": ["a"], "t": [1]}, [{"k": "a", "t": 1}]])
def test_what_is_no_table_is_refused(given):
    union, join = UPDATES.union(), UPDATES.join(within=3)
    for push in (union.push, lambda rows: union.push(ROWS, rows), lambda rows: join.push(ROWS, rows)):
        with pytest.raises(WrongType, match=r"the rows are a \w+\. Give an Arrow table or batch, a pandas"):
            push(given)
    assert union.push(ROWS).num_rows == join.push(ROWS, ROWS).num_rows == 2


def at(*nanoseconds, kind=None):
    times = pa.array(nanoseconds, kind or pa.timestamp("ns"))
    return pa.table({"k": ["a"] * len(times), "t": times, "v": range(len(times))})


@pytest.mark.parametrize("encoded", [False, True])
def test_times_that_no_microsecond_tells_apart_are_refused(encoded):
    union, join, fresh = UPDATES.union(), UPDATES.join("1 s"), UPDATES.window("2 us").agg(wp.count())
    fine, whole = at(2_000, 2_600, -3_000), at(-2_000, 2_000, 5_000)
    if encoded:
        fine, whole = (r.set_column(1, "t", r["t"].dictionary_encode()) for r in (fine, whole))
    for push in (union.push, lambda rows: join.push(rows, rows), fresh.put):
        with pytest.raises(
            BadQuery,
            match=r"column 't' holds 2600 \(timestamp\[ns\]\), which is no whole microsecond, .* Cast the "
            r"column to microseconds, with cast\(pa\.timestamp\('us'\), safe=False\)",
        ):
            push(fine)
        push(whole)
    assert fresh.get()["count"].to_pylist() == [1]
    assert union.push(at(6_000) if not encoded else whole).num_rows == int(not encoded)


def test_times_of_nanoseconds_without_a_microsecond_between_are_refused_after_others():
    union = UPDATES.union()
    assert union.push(at(3_000)).num_rows == 1
    for _ in range(2):
        with pytest.raises(BadQuery, match="which is no whole microsecond"):
            union.push(at(3_600))
    with pytest.raises(BadQuery, match="without a usable time"):
        union.push(at(None, 3_600))
    assert union.push(at(4_000)).num_rows == 1


def test_tables_of_a_push_whose_predicate_failed_have_not_come():
    join = UPDATES.join(within=3, on=lambda left, right: pc.equal(left["v"], right["right"]))
    wrong = pa.table({"k": [1], "t": [1], "v": [1]})
    for _ in range(2):
        with pytest.raises(KeyError, match="right"):
            join.push(wrong, wrong)
    right = ROWS.rename_columns(["t", "k", "right"])
    assert join.push(ROWS.slice(0, 1), right).num_rows == 1
    with pytest.raises(WrongType, match="column 'k' has type int64, but string is needed"):
        join.push(wrong, right)
    assert join.push(ROWS.slice(1), right.slice(0, 0)).to_pylist() == [
        {"t": 2, "k": "b", "v": 2, "right_t": 2, "right": 2}
    ]


def test_what_comes_while_the_clock_tells_no_time_does_not_count_as_sent():
    now = [0.0]
    union, join = UPDATES.union(clock=lambda: now[0]), UPDATES.join(within=3, clock=lambda: now[0])
    now[0] = math.nan
    for push in (lambda: union.push(ROWS), lambda: join.push(ROWS, ROWS)):
        with pytest.raises(BadQuery, match="the clock says nan, which is no time"):
            push()
    now[0] = 1.0
    assert union.push(ROWS).num_rows == 2
    assert join.push(ROWS.slice(0, 0), ROWS).num_rows == 0
