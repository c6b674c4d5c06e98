"""Rows 23 to 35 of the reliability matrix on the Spark path, driven without Spark: times, order, values."""

import math
import os
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from tests.property.harness import Case, batch_of, drained_answers, rows_of, same
from tests.property.strategies import AGGREGATES, FEW_ORDERED, Shape, make_rows
from tests.reliability.test_local import WINDOWS, data, micros
from tests.spark.harness import events, rows
from tests.spark.pump import STRAYS, Pump, pushed
from windowpane.spark.bucket import Counts
from windowpane.values import windows as w
from windowpane.values.errors import Overflow

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
"""Every seed with every window, instead of a share of them."""
SECOND = 1_000_000
MINUTE = 60 * SECOND


def check_pumped(case, **how):
    """Run a case through tasks and buckets to its end; every answer is the oracle's over the rows kept."""
    pump = Pump(case.query(), strays=STRAYS, **how)
    for batch in case.batches:
        pump.push(batch_of(batch))
    upto = pump.bound
    pump.end()
    strays = [pump.table(name) for name in STRAYS]
    out = {seq for table in strays if table is not None for seq in table["seq"].to_pylist()}
    kept = [row for row in case.rows if row["seq"] not in out]
    counts = pump.counts
    assert (counts.kept, counts.kept + counts.late) == (len(kept), len(case.rows))
    table = pump.table()
    found = [] if table is None else rows_of(case, table)
    assert len({where for where, _ in found}) == len(found), "a window came twice"
    same(dict(found), drained_answers(case, kept, upto, None))
    return counts


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_row_23_late_inside_the_bound(window):
    wanted = {name: FEW_ORDERED[name] for name in ("count", "sum_i", "collect_i")}
    if isinstance(window, w.Sliding | w.Landmark | w.Cumulative):
        wanted.pop("collect_i")  # so that tasks fold the rows first
    for seed in range(0 if DEEP else WINDOWS.index(window) % 4, 50, 1 if DEEP else 4):
        found = make_rows(seed, 20, 8, Shape(odd=False))
        case = Case((window,), wanted, found, delay=8, cuts=[5, 13])
        counts = check_pumped(case, tasks=1 + seed % 3, buckets=1 + seed % 4, restart=seed % 5 == 0)
        assert counts.late == 0


@pytest.mark.parametrize("window", [wp.tumbling("1 min"), wp.session("1 min")], ids=["slices", "sessions"])
@pytest.mark.parametrize("delay", [10, 60, 300])
def test_row_24_late_beyond_the_bound(delay, window):
    table = data("zeek_ssl").select(["seq", "ts", "orig_h"])
    time = table["ts"].cast(pa.int64()).to_numpy()
    size = 5_000
    # a row is late by the bound that the micro-batches before it left; of slices, if all of its slice is
    top = np.maximum.accumulate(time)
    before = np.where(np.arange(len(time)) < size, np.iinfo(np.int64).min, 0)
    first = np.arange(len(time)) // size * size
    before[size:] = top[first[size:] - 1] - delay * SECOND
    cutoff = before // MINUTE * MINUTE if isinstance(window, w.Sliding) else before
    late = (np.arange(len(time)) >= size) & (time < cutoff)
    query = wp.stream(schema=table.schema, time="ts", keys="orig_h", delay=f"{delay} s")
    pump = Pump(query.window(window).agg(wp.count()), strays=STRAYS)
    pump.run(table.slice(at, size) for at in range(0, len(table), size))
    assert pump.counts == Counts(kept=len(table) - int(late.sum()), late=int(late.sum()))
    assert pump.counts.late > 0
    assert sorted(pump.table("late")["seq"].to_pylist()) == table["seq"].to_numpy()[late].tolist()
    assert sum(pump.table()["count"].to_pylist()) == pump.counts.kept


def test_row_25_null_event_time():
    table = data("nyc_flights").select(["seq", "dep", "carrier"])
    pump = pushed(
        table, wp.tumbling("1 day"), wp.count(), batches=5, time="dep", keys="carrier", delay="12 h"
    )
    rejects = pump.table("rejects")
    assert pump.counts == Counts(kept=len(table) - 8255, null_time=8255)
    assert rejects["dep"].null_count == rejects["reason"].to_pylist().count("null time") == 8255
    assert len(set(rejects["seq"].to_pylist())) == 8255
    assert sum(pump.table()["count"].to_pylist()) == len(table) - 8255


