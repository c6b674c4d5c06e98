"""Update queues in a bucket, with a clock of their own: budgets, freshness, nothing lost that was newest."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.lane_blocks import Blocks
from windowpane.errors import BadQuery, WrongType
from windowpane.spark.bucket import Received
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


def fresh_of(policy, clock, budget=0.010):
    def function(frame):
        clock.now += 0.001 * len(frame)
        return frame[["k", "t", "v"]]

    return Fresh(QueueSpec("q", ("k",), "t", policy, budget, function, ANSWER), TYPES)


def payload(rows):
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(list(c), kind) for c, (_, kind) in zip(columns, TYPES, strict=True)]
    return write_batch(pa.record_batch(arrays, names=[name for name, _ in TYPES]))


def stored(fresh):
    """The same queue, written to blocks and read back."""
    blocks = Blocks()
    header = fresh.store(0, blocks)
    other = Fresh(fresh.spec, fresh.types)
    other.restore(0, header, dict(blocks))
    return other


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
            fresh = stored(fresh)
    assert waiting == 0
    if policy not in ("append", "switch"):
        newest = {}
        for batch in batches:
            for t, k, _ in batch:
                newest[k] = max(newest.get(k, t), t)
        assert delivered == newest


def test_the_function_stops_when_the_budget_is_spent_and_the_rest_is_overwritten():
    clock = Clock()
    fresh = fresh_of("freshest", clock, budget=0.050)
    for i in range(20):
        clock.now += 1
        before = clock.now
        _, notes = fresh.step([payload([(i, f"key {j}", j) for j in range(400)])], clock)
        # calls take a quarter of what is left, so the last one is small
        assert 0.050 <= clock.now - before <= 0.065
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
    clock = Clock()
    fresh = fresh_of("fifo", clock)
    for made, message in ((3, "gave a int"), (pd.DataFrame({"k": ["a"]}), "no column 't'")):
        object.__setattr__(fresh.spec, "function", lambda _, made=made: made)
        with pytest.raises(WrongType, match=message):
            fresh.step([payload([(1, "a", 1)])], clock)
