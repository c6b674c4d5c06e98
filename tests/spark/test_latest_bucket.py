"""Update queues through tasks and buckets without Spark: every row counted, absurd times, restarts."""

import itertools
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windowpane as wp
from tests.spark.block_store import reopened
from windowpane.core import blocks as codec
from windowpane.core.arrays import ALWAYS
from windowpane.errors import BadState
from windowpane.spark.bucket import Received
from windowpane.spark.envelope import write_batch
from windowpane.spark.fresh import _FORGET, Fresh
from windowpane.spark.latest import LatestBucket, LatestPacker, LatestProgram
from windowpane.spark.pack import announced
from windowpane.spark.queue_spec import QueueSpec
from windowpane.spark.seen import Seen

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("m", pa.bool_())])
LEVELS = ("waiting", "keys", "staleness_us", "oldest_us")
ANSWER = pa.schema([("k", pa.string()), ("t", pa.int64()), ("v", pa.int64())])


def echo(frame):
    """What the queue serves, as it is; nothing but the stream's own columns may reach a function."""
    assert list(frame.columns) == SCHEMA.names
    return frame[ANSWER.names]


def spec(policy="freshest", name="q", budget=9.0, function=echo):
    return QueueSpec(name, ("k",), "t", policy, budget, function, ANSWER)


def table(*rows):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, (*row, None), strict=False)) for row in rows], SCHEMA)


class Pump:
    """Micro-batches through tasks to buckets; with `restart` buckets go through their bytes in between."""

    def __init__(self, *specs, tasks=2, buckets=2, restart=False, **options):
        self.node = wp.stream(schema=SCHEMA, time="t", keys="k", **options).node
        self.specs, self.tasks, self.restart = specs, tasks, restart
        self.labels = tuple(range(buckets))
        self.buckets = [LatestBucket(self.node, specs) for _ in self.labels]
        self.counts, self.found = {}, {}
        self.stores = [{} for _ in self.labels]

    def push(self, batch=None, *, bound=None):
        sent = [] if batch is None else list(self._packed(batch))
        if bound is not None:
            sent.append(announced(Seen(bound=bound), self.labels))
        self.counts |= dict.fromkeys(LEVELS, 0)
        for label, bucket in enumerate(self.buckets):
            received = Received()
            for envelope in sent:
                mine = envelope.filter(pa.array(envelope["bucket"].to_numpy() == label))
                received.add(mine["part"].to_pylist(), mine["payload"].to_pylist())
            self._note(bucket.answer(received))
        if self.restart:
            self.reopen(*self.specs)

    def _packed(self, batch):
        packer = LatestPacker(self.node, self.specs, self.labels)
        for share in np.array_split(np.arange(batch.num_rows), self.tasks):
            yield from packer(batch.slice(int(share[0]), len(share)).to_batches() if len(share) else [])

    def _note(self, frame):
        for name in frame.columns[2:].drop("stalest"):
            self.counts[name] = self.counts.get(name, 0) + int(frame[name].dropna().sum())
        for name, payload in zip(frame["output"], frame["payload"], strict=True):
            if name in {s.name for s in self.specs}:
                with pa.ipc.open_stream(payload) as reader:
                    self.found.setdefault(name, []).extend(reader.read_all().to_pylist())

    def reopen(self, *specs):
        """Start the buckets anew with their stored state, under specs that may have changed."""
        self.specs = specs
        self.store()
        for label, old in enumerate(self.buckets):
            fresh = LatestBucket(self.node, specs)
            fresh.restore(json.loads(json.dumps(old.header())), self.stores[label])
            self.buckets[label] = fresh

    def store(self):
        """Write what changed to the stores, as the processor does; the blocks that were written."""
        written = {}
        for label, bucket in enumerate(self.buckets):
            blocks, store = bucket.blocks(), self.stores[label]
            put, gone = blocks.changed({name: codec.digest_of(block) for name, block in store.items()})
            store.update(put)
            for name in gone:
                del store[name]
            assert {name: codec.digest_of(block) for name, block in store.items()} == blocks.digests
            written |= put
        return written

    def newest(self, name="q"):
        """The last value delivered for each key."""
        return {row["k"]: row["v"] for row in self.found[name]}

    def total(self, *names):
        return sum(self.counts[name] for name in names)


