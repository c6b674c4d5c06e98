"""What a user cannot have meant is refused where it is said, in windowpane's own words."""

import datetime as dt
import math
import pickle
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import BadQuery, BadWindow, OutOfMemory, UnknownColumn, WrongType
from windowpane.simulate.overload import Arrivals, arrivals, simulate, two_class, uniform, zipf

SCHEMA = pa.schema({"k": pa.int64(), "v": pa.int64()})
UPDATES = wp.Updates("k", "t")
ROWS = pa.table({"k": [1, 1], "t": [1, 2], "v": [1, 2]})


def twice(name, rows=ROWS):
    return rows.append_column(name, rows[name])


@pytest.mark.parametrize("key", [5, [1, 2], ["k", None], b"k", (name for name in "k")])
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_a_key_of_a_queue_is_named_by_texts(key, schema):
    with pytest.raises(BadQuery, match=r"names no column\. Give a column, several, or a function"):
        wp.UpdateQueue(key, schema=schema)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wp.Updates(5, "t"), r"key=5 names no column\. Give a name, or a list of names"),
        (lambda: wp.Updates(["k", 5], "t"), r"key=\['k', 5\] names no column"),
        (lambda: wp.Updates("k", None), r"time=None names no column\. Give the name of that of event time"),
        (lambda: UPDATES.window(1, by=5), r"by=5 names no column\. Give a name"),
        (lambda: UPDATES.window(1, foo=3), r"window\(\) has no option 'foo'\. There are by, commit, policy,"),
        (lambda: UPDATES.join(3, on="v"), r"on='v' cannot be called\. Give a function of the left and the"),
        (lambda: UPDATES.filter(ROWS, 5), r"keep=5 cannot be called\. Give a function of the rows"),
        (lambda: UPDATES.map(ROWS, 5), r"function=5 cannot be called\. Give a function of the rows"),
        (lambda: wp.UpdateQueue("k", schema=SCHEMA, memory="x"), r"'x' is no size\. Write '64 MB'"),
        (lambda: wp.UpdateQueue("k", schema=SCHEMA, memory=10), r"memory=10 is less than a page\. .* 4,096"),
        (lambda: wp.UpdateQueue("k", memory="1 MB"), r"memory='1 MB' is for tuples in pages, .* `schema`"),
        (lambda: UPDATES.window(1, memory=10).agg(wp.count()), r"memory=10 is less than a page\. Give at"),
    ],
)
def test_what_names_no_column_option_function_or_size_is_refused(make, message):
    with pytest.raises(BadQuery, match=message):
        make()


@pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf, [1.0, 2.0], [1.0, 1.0, -1.0]])
def test_what_a_simulated_tuple_costs_is_a_time(cost):
    with pytest.raises(BadQuery, match=r"cost=.* give a time of at least 0, or one for each of the 3 keys"):
        simulate("freshest", arrivals(uniform(3), 10), cost)


@pytest.mark.parametrize("shares", [[], [0, 0], [1, -2], [1, math.nan], ["a"], "a", 5, [[1]]])
def test_what_is_no_share_of_updates_is_refused(shares):
    with pytest.raises(
        BadQuery, match=r"the shares of keys are .*\. Give a number for each, .* uniform\(10\)"
    ):
        arrivals(shares, 10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: arrivals(uniform(3), -1), "updates=-1: give a whole number from 0 on"),
        (lambda: arrivals(uniform(3), 1.5), "updates=1.5: give a whole number from 0 on"),
        (
            lambda: arrivals(uniform(3), 10, pattern="rare"),
            r"pattern='rare': .*\. Use random, even, regular, ",
        ),
        (lambda: uniform(0), "keys=0: give a whole number from 1 on"),
        (lambda: zipf("ten", 0.9), "keys='ten': give a whole number from 1 on"),
        (lambda: zipf(10, "much"), r"theta='much' is no number\. Give 0 for keys that are alike"),
        (lambda: two_class(2.5, 1), r"keys=2\.5: give a whole number from 1 on"),
        (
            lambda: simulate("fifo", arrivals(uniform(3), 10), "1 ms"),
            "cost='1 ms': give a time of at least 0",
        ),
    ],
)
def test_what_makes_no_simulated_stream_says_why(make, message):
    with pytest.raises(BadQuery, match=message):
        make()


