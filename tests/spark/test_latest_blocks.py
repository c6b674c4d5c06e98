"""The blocks of an update queue: whoever reads them goes on from what was written, from whatever it had.

Workers of Spark take turns with a bucket. What one has may be old, of an attempt that failed, or nothing.
"""

import base64
import json
import zlib
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.block_store import BlockStore
from tests.spark.test_fresh import TYPES as THREE
from tests.spark.test_fresh import fresh_of, payload
from tests.spark.test_latest_bucket import ANSWER, POLICIES, SCHEMA, Hours, keyed, spec, table
from windowpane.core.kernels.habits import ALL, PRICE
from windowpane.core.upstream.queue import KeyQueue
from windowpane.errors import BadState
from windowpane.spark import fresh_blocks, fresh_journal
from windowpane.spark.envelope import write_batch
from windowpane.spark.fresh import _FORGET, Fresh

TYPES = tuple(zip(SCHEMA.names, SCHEMA.types, strict=True))
GOLDEN = Path(__file__).parents[1] / "golden" / "update_queues"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(fresh_journal, "CHUNK", 4)
    monkeypatch.setattr(fresh_blocks, "PIECE", 4)
    monkeypatch.setattr("windowpane.spark.fresh._SPARE", 4)


def state_of(fresh):
    """All that a queue knows, but for rows that nobody waits for and those shed that change nothing."""
    views = fresh.queue.views()
    found = {name: array.tolist() for name, array in views.items() if not name.startswith("line")}
    if "line kept" in views:
        found |= {
            f"line {n}": views[f"line {n}"][views["line kept"]].tolist() for n in ("ids", "rows", "times")
        }
    found["newest"] = [part.tolist() for part in fresh.newest.order], fresh.newest.floor
    found["keys"] = [column.to_pylist() for column in fresh.index.values(np.arange(len(fresh.index)))]
    numbers = np.sort(fresh.queue.waiting_rows())
    rows = fresh.rows.take(numbers).to_pylist() if len(numbers) else []
    return found | {"rows": rows, "came": fresh.rows.came, "pace": astuple(fresh.pace)}


class Workers:
    """Some workers with a queue each, which they had at some time, and the state store that they share."""

    def __init__(self, policy, clock):
        self.clock, self.policy = clock, policy
        self.store, self.had, self.state, self.followed = BlockStore(), {}, None, 0

    def load(self, worker):
        """The queue as this worker gets it for a micro-batch, by the rules of `stored`."""
        had, stored = self.had.pop(worker, (None, None)), self.store.header
        if stored is None:
            return self.new()
        fresh, header = had
        if header != stored:
            leads = fresh is not None and fresh.leads_to(stored)
            self.followed += leads
            fresh = self.store.give(fresh if leads else self.new())
        assert state_of(fresh) == self.state
        return fresh

    def new(self):
        def slow(frame):
            self.clock.now += 0.01 * len(frame)
            return frame[ANSWER.names]

        return Fresh(spec(self.policy, budget=0.03, function=slow), TYPES, ticks=self.clock)

    def run(self, worker, rows, *, fails=False):
        fresh = self.load(worker)
        payloads = [write_batch(rows.to_batches()[0])] if rows.num_rows else []
        fresh.step(payloads, self.clock)
        if fails:  # before it is stored, or after: then the worker keeps what the state store never had
            other = BlockStore()
            other.blocks = dict(self.store.blocks)
            other.take(fresh)
            self.had[worker] = fresh, other.header
            return
        self.store.take(fresh)
        self.state = state_of(fresh)
        self.had[worker] = fresh, self.store.header

    def change(self, policy):
        self.policy, self.had = policy, {}  # of a query that starts again no worker has anything


steps = st.tuples(
    st.integers(0, 2),  # which worker
    st.lists(st.integers(0, 40), max_size=6),  # rows of which keys
    st.sampled_from(["works"] * 6 + ["fails", "restart"]),
)


