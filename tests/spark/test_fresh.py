"""Update queues in a bucket, with a clock of their own: budgets, freshness, nothing lost that was newest."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from tests.spark.block_store import BlockStore, reopened
from windowpane.errors import BadQuery, WrongType
from windowpane.spark.bucket import Received
from windowpane.spark.budget import share_of
from windowpane.spark.envelope import write_batch
from windowpane.spark.fresh import Fresh
from windowpane.spark.latest import LatestBucket, LatestPacker
from windowpane.spark.queue_spec import QueueSpec

TYPES = (("t", pa.int64()), ("k", pa.string()), ("v", pa.int64()))
ANSWER = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64())])
POLICIES = ["freshest", "in_place", "linecutting", "fifo", "append", "switch"]


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def fresh_of(policy, clock, budget=0.010, cost=0.001, price=0.0, dear=()):
    def function(frame):
        clock.now += price + cost * len(frame) + sum(100 * cost for key in frame["k"] if key in dear)
        return frame[["k", "t", "v"]]

    return Fresh(QueueSpec("q", ("k",), "t", policy, budget, function, ANSWER), TYPES, ticks=clock)


def payload(rows):
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(list(c), kind) for c, (_, kind) in zip(columns, TYPES, strict=True)]
    return write_batch(pa.record_batch(arrays, names=[name for name, _ in TYPES]))


batches = st.lists(
    st.lists(st.tuples(st.integers(0, 50), st.sampled_from("abcdef"), st.integers()), max_size=30),
    min_size=1,
    max_size=6,
)
batches = batches.map(lambda bs: [[(t, k, v % 100) for t, k, v in b] for b in bs])


@pytest.mark.parametrize("policy", POLICIES)
@given(batches=batches, restart=st.integers(0, 5))
def test_every_update_is_served_overwritten_outdated_or_waiting_and_results_never_go_back(
    policy, batches, restart
):
    clock = Clock()
    fresh = fresh_of(policy, clock)
    counts = {"updates": 0, "served": 0, "lost": 0, "outdated": 0}
    delivered, waiting = {}, 0
    for i, batch in enumerate([*batches, []]):
        clock.now += 1
        last = i == len(batches)
        tables, notes = fresh.step([payload(batch)] if batch else [], clock, drain=last)
        for name in counts:
            counts[name] += getattr(notes, name)
        waiting = notes.waiting
        assert counts["updates"] == counts["served"] + counts["lost"] + counts["outdated"] + waiting
        for table in tables["q"]:
            for row in table.to_pylist():
                if policy not in ("append", "switch"):
                    assert row["t"] >= delivered.get(row["k"], row["t"])
                delivered[row["k"]] = row["t"]
        if i == restart:
            fresh = reopened(fresh)
    assert waiting == 0
    if policy not in ("append", "switch"):
        newest = {}
        for batch in batches:
            for t, k, _ in batch:
                newest[k] = max(newest.get(k, t), t)
        assert delivered == newest


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("first", [True, False])
def test_a_restart_may_have_nulls_in_a_column_that_had_none_and_the_other_way_round(
    policy, first, monkeypatch
):
    # As where `na.fill` was put before the stream: what waits has another schema than what comes.
    def rows(at, keys, nullable):
        kinds = [pa.field(name, kind, nullable=nullable) for name, kind in TYPES]
        columns = [[at] * len(keys), list(keys), [at] * len(keys)]
        return write_batch(pa.record_batch(columns, schema=pa.schema(kinds)))

    monkeypatch.setattr("windowpane.spark.fresh_blocks.PIECE", 2)
    clock, store = Clock(), BlockStore()
    fresh = fresh_of(policy, clock, budget=1e-6)
    given = fresh.step([rows(1, "abcdefgh", first)], clock)[0]["q"]
    fresh = store.reopened(fresh)
    given += fresh.step([rows(2, "abc", not first)], clock)[0]["q"]
    given += store.reopened(fresh).step([], clock, drain=True)[0]["q"]
    newest = {row["k"]: row["v"] for table in given for row in table.to_pylist()}
    assert newest == dict(zip("abcdefgh", [2] * 3 + [1] * 5, strict=True))


@pytest.mark.parametrize("policy", POLICIES)
def test_lists_and_structs_that_wait_may_have_nulls_within_them_after_a_restart(policy):
    def rows(at, nullable):
        kinds = [
            pa.list_(pa.field("item", pa.int64(), nullable=nullable)),
            pa.struct([pa.field("a", pa.int64(), nullable=nullable)]),
        ]
        columns = [pa.array([at]), pa.array([f"key {at}"]), *map(pa.array, ([[at]], [{"a": at}]), kinds)]
        return write_batch(pa.record_batch(columns, names=["t", "k", "many", "one"]))

    clock = Clock()
    spec = QueueSpec("q", ("k",), "t", policy, 1e-6, lambda frame: frame[["k", "t"]].assign(v=1), ANSWER)
    fresh, given = Fresh(spec, TYPES, ticks=clock), []
    for at, nullable in enumerate([False, True, False, True]):
        given += fresh.step([rows(at, nullable)], clock)[0]["q"]
        fresh = reopened(fresh)
    given += fresh.step([], clock, drain=True)[0]["q"]
    assert sum(table.num_rows for table in given) == 4


def test_the_function_stops_when_the_budget_is_spent_and_the_rest_is_overwritten():
    clock = Clock()
    fresh = fresh_of("freshest", clock, budget=0.050)
    for i in range(20):
        clock.now += 1
        before = clock.now
        _, notes = fresh.step([payload([(i, f"key {j}", j) for j in range(400)])], clock)
        assert 0.048 <= clock.now - before <= 0.051
        assert notes.waiting == 400 - notes.served
        assert notes.oldest_us <= 14e6  # all keys have their turn within 400 / 50 micro-batches, about
    assert notes.keys == 400


def test_an_append_queue_falls_behind_and_a_switching_one_does_not():
    waits = {}
    for policy in ("append", "switch"):
        clock = Clock()
        fresh = fresh_of(policy, clock, budget=0.050)
        for i in range(20):
            clock.now += 1
            _, notes = fresh.step([payload([(i, f"key {j % 40}", j) for j in range(200)])], clock)
        waits[policy] = notes.waiting
        clock.now += 1
    assert waits["append"] > 2000
    assert waits["switch"] <= 40


@pytest.mark.parametrize("policy", POLICIES)
def test_a_row_that_costs_more_than_the_budget_is_served_alone(policy):
    clock = Clock()
    fresh = fresh_of(policy, clock, budget=0.8, cost=1.0)
    for i in range(20):
        clock.now += 1
        before = clock.now
        _, notes = fresh.step([payload([(i, f"key {j}", j) for j in range(10)])], clock)
        assert (notes.served, clock.now - before) == (1, 1.0)
    if policy != "fifo":  # there an update sends its key to the tail, and all update all the time
        assert (fresh.queue.views()["serves"] >= 1).all()


@pytest.mark.parametrize("cost", [0.1, 0.3, 0.7])
def test_rows_that_are_a_good_part_of_the_budget_take_half_a_row_more_at_most(cost):
    clock = Clock()
    fresh = fresh_of("freshest", clock, budget=0.8, cost=cost)
    for i in range(10):
        clock.now += 1
        before = clock.now
        fresh.step([payload([(i, f"key {j}", j) for j in range(30)])], clock)
        assert clock.now - before <= 0.8 + cost / 2 + 1e-6


@pytest.mark.parametrize("price", [0.02, 0.3, 0.45, 0.58])
def test_calls_with_a_price_of_their_own_become_large(price):
    # A row takes 1 ms: one call of as many rows as the price leaves of 800 ms is the best.
    clock = Clock()
    fresh = fresh_of("in_place", clock, budget=0.8, price=price)
    served = []
    for i in range(20):
        clock.now += 1
        before = clock.now
        _, notes = fresh.step([payload([(i, f"key {j}", j) for j in range(2_000)])], clock)
        served.append(notes.served)
        assert clock.now - before <= 1.5 * 0.8
        fresh = reopened(fresh) if i == 10 else fresh  # what is known of calls is in the state
    assert min(served[5:]) >= 0.8 * (800 - 1000 * price)


@pytest.mark.parametrize("policy", ["freshest", "in_place", "append", "shed"])
def test_a_function_that_becomes_slower_keeps_to_the_budget_again_soon(policy):
    clock, rng, took = Clock(), np.random.default_rng(0), []
    fresh = fresh_of(policy, clock, budget=0.4)
    for i in range(40):
        clock.now = max(clock.now, 1_000.0 + i)
        before = clock.now
        fresh.step([payload([(i, f"key {j}", j) for j in rng.integers(0, 500, 3_000)])], clock)
        took.append(clock.now - before)
        if i == 14:  # a restart with another function, of which a row takes 20 ms
            fresh = reopened(fresh)
            fresh.spec = fresh_of(policy, clock, budget=0.4, cost=0.020).spec
    assert max(took[20:]) <= 1.0
    assert sum(took[15:]) <= 1.4 * 25 * 0.4


@pytest.mark.parametrize("policy", ["freshest", "in_place"])
def test_a_key_that_costs_a_hundred_times_as_much_is_found_by_calls_that_take_long(policy):
    clock = Clock()
    fresh = fresh_of(policy, clock, budget=0.4, price=0.001, dear={"key 7"})
    rng = np.random.default_rng(1)
    for i in range(60):
        clock.now = max(clock.now, 1_000.0 + i)
        keys = range(200) if i == 0 else rng.integers(0, 200, 300)
        fresh.step([payload([(i, f"key {j}", j) for j in keys])], clock)
    cost = fresh.queue.views()["cost"]
    others = np.delete(cost, 7)
    assert 50 < cost[7] / np.median(others) < 200
    assert np.count_nonzero(others > 4 * np.median(others)) <= 5  # they came with it so far


def test_the_switch_goes_back_to_every_row_once_the_load_falls():
    clock = Clock()
    fresh = fresh_of("switch", clock, budget=0.050)
    used = []
    for i, rows in enumerate([10] * 3 + [200] * 5 + [10] * 5):
        clock.now += 1
        tables, notes = fresh.step([payload([(i, f"key {j % 4}", j) for j in range(rows)])], clock)
        used.append((fresh.queue.policy.value, notes.served, notes.lost))
    assert used[:3] == [("append", 10, 0)] * 3
    assert {policy for policy, _, _ in used[3:8]} == {"freshest"}
    assert used[7] == ("freshest", 4, 196)
    assert used[8:] == [("append", 10, 0)] * 5  # none waited: every row is served again
    assert sum(len(table) for table in tables["q"]) == 10


def test_staleness_is_that_of_the_definition_for_keys_that_wait_too():
    # A call takes 3 s, the budget is for one. a and b arrive at 0, a again at 10.
    clock = Clock()
    fresh = fresh_of("in_place", clock, budget=1.0, cost=3.0)

    def told(rows):
        tables, notes = fresh.step([payload(rows)], clock)
        (table,) = tables["q staleness"]
        found = {row.pop("k"): tuple(row.values()) for row in table.to_pylist()}
        return found, [json.loads(text.partition(" ")[2]) for text in notes.stalest]

    found, stalest = told([(1, "a", 1), (1, "b", 1)])
    # a is served at 0 and delivered at 3: its staleness is t until then, 4.5 / 3 on average; b waits
    assert found == {"a": (0.0, 1.5, 0.0), "b": (1.5, 1.5, 3.0)}
    assert stalest == [{"queue": "q", "key": {"k": "b"}, "seconds": 3.0, "application_staleness": 1.5}]
    clock.now = 1010.0
    found, stalest = told([(2, "a", 2)])
    # b is served at 10 and delivered at 13: 10^2 / 2 and 13^2 / 2; a was stale from 0 to 3, and is from 10 on
    assert found == {"a": (4.5 / 13, (4.5 + 4.5) / 13, 3.0), "b": (50 / 13, 84.5 / 13, 0.0)}
    assert stalest == [{"queue": "q", "key": {"k": "a"}, "seconds": 3.0, "application_staleness": 9 / 13}]
    clock.now = 1020.0
    found, stalest = told([(2, "c", 2)])
    assert found["a"][2] == 0.0  # a is delivered at 23
    assert found["c"][2] == 3.0
    assert "b" not in found  # it neither waits nor was it served


def test_where_very_many_keys_wait_the_stalest_and_those_that_were_served_are_told(monkeypatch):
    monkeypatch.setattr("windowpane.spark.queue_spec.TOLD", 3)
    clock = Clock()
    fresh = fresh_of("fifo", clock, budget=1e-6)
    for i in range(10):
        clock.now += 1
        tables, _ = fresh.step([payload([(i, f"key {i}", 0), (i, f"other {i}", 0)])], clock)
    (table,) = tables["q staleness"]
    assert sorted(table["k"].to_pylist()) == ["key 5", "key 6", "other 4", "other 5"]
    assert (np.sort(table["stale_for"].to_numpy()).round(1) == [0.0, 3.0, 4.0, 4.0]).all()


def test_the_stalest_keys_are_few_and_short_and_come_first():
    clock = Clock()
    fresh = fresh_of("fifo", clock, budget=1e-6)
    for i in range(12):
        clock.now += 1
        rows = [(i, f"key {i} {j}" + "x" * 10_000, 0) for j in range(2)]
        _, notes = fresh.step([payload(rows)], clock)
    assert (len(notes.stalest), notes.waiting) == (10, 12)
    ages = [int(text.partition(" ")[0]) for text in notes.stalest]
    assert ages == sorted(ages, reverse=True)
    assert ages[0] == notes.oldest_us > 5e6
    assert max(map(len, notes.stalest)) < 250


def test_tasks_send_the_newest_row_of_each_key_only():
    node = wp.stream(schema=pa.schema(list(TYPES)), time="t", keys="k").node
    rng = np.random.default_rng(0)
    rows = pa.table({"t": np.arange(1000), "k": rng.integers(0, 20, 1000).astype(str), "v": np.arange(1000)})
    clock = Clock()
    specs = tuple(
        QueueSpec(policy, ("k",), "t", policy, 9.0, fresh_of(policy, clock).spec.function, ANSWER)
        for policy in ("in_place", "append")
    )
    sent = list(LatestPacker(node, specs, (0, 1))(rows.to_batches()))
    received = [Received(), Received()]
    for envelope in sent:
        for bucket in (0, 1):
            mine = envelope.filter(pa.array(envelope["bucket"].to_numpy() == bucket))
            received[bucket].add(mine["part"].to_pylist(), mine["payload"].to_pylist())
    frames = [LatestBucket(node, specs).answer(got) for got in received]
    counts = pd.concat(frames)[["updates", "served", "lost"]].sum()
    assert dict(counts) == {"updates": 2000, "served": 1020, "lost": 980}


def test_the_budget_of_a_micro_batch_is_shared_over_buckets_that_run_one_after_the_other_and_over_queues():
    assert share_of(0.8, together=[1, 1], tasks=2, queues=1) == 0.8
    assert share_of(0.8, together=[1] * 200, tasks=2, queues=1) == 0.008
    assert share_of(0.8, together=[1] * 5, tasks=2, queues=1) == 0.8 / 3  # the third wave is of one bucket
    assert share_of(0.8, together=[1] * 4, tasks=16, queues=2) == 0.4
    # Buckets that fell into one shuffle partition run one after the other, whoever is idle.
    assert share_of(0.8, together=[1, 2], tasks=2, queues=1) == 0.4
    assert share_of(0.8, together=[3], tasks=8, queues=1) == 0.8 / 3
    assert share_of(0.8, together=[1, 1, 3], tasks=2, queues=1) == 0.2


def test_a_queue_that_sheds_loses_nothing_while_there_is_time_for_all():
    clock = Clock()
    fresh = fresh_of("shed", clock, budget=0.450)  # of 900 ms, as of two buckets one after the other
    for i in range(60):  # 50 rows of 1 ms in each second: a load of 0.05
        clock.now = max(clock.now, 1000.0 + i)
        _, notes = fresh.step([payload([(i, f"key {j}", j) for j in range(50)])], clock)
        assert notes.lost == 0


@pytest.mark.parametrize(("cost", "price"), [(1e-4, 0.0), (1e-2, 0.0), (1e-4, 0.05), (1e-3, 0.05)])
def test_a_queue_that_sheds_uses_its_budget_whatever_calls_cost_and_no_row_waits_long(cost, price):
    clock = Clock()
    fresh = fresh_of("shed", clock, budget=0.3, cost=cost, price=price)
    began, chance = clock.now, np.random.default_rng(0)
    for i in range(20):  # five times what can be done
        clock.now = max(clock.now, began + i)
        keys = chance.integers(0, 500, int(5 * 0.3 / cost))
        before = clock.now
        _, notes = fresh.step([payload([(i, f"key {key}", i) for key in keys.tolist()])], clock)
        if i > 3:
            assert 0.27 <= clock.now - before <= 0.36
            assert notes.waiting <= 0.3 * 0.3 / cost
            assert notes.oldest_us <= 2_000_000


def test_keys_whose_rows_were_shed_are_forgotten_too():
    clock = Clock()
    fresh = fresh_of("shed", clock, budget=0.3, cost=1e-2)
    for i in range(12):  # keys that nobody has seen, most of which there is no time for
        clock.now += 2000.0
        rows = [(i, f"key {i} {j}", j) for j in range(500)]
        _, notes = fresh.step([payload(rows)], clock, bound=i)
        assert notes.keys <= 2000
        assert len(fresh.index) == len(fresh.newest) == notes.keys
    assert notes.lost > 400


def test_what_cannot_be_is_an_error():
    stream = wp.stream(schema=pa.schema(list(TYPES)), time="t")
    with pytest.raises(BadQuery, match="needs a key"):
        stream.latest()
    with pytest.raises(BadQuery, match="there is no policy 'best'"):
        stream.latest("k", policy="best")
    with pytest.raises(BadQuery, match="budget is 0"):
        stream.latest("k", budget=0)
    with pytest.raises(BadQuery, match=r"wp\.UpdateQueue"):
        stream.latest("k").apply(lambda frame: frame, ANSWER).to_spark()
    for names in (("a", "a"), ("a", "a staleness"), ("a staleness", "b", "a")):
        queues = [stream.latest("k").apply(lambda frame: frame, ANSWER, name=name) for name in names]
        with pytest.raises(BadQuery, match=r"two outputs are named 'a( staleness)?'.* name='\.\.\.'"):
            wp.to_spark(*queues)
    clock = Clock()
    fresh = fresh_of("fifo", clock)
    for made, message in ((3, "gave a int"), (pd.DataFrame({"k": ["a"]}), "no column 't'")):
        object.__setattr__(fresh.spec, "function", lambda _, made=made: made)
        with pytest.raises(WrongType, match=message):
            fresh.step([payload([(1, "a", 1)])], clock)


@pytest.mark.parametrize("policy", ["append", "switch"])
def test_calls_stay_large_where_the_first_ones_made_rows_seem_dear(policy):
    clock = Clock()
    fresh = fresh_of(policy, clock, budget=1e6, cost=1e-6, price=1e-3)
    calls, function = [], fresh.spec.function
    object.__setattr__(fresh.spec, "function", lambda frame: calls.append(len(frame)) or function(frame))
    rows = [(i, "abcdefgh"[i % 8], i) for i in range(200_000)]
    _, notes = fresh.step([payload(rows)], clock, drain=True)
    assert notes.served == len(rows)
    # The first call is for one row, which has its price to itself; the others are of rows of the same keys.
    assert len(calls) < 2 * len(rows) / max(calls)
    assert calls[-2] == max(calls)