@pytest.mark.parametrize(
    ("times", "ids", "message"),
    [
        ([0.0, 1.0], [0, 3], r"key 3 is none of 3\. Number them from 0 on"),
        ([0.0, 1.0], [-1, 0], "key -1 is none of 3"),
        ([0.0, 1.0], [0], "a whole number as the key of each of the 2 updates"),
        ([0.0, 1.0], ["IBM", "GM"], "a whole number as the key of each of the 2 updates"),
        ([1.0, 0.5], [0, 0], "times as numbers from 0 on, in arrival order"),
        ([-1.0, 0.5], [0, 0], "times as numbers from 0 on"),
        ([0.0, math.nan], [0, 0], "times as numbers from 0 on"),
        (["now"], [0], "times as numbers from 0 on"),
    ],
)
def test_a_recorded_stream_that_is_none_is_refused(times, ids, message):
    with pytest.raises(BadQuery, match=message):
        Arrivals(times, ids, 3)


def test_a_recorded_stream_may_be_lists():
    kept = simulate("append", Arrivals([0, 1, 2], [0, 1, 0], 2), cost=0.5).staleness
    assert kept.application.tolist() == [0.0625, 0.0625]
    assert simulate("append", Arrivals([], [], 2), cost=0.5).updates.tolist() == [0, 0]


def test_skew_may_be_a_whole_number_of_either_sign():
    assert zipf(2, 1).tolist() == [2 / 3, 1 / 3]
    assert zipf(2, -1).tolist() == [1 / 3, 2 / 3]


@pytest.mark.parametrize("schema", [["k"], {"k": pa.int64()}])
def test_a_schema_is_one_of_pyarrow(schema):
    with pytest.raises(WrongType, match=r"schema=.* is a (list|dict)\. Give the .* as a pyarrow\.schema"):
        wp.UpdateQueue("k", schema=schema)
    with pytest.raises(BadQuery, match=r"the schema has 2 columns 'k'\. Rename all but one"):
        wp.UpdateQueue("k", schema=pa.schema([("k", pa.int64()), ("k", pa.int64())]))


@pytest.mark.parametrize("memory", [10**15, 10**30, "900 TB"])
def test_memory_that_no_machine_has_is_refused(memory):
    with pytest.raises(OutOfMemory, match=r"memory=.* cannot be set aside here: .*\. Give less"):
        wp.UpdateQueue("k", schema=SCHEMA, memory=memory)
    with pytest.raises(OutOfMemory, match="Give less"):
        UPDATES.window(1, memory=memory).agg(wp.count())


@pytest.mark.parametrize(
    "make",
    [
        lambda clock: wp.UpdateQueue("k", clock=clock),
        lambda clock: UPDATES.window(1, clock=clock).agg(wp.count()),
        lambda clock: UPDATES.union(clock=clock).push(ROWS),
        lambda clock: UPDATES.join(3, clock=clock).push(ROWS, ROWS),
    ],
)
def test_a_clock_tells_seconds(make):
    with pytest.raises(BadQuery, match=r"clock=5 cannot be called\. Give a .* such as time\.perf_counter"):
        make(5)
    for wrong in (math.nan, math.inf, "a", None, Decimal(3)):
        with pytest.raises(BadQuery, match=r"the clock says .*, which is no time\. Give a function"):
            make(lambda wrong=wrong: wrong)
    for right in (lambda: 3, lambda: np.float32(3.0), time.time):
        make(right)


def test_a_clock_that_fails_changes_nothing():
    times = [0.0, 0.0]
    queue = wp.UpdateQueue("k", "in_place", clock=lambda: times[0])
    queue.put({"k": 1})
    queue.get()
    times[0] = math.nan
    for act in (lambda: queue.put({"k": 2}), queue.get, queue.done, queue.staleness):
        with pytest.raises(BadQuery, match="the clock says nan"):
            act()
    times[0] = 2.0
    queue.done()  # what was got is still on its way
    assert queue.staleness().application.tolist() == [1.0]
    assert queue.staleness().keys == (1,)