@pytest.mark.parametrize("policy", POLICIES)
@given(
    script=st.lists(steps, min_size=8, max_size=30), others=st.lists(st.sampled_from(POLICIES), min_size=30)
)
def test_a_queue_is_the_same_whichever_worker_goes_on_with_it(policy, script, others):
    clock = Hours()
    workers = Workers(policy, clock)
    workers.run(0, keyed(0, 30, 0))
    for at, (worker, keys, what) in enumerate(script, 1):
        clock.now += 1.0
        if what == "restart":
            workers.change(others[at % len(others)])
        rows = table(*[(at, f"key {key}", at) for key in keys])
        workers.run(worker, rows, fails=what == "fails")
    workers.load("another")


@pytest.mark.parametrize("policy", POLICIES)
def test_workers_that_take_turns_read_what_came_since_they_had_the_queue(policy):
    workers, rng = Workers(policy, Hours()), np.random.default_rng(1)
    workers.run(0, keyed(0, 100, 0))
    for at in range(1, 60):
        workers.clock.now += 1.0
        rows = table(*[(at, f"key {key}", at) for key in rng.integers(0, 100, 3)])
        workers.run(at % 3, rows)
    assert workers.followed > 40


@pytest.mark.parametrize("policy", POLICIES)
def test_blocks_of_keys_that_wait_while_others_update_hold_what_is_known_of_them(policy):
    workers = Workers(policy, Hours())
    for i in range(80):
        workers.clock.now += 1.0
        # Each key updates every tenth second. Once the queue knows that, it ranks all keys anew.
        workers.run(0, table(*[(i, f"key {j}", i) for j in range(i % 10, 60, 10)]))
        workers.load("another")
    if policy == "freshest":
        assert workers.had[0][0].queue.views()["habits"][ALL, PRICE] > 0.0


def test_a_queue_that_learns_of_keys_with_outdated_rows_is_stored_with_them():
    clock, store = Hours(), BlockStore()
    fresh = Fresh(spec(), TYPES, ticks=clock)

    def step(low, high, at, bound):
        _, notes = fresh.step([write_batch(keyed(low, high, at))], clock, bound=bound)
        store.take(fresh)
        return notes

    step(0, 5, 1_000, 1_000)
    clock.now += 2 * _FORGET
    assert step(100, 105, 2_000, 2_000).keys == 5  # the others are forgotten
    assert step(200, 203, 5, 2_000).outdated == 3  # three new keys, which may have had newer results
    assert store.reopened(fresh).queue.keys == 5
    step(300, 301, 3_000, 2_000)
    assert store.reopened(fresh).queue.keys == len(fresh.index) == 9


def test_blocks_of_a_version_that_stored_other_columns_are_written_anew(monkeypatch):
    clock, store = Hours(), BlockStore()
    fresh = Fresh(spec(), TYPES, ticks=clock)
    fresh.step([write_batch(keyed(0, 9, 1))], clock)
    views = KeyQueue.views
    with monkeypatch.context() as before:
        before.setattr(KeyQueue, "views", lambda queue: {"more": views(queue)["first"]} | views(queue))
        fresh = store.reopened(fresh)
    fresh.step([write_batch(keyed(0, 1, 2))], clock)
    assert sorted(store.take(fresh)) == [f"queue 0/known/chunk {i}" for i in range(3)]
    assert store.reopened(fresh).queue.keys == 9


def of_before(name):
    before = json.loads((GOLDEN / f"{name}.json").read_text())
    blocks = {name: zlib.decompress(base64.b64decode(block)) for name, block in before["blocks"].items()}
    return before, blocks