ENDS = ("served", "lost", "outdated", "waiting")


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("policy", ["freshest", "append", "switch"])
def test_every_row_is_counted_once(policy, restart):
    pump = Pump(spec(policy), restart=restart)
    pump.push(table((1, "a", 1), (3, "a", 3), (2, "a", 2), (None, "a", 9), (1, "b", 1), (None, None, 0)))
    assert pump.counts["null_time"] == 2
    assert pump.counts["updates"] == 4 == pump.total(*ENDS)
    pump.push(table((2, "a", 2), (5, "a", 5), (6, None, 6)))
    assert pump.counts["updates"] == 7 == pump.total(*ENDS)
    assert pump.newest() == {"a": 5, "b": 1, None: 6}


def test_a_time_that_no_window_could_take_is_rejected_and_counted():
    pump = Pump(spec())
    pump.push(table((1, "a", 1), (2**63 - 1, "a", 2)))
    assert pump.counts["out_of_range"] == 1
    assert pump.newest() == {"a": 1}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("policy", ["freshest", "fifo", "append", "switch"])
def test_a_row_far_ahead_is_rejected_and_does_not_make_later_rows_outdated(policy, restart):
    pump = Pump(spec(policy), tasks=1, max_ahead=1000, restart=restart)
    pump.push(table((10, "a", 1), (10**12, "a", 66), (20, "b", 2), (10**12 + 1, "a", 67)))
    assert pump.newest() == {"a": 1, "b": 2}
    pump.push(table((30, "a", 3), (10**12, "b", 66)))
    assert pump.newest() == {"a": 3, "b": 2}
    assert pump.counts["too_far_ahead"] == 3
    assert pump.counts["updates"] == 3 == pump.total(*ENDS)
    assert pump.counts["outdated"] == 0


def test_markers_do_not_reach_the_function():
    pump = Pump(spec(), punctuation=wp.external("m"))
    pump.push(table((1, "a", 1, False), (50, "a", 0, True), (2, "b", 2, None), (60, None, 0, True)))
    assert pump.newest() == {"a": 1, "b": 2}
    assert (pump.counts["markers"], pump.counts["updates"]) == (2, 2)


def test_a_marker_far_ahead_counts_as_that_and_once_for_two_queues():
    pump = Pump(spec(), spec("append", "other"), tasks=1, punctuation=wp.external("m"), max_ahead=1000)
    pump.push(table((1, "a", 1, False), (50, "a", 0, True), (10**12, "b", 0, True), (10**12, "b", 2, False)))
    assert (pump.counts["markers"], pump.counts["too_far_ahead"], pump.counts["updates"]) == (1, 2, 2)


def test_rows_that_lack_a_required_column_are_counted_and_not_served():
    pump = Pump(spec(), required="v")
    pump.push(table((1, "a", 1), (2, "a", None), (3, "b", None)))
    assert pump.newest() == {"a": 1}
    assert (pump.counts["null_required"], pump.counts["updates"]) == (2, 1)


def test_the_end_is_no_progress():
    pump = Pump(spec(budget=1e-9), max_ahead=1000)
    pump.push(table((10, "a", 1)), bound=int(ALWAYS))
    pump.push(table((20, "a", 2), (10**12, "b", 66)), bound=int(ALWAYS))
    assert pump.newest() == {"a": 2}
    assert pump.counts["too_far_ahead"] == 1


POLICIES = ["freshest", "in_place", "linecutting", "fifo", "append", "shed", "switch"]


