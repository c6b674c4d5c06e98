"""Rows of the reliability matrix for the in-process runtime, in short counts."""

import math
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windowpane as wp
from tests.oracle import OracleQuery, answer
from tests.property.harness import Case, alike, batch_of, check
from tests.property.strategies import AGGREGATES, FEW_ORDERED, Shape, make_rows
from tests.reliability.boundaries import KEYS, boundaries, found_in
from windowpane.values import windows as w
from windowpane.values.errors import Overflow

DATA = Path(__file__).parents[3] / "shared" / "data"
SECOND = 1_000_000
WINDOWS = [
    w.Sliding(10, 4),
    w.Landmark(7),
    w.Cumulative(2, 10),
    w.Session(3),
    w.Rows(4, 2),
    w.Rows(3, 3, "time", ("k",)),
    w.PerRow(6, 2),
    w.LastRows(3, 5),
    w.Delimited(start="up"),
    w.Delimited(end="down"),
    w.Delimited(start="up", end="down"),
]


def data(name):
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not here; the data folder is beside the repository")
    return pq.read_table(path)


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_row_23_late_inside_the_bound(window):
    for seed in range(50):
        rows = make_rows(seed, 20, 8, Shape(odd=False))
        case = Case(
            (window,),
            {n: FEW_ORDERED[n] for n in ("count", "sum_i", "collect_i")},
            rows,
            delay=8,
            cuts=[5, 13],
        )
        check(case)
        assert case_counts(case).late == 0


def case_counts(case):
    runner = case.query().start()
    for batch in case.batches:
        runner.push(batch_of(batch))
    return runner.counts


@pytest.mark.parametrize("delay", [10, 60, 300])
def test_row_24_late_beyond_the_bound(delay):
    table = data("zeek_ssl").select(["seq", "ts", "orig_h"])
    time = table.column("ts").cast(pa.int64()).to_numpy()
    # a late row does not move the bound, but it lies below the running maximum anyway
    late = time < np.maximum.accumulate(time) - delay * SECOND
    stream = wp.stream(table, time="ts", keys="orig_h", delay=f"{delay} s")
    result = stream.window(wp.tumbling("1 min")).agg(wp.count()).run()
    assert result.counts.late == result.late.num_rows == late.sum() > 0
    assert result.late.column("seq").to_pylist() == table.column("seq").to_numpy()[late].tolist()
    assert result.counts.kept + result.counts.late == result.counts.input == len(time)
    assert result.counts.rejected == 0
    assert sum(result.table.column("count").to_pylist()) == result.counts.kept


def test_row_24_lateness_saves_the_rows_that_a_delay_loses():
    table = data("zeek_ssl").select(["seq", "ts", "orig_h"])
    stream = wp.stream(table, time="ts", keys="orig_h", delay="10 s", lateness="15 min")
    result = stream.window(wp.tumbling("1 min")).agg(wp.count()).run()
    assert result.counts.kept == table.num_rows
    latest = {}
    for row in result.table.to_pylist():
        latest[row["orig_h"], row["window"]["start"]] = row["count"]
    assert sum(latest.values()) == table.num_rows


def test_row_25_null_event_time():
    table = data("nyc_flights").select(["seq", "dep", "carrier"])
    stream = wp.stream(table, time="dep", keys="carrier", delay="12 h")
    result = stream.window(wp.tumbling("1 day")).agg(wp.count()).run()
    assert result.counts.rejects == {"null time": 8255}
    assert result.rejects.num_rows == 8255
    assert result.rejects.column("dep").null_count == 8255
    assert result.counts.late == 0
    assert sum(result.table.column("count").to_pylist()) == result.counts.kept == table.num_rows - 8255