@pytest.mark.parametrize(
    ("was", "policy"),
    [("freshest", "freshest"), ("append", "append"), ("shed", "shed"), ("shed", "append")],
)
def test_a_state_of_the_version_before_goes_on(was, policy):
    before, blocks = of_before(was)
    clock, store = Hours(), BlockStore()
    fresh = Fresh(fresh_of(policy, clock).spec, THREE, ticks=clock)
    fresh.restore(0, before["header"], blocks)
    waiting = fresh.rows.take(np.sort(fresh.queue.waiting_rows())).to_pylist()
    assert sorted([row["t"], row["k"], row["v"]] for row in waiting) == before["waits"]
    assert fresh.queue.views()["serves"].tolist() == before["serves"]
    assert fresh.index.values(np.arange(len(fresh.index)))[0].to_pylist() == before["keys"]
    new = [[10, f"new {i}", i] for i in range(20 if policy != "shed" else 0)]
    tables, _ = fresh.step([payload(new)] if new else [], clock)
    fresh = store.reopened(fresh)
    more, notes = fresh.step([], clock, drain=True)
    given = [[row["t"], row["k"], row["v"]] for some in tables["q"] + more["q"] for row in some.to_pylist()]
    assert sorted(given) == sorted(before["waits"] + new)
    assert notes.waiting == 0


def test_a_state_from_before_there_were_ties_goes_on_in_a_stream_that_has_them():
    before, blocks = of_before("freshest")
    for part in ("parts", "digests"):
        for name in [name for name in before["header"][part] if "/ties" in name]:
            del before["header"][part][name]
    clock = Hours()
    fresh = Fresh(replace(fresh_of("freshest", clock).spec, ties="v"), THREE, ticks=clock)
    fresh.restore(0, before["header"], blocks)
    assert fresh.step([payload([(3, "a", 99)])], clock)[1].outdated == 0


def test_a_line_may_have_any_gaps_in_its_numbers_but_no_other_order():
    workers = Workers("append", Hours())
    fresh, store = workers.new(), workers.store
    for i in range(3):
        fresh.step([write_batch(keyed(0, 10, i))], workers.clock)
        fresh.rows = replace(fresh.rows, came=fresh.rows.came + 10**9)
        state = state_of(fresh)
        fresh = store.reopened(fresh)
        assert state_of(fresh) == state
    assert 10 < len(store.blocks) < 30
    fresh.queue._line.rows[:10] = fresh.queue._line.rows[:10][::-1].copy()
    fresh.kept.anew()
    with pytest.raises(BadState, match="order of their numbers"):
        store.take(fresh)


@pytest.mark.parametrize("policy", ["freshest", "append"])
@pytest.mark.parametrize("damage", ["cut", "missing", "older"])
def test_damaged_missing_and_stale_blocks_are_errors_also_where_a_worker_goes_on(policy, damage):
    workers = Workers(policy, Hours())
    workers.run(0, keyed(0, 100, 0))
    workers.run(0, table((1, "key 1", 1), (1, "key 2", 1)))
    old = dict(workers.store.blocks)
    fresh, _ = workers.had[0]
    workers.run(1, table((2, "key 1", 2), (2, "key 3", 2)))
    stored = workers.store
    changed = [name for name, block in stored.blocks.items() if old.get(name) != block]
    assert len(changed) > 1
    assert fresh.leads_to(stored.header)
    name = next(name for name in changed if "/known/entry" in name or "/line/" in name)
    blocks = dict(stored.blocks)
    if damage == "cut":
        blocks[name] = blocks[name][:-1]
    elif damage == "missing":
        del blocks[name]
    else:
        blocks[name] = next(block for other, block in old.items() if "/known/chunk" in other)
    with pytest.raises(BadState, match=name):
        fresh.restore(0, stored.header, blocks)


def test_a_state_that_another_attempt_wrote_does_not_lead_to_the_stored_one():
    workers = Workers("in_place", Hours())
    workers.run(0, keyed(0, 50, 0))
    workers.run(1, table((1, "key 1", 1)))
    workers.run(0, table((2, "key 2", 2)), fails=True)
    workers.run(1, table((2, "key 2", 2)))
    workers.run(1, table((3, "key 3", 3)))
    fresh, header = workers.had[0]
    assert header["journal"]["now"] < workers.store.header["journal"]["now"]
    assert not fresh.leads_to(workers.store.header)