@pytest.mark.parametrize("options", [{}, {"schema": SCHEMA}])
def test_what_is_no_batch_is_refused(options):
    queue = wp.UpdateQueue("k", **options)
    for wrong in (5, None, 1.5, {"k": 1, "v": 2}, {"k": [1], "v": [2]}):
        with pytest.raises(WrongType, match=r"the tuples are a .*\. Give .* put\(\) takes a single one"):
            queue.put_batch(wrong)
    for table in (ROWS, ROWS.to_pandas(), ROWS.to_batches()[0]):
        with pytest.raises(
            WrongType, match=r"a tuple is a .*\. put_batch\(\) takes tables\. Put mappings, or"
        ):
            queue.put(table)
    with pytest.raises(
        WrongType, match=r"the DataFrame does not form columns of one type each: .*Give every"
    ):
        queue.put_batch(pd.DataFrame({"k": [1, "a"], "v": [1, 2]}))
    with pytest.raises(WrongType, match="the DataFrame does not form columns"):
        queue.put_batch(pd.DataFrame([[1, 2]], columns=["k", "k"]))
    for name in ("k", "v"):
        for rows in (
            twice(name, ROWS.drop_columns(["t"])),
            twice(name, ROWS.drop_columns(["t"])).to_batches()[0],
        ):
            with pytest.raises(BadQuery, match=rf"the table has 2 columns '{name}'\. Rename all but one"):
                queue.put_batch(rows)
    with pytest.raises(UnknownColumn, match="the table has no column 'k'"):
        queue.put_batch(pa.table({"v": [1]}))
    assert len(queue) == 0


def test_a_function_as_the_key_gets_no_rows_that_lack_a_column():
    with pytest.raises(BadQuery, match="the table has 2 columns 'v'"):
        wp.UpdateQueue(lambda row: row["k"]).put_batch(twice("v"))


def test_two_columns_of_one_name_are_refused_by_every_operator():
    for name in ("k", "t"):
        for act in (
            lambda rows: UPDATES.filter(rows, lambda r: [True] * len(r)),
            lambda rows: UPDATES.map(rows, lambda r: r),
            lambda rows: UPDATES.union().push(rows),
            lambda rows: UPDATES.join(3).push(ROWS, rows),
            lambda rows: UPDATES.window("1 s").agg(wp.sum("v")).put(rows),
        ):
            with pytest.raises(BadQuery, match=f"has? .*2 columns '{name}'"):
                act(twice(name))
        with pytest.raises(BadQuery, match=rf"what map made has 2 columns '{name}'\. Rename all but one"):
            UPDATES.map(ROWS, lambda r, name=name: twice(name, r))
    with pytest.raises(BadQuery, match="input 2 of the union has 2 columns 'v'"):
        UPDATES.union().push(ROWS, twice("v"))
    with pytest.raises(BadQuery, match="the table has 2 columns 'v'"):
        UPDATES.window(2).agg(wp.sum("v")).put(twice("v"))
    unused = UPDATES.window(2).agg(wp.count())
    unused.put(twice("v"))
    assert unused.get()["count"].to_pylist() == [2]


@pytest.mark.parametrize("span", [(True, True), (1.5, 1), (3, False), (None, 1), (np.float64(3), 1)])
def test_a_window_is_as_long_as_a_number_of_rows_or_a_time(span):
    with pytest.raises(BadWindow, match=r"is no length\. Give a number of rows, or '10 s'"):
        UPDATES.window(*span).agg(wp.count())


@pytest.mark.parametrize("window", [wp.sliding("10 s", "1 s"), wp.tumbling("1 min"), wp.session("1 min")])
def test_a_window_of_a_query_is_none_of_updates(window):
    with pytest.raises(
        BadWindow, match=r"takes a size and a slide, not a window\. Give them, as in window\('10"
    ):
        UPDATES.window(window).agg(wp.count())


