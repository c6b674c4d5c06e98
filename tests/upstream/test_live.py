"""The queue between a producer and a consumer in one process."""

import datetime as dt
import queue as standard
import random
import threading
import time

import pandas as pd
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import BadQuery, QueueClosed, UnknownColumn, WrongType
from windowpane.local.waiting import WaitingObjects

UPDATE = ["fifo", "in_place", "linecutting", "freshest"]
ALL = ["append", "shed", "switch", *UPDATE]


class Clock:
    """Time that passes when a test says so."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def ticks(*rows):
    return [dict(zip(("symbol", "price"), row, strict=True)) for row in rows]


def drain(queue):
    queue.close()
    return list(queue)


def test_a_newer_tuple_overwrites_the_older_of_its_key():
    queue = wp.UpdateQueue("symbol", "in_place")
    for row in ticks(("IBM", 24), ("GM", 9), ("IBM", 25)):
        queue.put(row)
    assert len(queue) == 2
    assert drain(queue) == ticks(("IBM", 25), ("GM", 9))
    freshness = queue.staleness()
    assert (freshness.puts, freshness.gets, freshness.lost, freshness.waiting) == (3, 2, 1, 0)


@pytest.mark.parametrize(
    "shape",
    [
        lambda rows: rows,
        iter,
        pa.Table.from_pylist,
        pa.RecordBatch.from_pylist,
        pd.DataFrame,
        lambda rows: pa.table({"symbol": pa.array([r["symbol"] for r in rows]).dictionary_encode(),
                               "price": [r["price"] for r in rows]}),
    ],
    ids=["list", "iterator", "table", "batch", "pandas", "dictionary"],
)  # fmt: skip
@pytest.mark.parametrize("policy", ["append", "fifo", "in_place"])
def test_batches_of_any_shape_are_as_good_as_single_tuples(policy, shape):
    rows = ticks(("a", 1), ("b", 2), ("a", 3), (None, 4), ("c", 5), ("b", 6), (None, 7))
    one, many = wp.UpdateQueue("symbol", policy), wp.UpdateQueue("symbol", policy)
    for row in rows:
        one.put(row)
    many.put_batch(shape(rows[:4]))
    many.put_batch(shape(rows[4:]))
    assert drain(many) == drain(one)


def test_keys_of_several_columns_and_of_functions():
    rows = [{"symbol": s, "exchange": e, "n": n} for n, (s, e) in enumerate(["aX", "aY", "bX", "aX"])]
    by_columns = wp.UpdateQueue(["symbol", "exchange"], "in_place")
    by_columns.put_batch(pa.Table.from_pylist(rows))
    assert by_columns.staleness().keys == (("a", "X"), ("a", "Y"), ("b", "X"))
    by_function = wp.UpdateQueue(lambda row: row["symbol"] + row["exchange"], "in_place")
    by_function.put_batch(pa.Table.from_pylist(rows))
    assert drain(by_columns) == drain(by_function) == [rows[3], rows[1], rows[2]]
    words = wp.UpdateQueue(str.lower, "fifo")
    words.put_batch(["Ha", "b", "hA"])
    assert drain(words) == ["b", "hA"]


def test_nan_is_one_key():
    queue = wp.UpdateQueue("k", "in_place")
    for n in range(3):
        queue.put_batch(pa.table({"k": [float("nan")], "n": [n]}))
    assert [row["n"] for row in drain(queue)] == [2]


def test_staleness_follows_the_clock(clock):
    queue = wp.UpdateQueue("k", "in_place", clock=clock)
    queue.put({"k": 1})
    clock.now += 2
    queue.get()  # waited 2
    clock.now += 1
    queue.put({"k": 1})  # one unit before the first result is delivered
    clock.now += 1
    queue.done()
    clock.now += 6
    # Application: a ramp to 4 until the delivery, then from 1 to 7. Queue: to 2, then 0, then to 7.
    found = queue.staleness()
    assert found.of(1) == pytest.approx((8 + 24) / 10)
    assert found.average_application == found.of(1)
    assert found.average_queue == pytest.approx((2 + 24.5) / 10)


@pytest.mark.parametrize("policy", ALL)
def test_a_clock_that_is_set_back_is_one_that_stood(policy):
    def played(back):
        clock, got = Clock(), []
        queue = wp.UpdateQueue("k", policy, clock=clock)
        for n in range(1_500):
            clock.now += 1 / 128 if n != 800 else -back
            queue.put({"k": n % 7, "n": n})
            got += [queue.get()["n"]] if n % 2 else []
        return got, queue.staleness().application.tolist()

    assert played(3_600.0) == played(0.0)


def test_the_cost_is_measured_from_one_get_to_the_next(clock):
    queue = wp.UpdateQueue("k", cost=1.0, clock=clock)
    for k, cost in ((1, 5.0), (2, 0.01)):
        queue.put({"k": k})
        queue.get()
        clock.now += cost
        queue.done()
    queue.put_batch([{"k": 1}, {"k": 2}])
    clock.now += 1
    assert [row["k"] for row in queue.get_batch(2)] == [2, 1]


def test_a_timeout_and_the_end():
    queue = wp.UpdateQueue("k")
    with pytest.raises(standard.Empty):
        queue.get(timeout=0.01)
    queue.put({"k": 1})
    queue.close()
    with pytest.raises(QueueClosed, match="nothing more can be put"):
        queue.put({"k": 2})
    assert queue.get_batch(10) == [{"k": 1}]
    with pytest.raises(QueueClosed, match="everything in it was got"):
        queue.get()


def test_what_cannot_be_put_says_why():
    queue = wp.UpdateQueue("symbol")
    with pytest.raises(WrongType, match=r"a tuple is a int, but the key 'symbol' is a column\. Put mappings"):
        queue.put(5)
    with pytest.raises(UnknownColumn, match="the tuple has no column 'symbol'; it has symbl"):
        queue.put({"symbl": 1})
    with pytest.raises(UnknownColumn, match="the table has no column 'symbol'"):
        queue.put_batch(pa.table({"x": [1]}))
    with pytest.raises(BadQuery, match=r"there is no policy 'newest'\..* freshest; or switch, where a"):
        wp.UpdateQueue("symbol", "newest")
    assert len(queue) == 0


def test_freshness_is_told_in_a_line_and_by_the_stalest_keys(clock):
    queue = wp.UpdateQueue("k", "in_place", clock=clock)
    for k in ("a", "b", "b", "c"):
        queue.put({"k": k})
        clock.now += 1.0
    assert queue.get()["k"] == "a"
    queue.done()
    freshness = queue.staleness()
    assert str(freshness) == "4 put, 1 got, 1 lost, 2 waiting; 3 keys, 1.08 s behind on average"
    assert freshness.stalest(2) == [("a", 2.0), ("b", 1.125)]
    assert [key for key, _ in freshness.stalest()] == ["a", "b", "c"]
    assert wp.UpdateQueue("k").staleness().stalest() == []
    with pytest.raises(BadQuery, match=r"most=0, but what is got is at least one key\. Give a number from 1"):
        freshness.stalest(0)


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0, None, "soon", "-1 s"])
def test_a_cost_by_which_keys_would_starve_is_refused(cost):
    with pytest.raises(
        BadQuery, match=rf"cost={cost!r}, but .* Give seconds or a text .* at least 0 and not"
    ):
        wp.UpdateQueue("k", cost=cost)


@pytest.mark.parametrize("forget", [float("nan"), 0, -1, None, "long", "0 s"])
def test_a_time_after_which_no_key_is_known_is_refused(forget):
    with pytest.raises(
        BadQuery, match=rf"forget={forget!r}, but .* Give seconds or a text such as '2 h', above 0"
    ):
        wp.UpdateQueue("k", forget=forget)


@pytest.mark.parametrize("behind", [float("nan"), 0, None])
def test_work_that_may_wait_must_be_some(behind):
    with pytest.raises(BadQuery, match=rf"behind={behind!r}: give the seconds of work that may wait"):
        wp.UpdateQueue("k", "switch", behind=behind)


def test_lengths_of_time_may_be_texts(clock):
    queue = wp.UpdateQueue("k", "switch", cost="500 ms", behind="2 s", forget="1 h", clock=clock)
    queue.put_batch([{"k": "a"}] * 4)
    assert queue.policy == "append"
    queue.put({"k": "a"})
    assert queue.policy == "freshest"
    queue.get(timeout="1 s")
    with pytest.raises(standard.Empty):
        queue.get(timeout=dt.timedelta(milliseconds=1))
    for seconds, known in ((3599, {"a", "b"}), (2, {"b"})):
        clock.now += seconds
        queue.put({"k": "b"})
        queue.get()
        assert set(queue.staleness().keys) == known


def test_a_cost_of_0_is_a_guess_like_any_other(clock):
    queue = wp.UpdateQueue("k", cost=0, forget=float("inf"), clock=clock)
    got = []
    for n in range(700):
        clock.now += 0.001
        queue.put({"k": n % 7})
        got += [queue.get()["k"]] if n % 3 == 0 else []
    assert min(got.count(k) for k in range(7)) > 20


@pytest.mark.parametrize("timeout", [float("inf"), 1e10, 10**400, None])
def test_a_timeout_may_be_as_long_as_one_likes(timeout):
    queue = wp.UpdateQueue("k")
    threading.Timer(0.05, lambda: queue.put({"k": 1})).start()
    assert queue.get(timeout=timeout) == {"k": 1}
    queue.close()
    with pytest.raises(QueueClosed):
        queue.get(timeout=timeout)


@pytest.mark.parametrize("timeout", [-1, 0, -float("inf")])
def test_without_time_to_wait_an_empty_queue_says_so(timeout):
    with pytest.raises(standard.Empty):
        wp.UpdateQueue("k").get(timeout=timeout)


@pytest.mark.parametrize("timeout", [float("nan"), "1", True, [1]])
def test_a_timeout_that_is_no_time_is_refused(timeout):
    queue = wp.UpdateQueue("k")
    queue.put({"k": 1})
    with pytest.raises(
        BadQuery, match=r"timeout=.*: give the seconds to wait or a text such as '5 s'; None waits"
    ):
        queue.get(timeout=timeout)
    assert len(queue) == 1


@pytest.mark.parametrize("most", [0, -1, 1.5, None])
def test_less_than_one_tuple_cannot_be_asked_for(most):
    queue = wp.UpdateQueue("k")
    queue.put({"k": 1})
    with pytest.raises(
        BadQuery, match=rf"most={most!r}, but .* at least one tuple\. Give a number from 1 on"
    ):
        queue.get_batch(most)
    assert queue.get_batch(1) == [{"k": 1}]


def test_a_key_that_cannot_be_found_again_is_refused_and_nothing_is_put():
    queue, two = wp.UpdateQueue("k"), wp.UpdateQueue(["a", "b"])
    with pytest.raises(WrongType, match=r"column 'k' of the key is \[1\], a list, .* Use numbers, texts"):
        queue.put_batch([{"k": 1}, {"k": [1]}])
    with pytest.raises(WrongType, match=r"column 'b' of the key is \{\}, a dict"):
        two.put({"a": 1, "b": {}})
    with pytest.raises(WrongType, match=r"the key that the function gave is \[5\]"):
        wp.UpdateQueue(lambda item: [item]).put(5)
    for values, kind in (([[1]], "list<.*>"), ([{"a": 1}], "struct<.*>")):
        with pytest.raises(WrongType, match=rf"by the key 'k' \({kind}\) no key .* Cast to numbers"):
            queue.put_batch(pa.table({"k": values}))
    assert len(queue) == len(two) == 0


@pytest.mark.parametrize("key", [[], (), None])
@pytest.mark.parametrize("schema", [None, pa.schema({"k": pa.string()})])
def test_a_key_needs_a_column(key, schema):
    with pytest.raises(BadQuery, match=r"names no column\. Give a column, several, or a function"):
        wp.UpdateQueue(key, schema=schema)


def test_memory_may_be_a_text():
    schema = pa.schema({"k": pa.string(), "v": pa.int64()})
    queue = wp.UpdateQueue("k", schema=schema, memory="8 KiB")
    queue.put({"k": "a", "v": 1})
    assert queue.get() == {"k": "a", "v": 1}
    with pytest.raises(BadQuery, match=r"'8 pages' is no size\. Write '64 MB'"):
        wp.UpdateQueue("k", schema=schema, memory="8 pages")


@pytest.mark.parametrize("policy", ALL)
def test_a_put_that_a_signal_interrupts_once_its_tuples_wait_leaves_them_to_be_got(policy):
    queue = wp.UpdateQueue("k", policy)
    queue.put({"k": 1})
    enqueue = queue._enqueue

    def interrupted(*args):
        enqueue(*args)
        raise TimeoutError

    queue._enqueue = interrupted
    with pytest.raises(TimeoutError):
        queue.put({"k": 2})
    queue._enqueue = enqueue
    queue.put({"k": 3})
    assert sorted(row["k"] for row in drain(queue)) == [1, 2, 3]
    assert queue.staleness().keys == (1, 2, 3)


@pytest.mark.parametrize(("policy", "step"), [("freshest", "overwrite"), ("append", "append")])
def test_a_put_that_is_interrupted_before_its_tuples_wait_leaves_no_keys(policy, step, monkeypatch):
    """As by Ctrl-C: the keys stayed without updates, and once keys were forgotten no more could be put."""
    now = [0.0]
    queue = wp.UpdateQueue("k", policy, clock=lambda: now[0], forget=5)
    queue.put_batch([{"k": k, "n": 0} for k in range(10)])
    step_of = getattr(WaitingObjects, step)

    def interrupted(*args):
        step_of(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WaitingObjects, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            queue.put_batch([{"k": "new", "n": 1}])
    assert queue.staleness().keys == tuple(range(10))
    assert sorted(row["k"] for row in queue.get_batch(10)) == list(range(10))
    now[0] = 20.0
    queue.done()
    queue.put({"k": "later", "n": 2})
    assert queue.get() == {"k": "later", "n": 2}
    assert queue.staleness().forgotten[0] == 10


def test_a_batch_wakes_all_that_wait():
    queue, got = wp.UpdateQueue("k"), []
    waiting = [threading.Thread(target=lambda: got.append(queue.get(timeout=20)["k"])) for _ in range(3)]
    for thread in waiting:
        thread.start()
    time.sleep(0.2)
    queue.put_batch([{"k": k} for k in range(3)])
    for thread in waiting:
        thread.join(5)
    assert sorted(got) == [0, 1, 2]


@pytest.mark.parametrize("policy", ALL)
def test_producers_and_a_consumer_at_once_lose_no_last_update(policy):
    queue = wp.UpdateQueue("k", policy)
    producers, keys, rounds = 3, 40, 150
    order = {}

    def produce(number):
        rng = random.Random(number)
        for n in range(rounds):
            rows = [{"k": number * keys + rng.randrange(keys), "n": n} for _ in range(rng.randrange(1, 5))]
            queue.put_batch(rows)
            order.setdefault(number, []).extend((row["k"], row["n"]) for row in rows)

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(producers)]
    for thread in threads:
        thread.start()
    closer = threading.Thread(target=lambda: ([t.join() for t in threads], queue.close()))
    closer.start()
    got = []
    for row in queue:
        got.append((row["k"], row["n"]))
        if len(got) % 50 == 0:
            time.sleep(0.001)
    closer.join()
    put = [pair for number in range(producers) for pair in order[number]]
    freshness = queue.staleness()
    assert freshness.puts == len(put)
    assert freshness.gets == len(got)
    assert freshness.gets + freshness.lost == len(put)
    if policy != "shed":
        assert dict(got) == dict(put)
    for key in {k for k, _ in got}:  # never an older one after a newer one
        own = [n for k, n in got if k == key]
        assert own == sorted(own)