@pytest.mark.parametrize("after", POLICIES)
@pytest.mark.parametrize("before", POLICIES)
def test_a_new_policy_counts_after_a_restart_and_what_waits_stays(before, after):
    pump = Pump(spec(before, budget=1e-9), buckets=1)
    # The first call is for one row whatever the budget, so that most of these wait.
    pump.push(table(*[(i, f"key {i % 30}", i) for i in range(60)]))
    waits = pump.counts["waiting"]
    assert waits >= 22
    pump.reopen(spec(after, budget=1e-9))
    pump.push(table((100, "new", 100)))
    queue = pump.buckets[0].queues[0].queue
    assert queue.policy.value in ({"append", "freshest"} if after == "switch" else {after})
    assert pump.total(*ENDS) == pump.counts["updates"] == 61
    assert (queue.staleness(queue.oldest() + 1e6).application > 0).sum() >= min(waits - 8, 1)
    pump.push(bound=int(ALWAYS))
    assert pump.counts["waiting"] == 0
    assert pump.total(*ENDS) == pump.counts["updates"]
    if "shed" not in (before, after):
        assert pump.newest() == {f"key {i}": i + 30 for i in range(30)} | {"new": 100}


def test_queues_or_columns_in_another_order_are_another_plan():
    node = wp.stream(schema=SCHEMA, time="t", keys="k").node
    a, b = spec(name="a"), spec(name="b")
    stored = json.loads(json.dumps(LatestProgram(node, (a, b), "").identity()))
    LatestProgram(node, (replace(a, policy="fifo", budget=1.0), b), "").need_same(stored)
    with pytest.raises(
        BadState, match=r"queues .*\['a', \['k'\]\], \['b', \['k'\]\].* but now they are .*'b'.*'a'"
    ):
        LatestProgram(node, (b, a), "").need_same(stored)
    turned = wp.stream(schema=pa.schema(list(SCHEMA)[::-1]), time="t", keys="k").node
    with pytest.raises(BadState, match="columns"):
        LatestProgram(turned, (a, b), "").need_same(stored)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"time": "v"}, "time of the stream was t, is now v"),
        ({"required": "v"}, r"required of the stream was absent, is now .*v"),
        ({"lateness": 5}, "lateness of the stream was 0, is now 5"),
        ({"max_ahead": 7}, "max_ahead of the stream was None, is now 7"),
        ({"delay": 3}, "punctuation of the stream was .*0.*, is now .*3"),
        ({"ties": "v"}, "ties of the stream was None, is now v"),
    ],
)
def test_another_stream_is_refused_with_what_changed(changed, message):
    then, now = (
        wp.stream(schema=SCHEMA, keys="k", **{"time": "t", **options}).node for options in ({}, changed)
    )
    stored = json.loads(json.dumps(LatestProgram(then, (spec(),), "").identity()))
    LatestProgram(then, (spec("append", budget=1.0),), "").need_same(stored)
    with pytest.raises(BadState, match=rf"another stream: {message}.* Restart with the stream of then"):
        LatestProgram(now, (spec(),), "").need_same(stored)
    del stored["stream"]  # as states of before are, which go on
    LatestProgram(now, (spec(),), "").need_same(stored)


def test_another_condition_or_computed_column_is_refused():
    stream = wp.stream(schema=SCHEMA, time="t", keys="k")
    stored = LatestProgram(stream.node, (spec(),), "").identity()
    with pytest.raises(BadState, match=r"where of the stream was absent, is now .*v"):
        LatestProgram(stream.where(pc.field("v") > 5).node, (spec(),), "").need_same(stored)
    made = stream.select("t", "k", "m", v=pc.field("v") * 2).select("t", "k", "v", "m")
    with pytest.raises(BadState, match=r"text of column 'v' of the stream was absent, is now .*v"):
        LatestProgram(made.node, (spec(),), "").need_same(stored)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("policy", ["freshest", "fifo", "append", "switch"])
def test_of_equal_times_the_greatest_ties_are_newest_whatever_came_first(policy, restart):
    # `v` orders rows of equal time: 9 is the newest of a, in any task, micro-batch and order.
    for values in itertools.permutations([7, 8, 9]):
        pump = Pump(replace(spec(policy), ties="v"), ties="v", tasks=2, restart=restart)
        pump.push(table(*[(1, "a", value) for value in values], (1, "b", 1), (1, "b", None)))
        assert pump.newest() == {"a": 9, "b": 1}
        pump.push(table((1, "a", 8), (2, "b", None)))
        if policy in ("freshest", "fifo"):  # the others serve older rows too
            assert pump.counts["outdated"] == 1
            assert pump.newest() == {"a": 9, "b": None}
        pump.push(table((1, "a", 10), (1, "a", 9)))
        assert pump.newest()["a"] == 10
        assert pump.total(*ENDS) == pump.counts["updates"] == 9