@pytest.mark.parametrize("year", [2262, 9999])
@pytest.mark.parametrize("place", [0, 1, 777, 99_999])
@pytest.mark.parametrize(("batches", "tasks"), [(100, 1), (20, 3), (1, 3)])
def test_row_26_one_row_from_the_far_future(year, place, batches, tasks):
    times = micros(2024, 1, 1) + np.arange(100_000) * SECOND
    times[place] = micros(year, 1, 1)
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "seq": np.arange(100_000)})
    window = wp.tumbling("1 hour")
    pump = pushed(table, window, wp.count(), batches=batches, tasks=tasks, time="ts", delay="10 s")
    assert pump.counts == Counts(kept=99_999, too_far_ahead=1)
    rejects = pump.table("rejects").select(["seq", "reason"])
    assert rejects.to_pylist() == [{"seq": place, "reason": "too far ahead"}]
    assert sum(pump.table()["count"].to_pylist()) == 99_999


@pytest.mark.parametrize("place", range(10))
def test_row_26_micro_batches_of_one_row_one_of_which_is_absurd(place):
    times = [micros(2024, 1, 1) + i * SECOND for i in range(9)]
    times.insert(place, micros(9999, 1, 1))
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "seq": range(10)})
    pump = pushed(table, wp.tumbling("1 hour"), wp.count(), batches=10, time="ts", delay="10 s", restart=True)
    assert pump.counts == Counts(kept=9, too_far_ahead=1)
    rejects = pump.table("rejects").select(["seq", "reason"])
    assert rejects.to_pylist() == [{"seq": place, "reason": "too far ahead"}]
    assert pump.table()["count"].to_pylist() == [9]


def test_row_27_times_before_1970_and_in_year_1_get_their_windows():
    times = [micros(1, 1, 1), micros(1, 1, 1, 0, 0, 59), micros(1969, 12, 31, 23, 59, 59), micros(1970, 1, 1)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))})
    for batches in (1, 4):
        pump = pushed(
            table, wp.tumbling("1 min"), wp.count(), batches=batches, time="ts", max_ahead=None, restart=True
        )
        found = sorted((row["window"]["start"], row["count"]) for row in pump.table().to_pylist())
        assert found == [
            (datetime(1, 1, 1, tzinfo=UTC), 2),
            (datetime(1969, 12, 31, 23, 59, tzinfo=UTC), 1),
            (datetime(1970, 1, 1, tzinfo=UTC), 1),
        ]
        assert pump.counts == Counts(kept=4)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", None])
def test_row_27_times_that_overflow_are_rejected_with_their_reason(unit):
    raw = np.array([0, 2**63 - 1, -(2**63) + 1, 60, -60], np.int64)
    kind = pa.int64() if unit is None else pa.timestamp(unit)
    table = pa.table({"ts": pa.array(raw, kind), "seq": np.arange(5)})
    pump = pushed(table, wp.tumbling(MINUTE), wp.count(), batches=2, time="ts", delay=10**12, max_ahead=None)
    total = pump.counts
    assert total.kept + total.late + total.out_of_range == 5
    assert sum(pump.table()["count"].to_pylist()) == total.kept
    if unit != "ns":  # 2262 and 1677 are times like any other
        assert total == Counts(kept=3, out_of_range=2)
        rejects = pump.table("rejects")
        assert sorted(rejects["seq"].to_pylist()) == [1, 2]
        assert set(rejects["reason"].to_pylist()) == {"time out of range"}


def two_sources(skew, n=600, seed=0):
    """Rows of two inputs that come in turns; the clock of the second is off by `skew` microseconds."""
    rng = np.random.default_rng(seed)
    time = 1_700_000_000 * SECOND + np.sort(rng.integers(0, 3600, n)) * SECOND
    source = rng.integers(0, 2, n)
    return pa.table(
        {
            "ts": pa.array(time + source * skew, pa.timestamp("us", "UTC")),
            "s": pa.array(np.array(["a", "b"])[source]),
            "k": pa.array(np.array(["x", "y", "z"])[rng.integers(0, 3, n)]),
            "v": rng.integers(0, 100, n),
        }
    )