def micros(*when):
    moment = datetime(*when, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (moment.days * 86400 + moment.seconds) * SECOND


@pytest.mark.parametrize("year", [2262, 9999])
@pytest.mark.parametrize("place", [0, 1, 777, 99_999])
@pytest.mark.parametrize("size", [100, 100_000])
def test_row_26_one_row_from_the_far_future(year, place, size):
    times = micros(2024, 1, 1) + np.arange(100_000) * SECOND
    times[place] = micros(year, 1, 1)
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "seq": np.arange(100_000)})
    stream = wp.stream(table.to_batches(max_chunksize=size), time="ts", delay="10 s")
    result = stream.window(wp.tumbling("1 hour")).agg(wp.count()).run()
    assert result.counts.rejects == {"too far ahead": 1}
    assert result.rejects.column("seq").to_pylist() == [place]
    assert result.counts.late == 0
    assert sum(result.table.column("count").to_pylist()) == 99_999


def test_row_27_times_before_1970_and_in_year_1_get_their_windows():
    times = [micros(1, 1, 1), micros(1, 1, 1, 0, 0, 59), micros(1969, 12, 31, 23, 59, 59), micros(1970, 1, 1)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))})
    result = wp.stream(table, time="ts", max_ahead=None).window(wp.tumbling("1 min")).agg(wp.count()).run()
    found = [(row["window"]["start"], row["count"]) for row in result.table.to_pylist()]
    assert found == [
        (datetime(1, 1, 1, tzinfo=UTC), 2),
        (datetime(1969, 12, 31, 23, 59, tzinfo=UTC), 1),
        (datetime(1970, 1, 1, tzinfo=UTC), 1),
    ]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_row_27_times_that_overflow_are_rejected_with_their_reason(unit):
    raw = np.array([0, 2**63 - 1, -(2**63) + 1, 60, -60], np.int64)
    table = pa.table({"ts": pa.array(raw, pa.timestamp(unit)), "seq": np.arange(5)})
    result = (
        wp.stream(table, time="ts", delay=10**12, max_ahead=None)
        .window(wp.tumbling("1 min"))
        .agg(wp.count())
        .run()
    )
    kept = sum(result.table.column("count").to_pylist())
    assert kept + result.counts.late + result.counts.rejected == 5
    if unit == "ns":  # 2262 and 1677 are times like any other
        assert result.counts.rejected == 0
    else:
        assert result.counts.rejects == {"time out of range": 2}
        assert sorted(result.rejects.column("seq").to_pylist()) == [1, 2]
        assert kept == 3