def test_a_state_from_before_the_ties_counted_goes_on_with_them():
    pump = Pump(spec(), buckets=1, ties="v")
    pump.push(table((1, "a", 9)))
    pump.reopen(replace(spec(), ties="v"))
    pump.push(table((1, "a", 5), (1, "b", 1)))
    pump.push(table((1, "a", 4), (0, "b", 7)))
    assert pump.newest() == {"a": 5, "b": 1}


def test_without_ties_the_row_that_comes_last_is_the_newest_of_equal_times():
    pump = Pump(spec(), tasks=1)
    pump.push(table((1, "a", 2), (1, "a", 1)))
    assert pump.newest() == {"a": 1}
    pump.push(table((1, "a", 0)))
    assert pump.newest() == {"a": 0}


def test_a_policy_that_keeps_the_newest_takes_over_by_the_ties_too():
    pump = Pump(replace(spec("append", budget=1e-9), ties="v"), ties="v", buckets=1)
    pump.push(table((0, "first", 0), (1, "a", 9), (1, "a", 7), (1, "b", 1)))
    pump.reopen(replace(spec(budget=1e-9), ties="v"))
    pump.push(table((1, "a", 8)), bound=int(ALWAYS))
    assert pump.newest() == {"first": 0, "a": 9, "b": 1}
    assert pump.total(*ENDS) == pump.counts["updates"] == 5


def keyed(low, high, at):
    """A row for each key of a range."""
    n = high - low
    return pa.table(
        {
            "t": np.full(n, at),
            "k": np.arange(low, high).astype(str),
            "v": np.arange(n),
            "m": np.zeros(n, bool),
        }
    ).cast(SCHEMA)


def test_a_micro_batch_writes_out_what_it_changed_and_no_more(monkeypatch):
    sizes, write = [], codec.seal

    def sealed(content):
        sizes.append(len(content))
        return write(content)

    monkeypatch.setattr(codec, "seal", sealed)
    pump = Pump(spec(), buckets=1)
    pump.push(keyed(0, 30_000, 1))
    pump.buckets[0].blocks()
    whole = sum(sizes)
    assert whole > 2_000_000
    sizes.clear()
    pump.push()  # the clock's: nothing waits
    pump.buckets[0].blocks()
    assert sizes == []
    pump.push(keyed(29_999, 30_000, 2))  # a key of the last chunk, which is smaller than the others
    pump.buckets[0].blocks()
    assert 0 < sum(sizes) < 0.3 * whole


class Hours:
    """A clock that goes on when told."""

    now = 1e9

    def __call__(self):
        return self.now


@pytest.mark.parametrize("policy", ["freshest", "append"])
def test_idle_keys_are_forgotten_once_no_older_row_is_promised_to_come(policy):
    clock, types = Hours(), tuple(zip(SCHEMA.names, SCHEMA.types, strict=True))
    fresh = Fresh(spec(policy), types, ticks=clock)

    def step(rows, bound):
        payloads = [] if rows is None else [write_batch(rows)]
        tables, notes = fresh.step(payloads, clock, bound=bound)
        return [row for some in tables["q"] for row in some.to_pylist()], notes

    step(keyed(0, 10_000, 100), 100)
    step(keyed(0, 100, 5_000), 5_000)
    clock.now += _FORGET / 2
    step(keyed(0, 100, 6_000), 6_000)
    clock.now += _FORGET * 0.6
    _, notes = step(None, 100)
    assert notes.keys == 10_000  # a row with time 100 may still come
    clock.now += _FORGET * 0.3
    _, notes = step(None, 6_000)
    assert (notes.keys, len(fresh.index), len(fresh.newest)) == (100, 100, 100)
    fresh = reopened(fresh)
    if policy == "freshest":
        # Against the promise: older than what a forgotten key may have delivered, so nobody gets it.
        rows, notes = step(keyed(9_000, 9_001, 99), 6_000)
        assert (rows, notes.outdated) == ([], 1)
    rows, _ = step(keyed(9_000, 9_001, 6_001), 6_001)
    assert [row["k"] for row in rows] == ["9000"]