@pytest.mark.parametrize("skew", [-600, 600])
@pytest.mark.parametrize(
    "window", [wp.sliding("2 min", "1 min"), wp.session("20 s")], ids=["slices", "sessions"]
)
def test_row_28_clock_skew_of_two_inputs(skew, window):
    table = two_sources(skew * SECOND)
    how = {"time": "ts", "keys": "k"}
    whole = wp.stream(table, delay="1 day", **how).window(window).agg(wp.count(), wp.sum("v")).run().table
    policy = wp.melded("s", wp.delay(0), sources=["a", "b"])
    pump = pushed(table, window, wp.count(), wp.sum("v"), batches=20, punctuation=policy, restart=True, **how)
    assert rows(pump.table()) == rows(whole)
    assert pump.counts == Counts(kept=len(table))
    # one bound for both would have called the slower input's rows late
    plain = pushed(table, window, wp.count(), batches=20, delay=0, **how)
    assert plain.counts.late > 100


def test_row_29_one_silent_input_of_two_holds_nothing_back_once_it_is_idle():
    table = two_sources(0)
    policy = wp.melded("s", wp.heartbeat("30 s", delay="5 s", policy=wp.delay(0)), sources=["a", "b"])
    window, how = wp.tumbling("1 min"), {"time": "ts", "keys": "k"}
    query = wp.stream(schema=table.schema, punctuation=policy, **how).window(window).agg(wp.count())
    pump = Pump(query, restart=True)
    only_a = table.filter(pa.array(np.array(table["s"].to_pylist()) == "a"))
    cuts = [only_a.slice(at, 30) for at in range(0, len(only_a), 30)]
    start = 1_800_000_000 * SECOND
    for i, cut in enumerate(cuts[:3]):
        assert not pump.push(cut, now=start + i * 10 * SECOND), "b may still send older rows"
    at_once = pump.push(cuts[3], now=start + 31 * SECOND)  # b is idle now: a alone sets the bound
    bound = cuts[3]["ts"].cast(pa.int64()).to_numpy().max()
    assert pump.bound == bound
    expected = wp.stream(pa.concat_tables(cuts[:4]), delay="1 day", **how).window(window).agg(wp.count())
    whole = expected.run().table
    ends = whole["window"].combine_chunks().field("end").cast(pa.int64()).to_numpy()
    assert rows(at_once["query"]) == rows(whole.filter(pa.array(ends <= bound)))
    rest = pump.push(now=start + 100 * SECOND)  # now both are idle: the clock answers what is open
    assert rows(rest["query"]) == rows(whole.filter(pa.array(ends > bound)))


def test_row_29_a_source_that_speaks_again_holds_the_bound_again():
    table = two_sources(0, n=40)
    policy = wp.melded("s", wp.heartbeat("30 s", policy=wp.delay(0)), sources=["a", "b"])
    query = wp.stream(schema=table.schema, punctuation=policy, time="ts").window(wp.tumbling("1 s"))
    pump = Pump(query.agg(wp.count()))
    schema, base = table.schema, 1_700_000_000 * SECOND

    def row(source, second):
        moment = pa.array([base + second * SECOND], pa.timestamp("us", "UTC"))
        return pa.table([moment, [source], ["x"], [1]], schema=schema)

    now = 1_800_000_000 * SECOND
    pump.push(row("a", 100), now=now)
    pump.push(row("a", 200), now=now + 31 * SECOND)
    assert pump.bound == base + 200 * SECOND
    pump.push(row("b", 210), now=now + 32 * SECOND)
    pump.push(row("a", 300), now=now + 33 * SECOND)
    assert pump.bound == base + 210 * SECOND
    assert pump.counts.kept == 4