def test_row_31_ten_thousand_boundary_cases():
    """Each with three windows: rows at the ends of windows, exactly a gap apart, at one time, and alone."""
    kinds = Counter()
    for seed in range(10_000 // KEYS):
        cases = boundaries(seed)
        runner = cases.query().start()
        steps = [*(runner.push(batch) for batch in cases.batches()), runner.close()]
        assert runner.counts.kept == len(cases.rows)
        assert found_in(pa.concat_tables([runner.answers(step) for step in steps])) == cases.expected()
        kinds.update(cases.kinds() | {"cases": len(cases.cases())})
    assert kinds.pop("cases") == 10_000
    assert min(kinds.values()) > 2_000, kinds


def test_row_31_boundaries_of_windows_over_all_keys():
    """As above with windows that count the rows of all keys, which no two cases can share."""
    total = 0
    for seed in range(100):
        rng = random.Random(seed)
        size, slide = rng.randint(1, 6), rng.randint(1, 8)
        windows = (
            w.Sliding(size, slide, rng.randint(-5, 5)),
            w.Session(size),
            w.PerRow(size, rng.randint(1, 3)),
        )
        marks = [k * slide + d for k in range(-4, 5) for d in (0, size, -1)] + [
            k * size for k in range(-4, 5)
        ]
        rows = edge_rows(rng, marks)
        delay = max(max((r["ts"] for r in rows[:i]), default=r["ts"]) - r["ts"] for i, r in enumerate(rows))
        wanted = {"count": AGGREGATES["count"], "first_i": AGGREGATES["first_i"]}
        case = Case(windows, wanted, rows, delay=max(delay, 0), cuts=[rng.randint(0, len(rows))])
        check(case)
        total += len(windows) * len(rows)
    assert total >= 1_000, f"only {total} (window, row) cases"


def edge_rows(rng, marks):
    blank = dict.fromkeys(("g", "f", "w", "s"))
    times = [rng.choice(marks) for _ in range(rng.randint(4, 8))]
    return [
        {
            **blank,
            "ts": t,
            "k": rng.choice("ab"),
            "p": 0,
            "i": rng.randint(0, 9),
            "j": 1,
            "up": False,
            "down": False,
            "seq": i,
        }
        for i, t in enumerate(times)
    ]


def test_row_31_two_rows_exactly_a_gap_apart_are_one_session():
    def sessions(*times):
        table = pa.table({"ts": pa.array(times, pa.int64())})
        result = wp.stream(table, time="ts").window(wp.session(10)).agg(wp.count()).run()
        return [(r["window"]["start"], r["window"]["end"], r["count"]) for r in result.table.to_pylist()]

    assert sessions(0, 10) == [(0, 20, 2)]
    assert sessions(0, 11) == [(0, 10, 1), (11, 21, 1)]


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_row_34_any_order_and_any_batches_give_the_same_answers(window):
    rows = make_rows(34, 30, 0, Shape(odd=False))
    wanted = {name: FEW_ORDERED[name] for name in ("count", "sum_i", "last_s", "collect_i")}
    expected = None
    for seed in range(50):
        shuffled = random.Random(seed).sample(rows, len(rows))
        for size in (1, 2, 7, 15, 30):
            case = Case((window,), wanted, shuffled, delay=10**6, cuts=range(size, 30, size), ties=None)
            found = run_sorted(case)
            expected = found if expected is None else expected
            assert found == expected


def run_sorted(case):
    runner = case.query().start()
    steps = [runner.push(batch_of(batch)) for batch in case.batches]
    rows = [row for step in [*steps, runner.close()] for row in runner.answers(step).to_pylist()]
    return sorted(rows, key=repr)


def run_by(key, values, kind, *aggregates, more=None):
    table = pa.table(
        {"ts": pa.array(range(len(values)), pa.int64()), key: pa.array(values, kind), **(more or {})}
    )
    return wp.stream(table, time="ts", keys=key).window(wp.tumbling(1000)).agg(*aggregates).run()


def test_row_35_odd_float_keys_group_as_in_spark_sql():
    values = [math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, None, None, 1.5]
    result = run_by("k", values, pa.float64(), wp.count())
    found = {repr(row["k"]): row["count"] for row in result.table.to_pylist()}
    assert found == {"nan": 2, "0.0": 2, "inf": 1, "-inf": 1, "None": 2, "1.5": 1}


def test_row_35_null_and_empty_text_are_different_keys():
    result = run_by("k", [None, "", None, "a"], pa.string(), wp.count())
    assert {row["k"]: row["count"] for row in result.table.to_pylist()} == {None: 2, "": 1, "a": 1}


def test_row_35_long_text():
    long = ["x" * 2**20, "x" * (2**20 - 1) + "y", "x" * 2**20]
    result = run_by("k", long, pa.string(), wp.count(), wp.last("s"), more={"s": pa.array(long)})
    assert {row["k"]: (row["count"], row["last_s"]) for row in result.table.to_pylist()} == {
        long[0]: (2, long[0]),
        long[1]: (1, long[1]),
    }


def test_row_35_bytes_that_are_no_utf8():
    bad = [b"\xff\xfe", b"\xc3\x28", b"", b"\xff\xfe"]
    as_text = pa.array(bad, pa.binary()).view(pa.string())
    result = run_by("k", bad, pa.binary(), wp.count(), wp.distinct("s"), wp.collect("s"), more={"s": as_text})
    table = result.table
    assert dict(zip(table["k"].to_pylist(), table["count"].to_pylist(), strict=True)) == {
        bad[0]: 2,
        bad[1]: 1,
        b"": 1,
    }
    texts = table["collect_s"].combine_chunks()
    assert texts.flatten().cast(pa.binary()).to_pylist() == [bad[0], bad[0], bad[1], b""]


def test_row_35_text_keys_that_are_no_utf8():
    bad = [b"\xff\xfe", b"\xc3\x28", b"\xff\xfe"]
    keys = pa.array(bad, pa.binary()).view(pa.string())
    table = pa.table({"ts": pa.array([0, 1, 2], pa.int64()), "k": keys})
    result = (
        wp.stream(table, time="ts", keys="k")
        .window(wp.tumbling(10))
        .agg(wp.count(), wp.top_k("k", 2))
        .run()
        .table
    )
    assert dict(zip(result["k"].cast(pa.binary()).to_pylist(), result["count"].to_pylist(), strict=True)) == {
        bad[0]: 2,
        bad[1]: 1,
    }


@pytest.mark.parametrize(
    "window", [wp.tumbling(10), wp.sliding(10, 2), wp.session(5), wp.rows(2), wp.per_row(5)], ids=repr
)
@pytest.mark.parametrize("sign", [1, -1])
def test_row_35_a_sum_beyond_int64_is_an_error(window, sign):
    table = pa.table(
        {"ts": pa.array([0, 1], pa.int64()), "v": pa.array([sign * (2**63 - 1), sign * 2], pa.int64())}
    )
    query = wp.stream(table, time="ts").window(window).agg(wp.sum("v"))
    with pytest.raises(
        Overflow, match=r"the sum of column 'v' is -?\d+ in some window, which does not fit int64"
    ):
        query.run()


def test_row_35_sums_that_leave_int64_on_the_way_and_return_are_right():
    table = pa.table(
        {"ts": pa.array([0, 1, 2], pa.int64()), "v": pa.array([2**63 - 1, 2**63 - 1, -(2**63)], pa.int64())}
    )
    result = wp.stream(table, time="ts").window(wp.tumbling(10)).agg(wp.sum("v"), wp.mean("v")).run()
    assert result.table["sum_v"].to_pylist() == [2**63 - 2]
    assert result.table["mean_v"].to_pylist() == [(2**63 - 2) / 3]


def test_row_35_odd_values_in_every_aggregate():
    values = [math.nan, 0.0, -0.0, math.inf, -math.inf, None, 1.0]
    blank = {"g": None, "p": 0, "i": None, "j": None, "w": 1.0, "s": "", "up": False, "down": False}
    rows = [{**blank, "ts": i // 3, "k": None, "f": f, "seq": i} for i, f in enumerate(values)]
    for name, wanted in AGGREGATES.items():
        check(Case((w.Sliding(2, 1), w.Session(1)), {name: wanted}, rows, cuts=[4]))


def test_the_oracle_and_the_runtime_agree_on_real_sessions():
    table = data("wikiticker").select(["ts", "user", "seq"]).slice(0, 3000)
    rows = table.cast(
        pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "seq": pa.int64()})
    ).to_pylist()
    ints = [{**r, "ts": int(t)} for r, t in zip(rows, table["ts"].cast(pa.int64()).to_pylist(), strict=True)]
    result = (
        wp.stream(table, time="ts", keys="user", delay="1 min")
        .window(wp.session("5 min"))
        .agg(wp.count())
        .run()
    )
    expected = answer(OracleQuery(wp.session("5 min"), {"count": ("count",)}, ("user",)), ints)
    window = result.table["window"].combine_chunks()
    starts, ends = (window.field(n).cast(pa.int64()).to_pylist() for n in ("start", "end"))
    found = {
        ((user,), start, end): {"count": n}
        for user, start, end, n in zip(
            result.table["user"].to_pylist(), starts, ends, result.table["count"].to_pylist(), strict=True
        )
    }
    assert found.keys() == expected.keys()
    assert all(alike(found[at], expected[at]) for at in expected)