@pytest.mark.parametrize("policy", ["freshest", "in_place", "fifo", "linecutting", "switch", "append"])
def test_what_waits_stays_where_rows_were_shed_before_the_restart_and_keys_without_are_stale(
    policy, monkeypatch
):
    clock = Hours()
    monkeypatch.setattr("windowpane.spark.latest.time", SimpleNamespace(time=clock))

    took = 0.05

    def slow(frame):
        clock.now += took * len(frame)
        return echo(frame)

    pump = Pump(spec("shed", budget=1.0, function=slow), buckets=1)
    for i in range(6):
        took = 0.5 if i == 5 else 0.05  # so that not all is served that there seemed to be time for
        pump.buckets[0].queues[0].ticks = clock
        clock.now += 1.0
        pump.push(table(*[(50 * i + j, f"key {j % 40}", 50 * i + j) for j in range(50)]))
    shed = pump.buckets[0].queues[0]
    waits, delivered = set(shed.rows.take(np.sort(shed.queue.waiting_rows()))["k"].to_pylist()), pump.newest()
    assert len(waits) > 3
    assert len(waits) < 40
    pump.found.clear()
    pump.reopen(spec(policy, budget=1e-9, function=slow))
    fresh = pump.buckets[0].queues[0]
    fresh.ticks = clock
    pump.push()
    stale = fresh.queue.views()["pending"] < np.inf
    newest = {f"key {j % 40}": 250 + j for j in range(50)}
    served = {key for key, value in delivered.items() if value == newest[key]}
    assert set(fresh.index.values(np.flatnonzero(~stale))[0].to_pylist()) <= served | set(pump.newest())
    pump.push(bound=int(ALWAYS))
    assert set(pump.newest()) == waits
    assert all(value > delivered.get(key, -1) for key, value in pump.newest().items())
    assert pump.total(*ENDS) == pump.counts["updates"] == 300


@pytest.mark.parametrize("pause", [0.0, _FORGET + 1.0])
def test_a_last_update_within_the_promise_is_served_where_idle_keys_are_forgotten(pause, monkeypatch):
    clock = Hours()
    monkeypatch.setattr("windowpane.spark.latest.time", SimpleNamespace(time=clock))
    pump = Pump(spec(), delay=100, max_ahead=None, buckets=1, tasks=1)
    pump.buckets[0].queues[0].ticks = clock
    pump.push(table((900, "j", 1), (1000, "k", 1)))  # now 900 is promised
    clock.now += pause
    # The last row moves the bound far beyond the others, which came with it and keep to the one before.
    pump.push(table((950, "j", 2), (960, "new", 1), (5000, "z", 1)))
    assert pump.newest() == {"j": 2, "k": 1, "new": 1, "z": 1}
    assert pump.counts["outdated"] == 0


@pytest.mark.parametrize("policy", ["freshest", "in_place"])
def test_the_price_of_a_call_makes_no_key_starve(policy):
    clock, calls = Hours(), []

    def slow(frame):
        clock.now += (0.003 if calls else 0.1) + 0.001 * len(frame)
        calls.append(len(frame))
        return frame[ANSWER.names]

    types = tuple(zip(SCHEMA.names, SCHEMA.types, strict=True))
    fresh = Fresh(spec(policy, budget=0.4, function=slow), types, ticks=clock)
    never = set(map(str, range(1_000)))
    for i in range(20):
        clock.now += 1.0
        tables, notes = fresh.step([write_batch(keyed(0, 1_000, i))], clock)
        never -= {row["k"] for some in tables["q"] for row in some.to_pylist()}
        assert notes.oldest_us <= 6e6
    assert not never
    assert notes.served > 350
    assert len(calls) < 20 * 10  # no crumbs: a call costs as much as three rows