KINDS = {
    "tumbling": wp.tumbling("10 s"),
    "sliding": wp.sliding("10 s", "3 s"),
    "gaps": wp.sliding("2 s", "5 s"),
    "landmark": wp.landmark("15 s"),
    "cumulative": wp.cumulative("5 s", "20 s"),
    "session": wp.session("300 ms"),
    "rows": wp.rows(50, 20),
    "rows of a key": wp.rows(10, 5).per(),
    "per row": wp.per_row("1 s", every=5),
    "last rows": wp.last_rows(7, "5 s"),
    "start marks": wp.delimited(start="m"),
    "end marks": wp.delimited(end="m"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_row_32_the_end_of_a_stream_closes_every_window(kind):
    table, window = events(), KINDS[kind]
    how = {"time": "ts", "keys": "k", "delay": "2 s"}
    whole = wp.stream(table, **how).window(window).agg(wp.count(), wp.sum("v")).run().table
    pump = pushed(table, window, wp.count(), wp.sum("v"), batches=4, **how)
    assert rows(pump.table()) == rows(whole)
    last = pump.found["query"][-1]
    assert last.num_rows, "nothing was left for the end to close"


def test_row_34_any_order_and_any_batches_give_the_same_answers():
    table = pa.table(batch_of(make_rows(34, 30, 0, Shape(odd=False))).to_pydict(), schema=batch_of([]).schema)
    stream = wp.stream(schema=table.schema, time="ts", keys="k", delay=10**6)
    sliced = [wp.count(), wp.sum("i"), wp.median("f")]
    ordered = [wp.count(), wp.collect("i"), wp.last("s")]
    queries = [
        stream.window(w.Sliding(10, 4)).agg(*sliced, name="slices"),
        stream.window(w.Session(3)).agg(*ordered, name="sessions"),
        stream.window(w.Rows(4, 2)).agg(*ordered, name="positions"),
    ]
    expected = None
    for seed in range(50 if DEEP else 10):
        shuffled = table.take(np.random.default_rng(seed).permutation(30))
        for size in (2, 5, 7, 15, 30):
            pump = Pump(*queries, tasks=1 + seed % 3, buckets=1 + seed % 2)
            pump.run(shuffled.slice(at, size) for at in range(0, 30, size))
            found = {name: rows(pump.table(name)) for name in pump.found}
            expected = expected or found
            assert found == expected, (seed, size)
    assert all(expected.values())


ODD_KEYS = {
    "floats": (
        pa.array([math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, None, None, 1.5]),
        {"nan": 2, "0.0": 2, "inf": 1, "-inf": 1, "None": 2, "1.5": 1},
    ),
    "texts": (pa.array([None, "", None, "a"]), {"None": 2, "''": 1, "'a'": 1}),
    "bytes": (
        pa.array([b"\xff\xfe", b"\xc3\x28", b"", b"\xff\xfe"]),
        {repr(b"\xff\xfe"): 2, repr(b"\xc3\x28"): 1, "b''": 1},
    ),
}


@pytest.mark.parametrize("window", [wp.tumbling(1000), wp.session(1000)], ids=["slices", "sessions"])
@pytest.mark.parametrize("case", ODD_KEYS)
@pytest.mark.parametrize("batches", [1, 4])
def test_row_35_odd_keys_are_grouped_as_spark_sql_groups_them(case, window, batches):
    keys, expected = ODD_KEYS[case]
    table = pa.table({"ts": pa.array(range(len(keys)), pa.int64()), "k": keys})
    pump = pushed(table, window, wp.count(), batches=batches, buckets=5, time="ts", keys="k")
    assert {repr(row["k"]): row["count"] for row in pump.table().to_pylist()} == expected


@pytest.mark.parametrize("window", [wp.tumbling(1000), wp.session(1000)], ids=["slices", "sessions"])
def test_row_35_long_texts(window):
    long = ["x" * 2**20, "x" * (2**20 - 1) + "y", "x" * 2**20]
    table = pa.table({"ts": pa.array(range(3), pa.int64()), "k": pa.array(long), "s": pa.array(long)})
    pump = pushed(table, window, wp.count(), wp.last("s"), batches=3, time="ts", keys="k", restart=True)
    assert {row["k"]: (row["count"], row["last_s"]) for row in pump.table().to_pylist()} == {
        long[0]: (2, long[0]),
        long[1]: (1, long[1]),
    }


@pytest.mark.parametrize("window", [wp.tumbling(10), wp.session(5), wp.rows(2)], ids=repr)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("batches", [1, 2])
def test_row_35_a_sum_beyond_int64_is_an_error(window, sign, batches):
    table = pa.table(
        {"ts": pa.array([0, 1], pa.int64()), "v": pa.array([sign * (2**63 - 1), sign * 2], pa.int64())}
    )
    with pytest.raises(Overflow, match=r"the sum of column 'v' is -?\d+ in some window, which does not fit"):
        pushed(table, window, wp.sum("v"), batches=batches, tasks=2, time="ts")


def test_row_35_odd_values_in_every_aggregate():
    values = [math.nan, 0.0, -0.0, math.inf, -math.inf, None, 1.0]
    blank = {"g": None, "p": 0, "i": None, "j": None, "w": 1.0, "s": "", "up": False, "down": False}
    found = [{**blank, "ts": i // 3, "k": None, "f": f, "seq": i} for i, f in enumerate(values)]
    for name, wanted in AGGREGATES.items():
        for window in (w.Sliding(2, 1), w.Session(1)):
            check_pumped(Case((window,), {name: wanted}, found, cuts=[4], delay=3))


def test_landmarks_end_alike_in_all_buckets():
    """They go on for ever, so the end of the whole stream says which is the last: regression."""
    table = pa.table({"ts": pa.array([0, 1, 50], pa.int64()), "k": ["a", "b", "c"]})
    for window in (wp.landmark(10), wp.last_rows(1, 10).per()):
        stream = wp.stream(table, time="ts", keys="k")
        whole = rows(stream.window(window).agg(wp.count()).run().table)
        for buckets in (1, 2, 7):
            pump = pushed(table, window, wp.count(), buckets=buckets, time="ts", keys="k")
            assert rows(pump.table()) == whole, (window, buckets)


@pytest.mark.parametrize("buckets", [1, 3])
def test_provisional_landmarks_are_alike_in_all_buckets(buckets):
    table = pa.table({"ts": pa.array([0, 1, 50, 3, 12], pa.int64()), "k": ["a", "b", "c", "a", "d"]})
    for window in (wp.landmark(10), wp.last_rows(1, 10).per()):
        stream = wp.stream(schema=table.schema, time="ts", keys="k", delay=100)
        query = stream.window(window).agg(wp.count(), emit="update")
        runner, pump = query.start(), Pump(query, buckets=buckets)
        for at in (0, 3):
            step = runner.push(table.slice(at, 3))
            assert rows(pump.push(table.slice(at, 3))["query"]) == rows(step.tables["query"])


def test_texts_are_counted_and_sketched_before_the_shuffle():
    """The partials hold no texts, so tasks fold the rows although they read a text column: regression."""
    table = events().select(["ts", "k", "v"]).append_column("s", [events()["k"].to_pylist()])
    wanted = (wp.count("s"), wp.approx_distinct("s"), wp.approx_quantile("v", 0.5))
    how = {"time": "ts", "keys": "k", "delay": "2 s"}
    pump = pushed(table, wp.tumbling("10 s"), *wanted, batches=3, **how)
    assert pump.parts[0].folded
    whole = wp.stream(table, **how).window(wp.tumbling("10 s")).agg(*wanted[:2]).run().table
    assert rows(pump.table().drop_columns("approx_quantile_v")) == rows(whole)


def test_one_hundred_thousand_keys_cost_no_more_calls_or_envelopes_than_one_hundred():
    rng = np.random.default_rng(0)
    sent, calls = {}, {}
    for keys in (100, 100_000):
        n = 200_000
        table = pa.table(
            {
                "ts": np.sort(rng.integers(0, 60, n)),
                "k": rng.permutation(n) % keys,
                "v": rng.integers(0, 9, n),
            }
        )
        query = wp.stream(schema=table.schema, time="ts", keys="k").window(
            wp.tumbling(10), wp.sliding(30, 10)
        )
        pump = Pump(query.agg(wp.count(), wp.sum("v")), buckets=4)
        pump.run(table.slice(at, 50_000) for at in range(0, n, 50_000))
        found = pump.table()
        tumbling = found.filter(pa.array(found["definition"].to_numpy() == 0))
        assert len(set(tumbling["k"].to_pylist())) == keys
        assert sum(tumbling["count"].to_pylist()) == n == pump.counts.kept
        assert sum(tumbling["sum_v"].to_pylist()) == int(table["v"].to_numpy().sum())
        sent[keys], calls[keys] = pump.envelopes, pump.calls
    assert sent[100_000] == sent[100]
    assert calls[100_000] == calls[100] == 4 * 5
    assert max(sent[100]) == 3 * (4 + 4)  # per task: a payload and what it saw, for each of four buckets