@pytest.mark.parametrize("span", [(2**64, 1), (1, 2**64), (2**61 + 1, 1), (dt.timedelta.max, "1 s")])
def test_a_window_is_no_longer_than_times_are(span):
    with pytest.raises(BadWindow, match=rf"(size|slide) is .* at most {2**61}\. Give a smaller one"):
        UPDATES.window(*span).agg(wp.count())
    UPDATES.window(2**61, 2**61).agg(wp.count()).put(ROWS)


def test_whole_numbers_of_numpy_are_numbers_of_rows():
    fresh = UPDATES.window(np.int64(2), np.uint8(1)).agg(wp.sum("v"))
    fresh.put(ROWS)
    assert fresh.get(np.int32(9))["sum_v"].to_pylist() == [3]


@pytest.mark.parametrize("rows", [2.5, "x", None, True])
def test_a_number_of_rows_to_process_is_a_whole_number(rows):
    fresh = UPDATES.window(2).agg(wp.sum("v"))
    fresh.put(ROWS)
    with pytest.raises(BadQuery, match=r"get\(.*\) does not say how many rows to process\. Give a whole"):
        fresh.get(rows)
    assert fresh.get(2**70)["sum_v"].to_pylist() == [3]


@pytest.mark.parametrize("bound", [3.5, "1970", None, True, np.datetime64("NaT")])
def test_a_bound_that_promises_nothing_is_refused(bound):
    fresh = UPDATES.window("1 us").agg(wp.count())
    for _ in range(2):
        with pytest.raises(BadQuery, match=r"the bound is .*\. Give a datetime, a date, or a whole number"):
            fresh.punctuate(bound)
        fresh.put(ROWS)


@pytest.mark.parametrize("bound", [3, 2**70, np.int64(3), np.datetime64(3, "us"), pd.Timestamp(3, unit="us")])
def test_a_bound_may_be_of_any_class_and_size(bound):
    fresh = UPDATES.window("1 us").agg(wp.sum("v"))
    fresh.put(ROWS)
    fresh.punctuate(-(2**70))
    fresh.punctuate(bound)
    assert fresh.get()["sum_v"].to_pylist() == [2]
    assert fresh.put(ROWS) == 2


def test_a_stream_that_is_idle_from_the_start_may_be_punctuated():
    fresh = UPDATES.window("10 us", "10 us").agg(wp.sum("v"))
    fresh.punctuate(2)
    fresh.punctuate(1)
    fresh = pickle.loads(pickle.dumps(fresh))  # noqa: S301 - our own bytes
    assert fresh.put(ROWS) == 1  # the row before the bound
    fresh.put(pa.table({"k": range(40), "t": [1] * 40, "v": [1] * 40}))
    assert fresh.staleness().late == 41
    fresh.punctuate(10)
    assert fresh.get()["sum_v"].to_pylist() == [2]
    with pytest.raises(BadQuery, match=r"have no punctuation\. Use windows of event time"):
        UPDATES.window(3).agg(wp.count()).punctuate(3)


def test_a_key_of_another_type_is_told_without_a_stream():
    with pytest.raises(WrongType, match=r"column 'k' has type bool, but int64 .*before its rows are given"):
        wp.UpdateQueue("k", schema=SCHEMA).put_batch(pa.table({"k": [True], "v": [1]}))


@pytest.mark.parametrize("unknown", ["unknown", None, (1, 2), True])
def test_the_staleness_of_a_key_that_is_not_known_cannot_be_asked_for(unknown):
    queue = wp.UpdateQueue("k", clock=lambda: 1.0)
    queue.put_batch([{"k": "a"}, {"k": 1}])
    with pytest.raises(BadQuery, match=r"no key .* is known: .*\. Give one of `keys`") as found:
        queue.staleness().of(unknown)
    assert repr(unknown) in str(found.value)
    assert queue.staleness().of("a") == queue.staleness().of(1.0) == 0.0
