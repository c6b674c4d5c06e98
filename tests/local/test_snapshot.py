import random
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.lane_blocks import Blocks
from windowpane.local import Runner, Snapshot, resume
from windowpane.local.runner import joined
from windowpane.values.aggregates import Algebra
from windowpane.values.errors import BadQuery, BadState
from windowpane.values.user_aggregates import UserAggregate

WHOLE, TEXT = pa.int64(), pa.string()
SCHEMA = pa.schema(
    [("ts", WHOLE), ("k", TEXT), ("p", WHOLE), ("v", pa.float64()), ("s", TEXT), ("b", pa.bool_())]
)


@dataclass(frozen=True)
class Pairs(wp.ContextAwareWindow):
    """A window from each tuple to the next of its key."""

    horizon: int = 1000

    def windows(self, keys, times, columns):  # noqa: ARG002 - the interface
        inner = np.nonzero(keys[1:] == keys[:-1])[0]
        inner = inner[times[inner + 1] > times[inner]]
        return keys[inner], times[inner], times[inner + 1]


@dataclass(frozen=True)
class Fives(wp.ContextFreeWindow):
    longest: int = 5

    def next_edge(self, time):
        return time // 5 * 5 + 5

    def triggers(self, after, upto):
        return ((end - 5, end) for end in range(after // 5 * 5 + 5, upto + 1, 5))


class Text(UserAggregate):
    """Text as a partial, without a repr of its own."""

    columns, algebra, type = ("p",), Algebra("holistic", commutative=False), pa.string()

    def lift(self, p):
        return (np.array([f"{x}," for x in p], object),)

    def combine(self, a, b):
        return (a[0] + b[0],)

    def lower(self, partial):
        return partial[0]

    def identity(self):
        return ("",)


WINDOWS = {
    "tumbling": wp.tumbling(10),
    "sliding": wp.sliding(20, 3),
    "with gaps": wp.sliding(2, 7),
    "session": wp.session(4),
    "landmark": wp.landmark(10),
    "landmark since": wp.landmark(10, start=15),
    "cumulative": wp.cumulative(5, 20),
    "own": Fives(),
    "rows": wp.rows(8, 3),
    "rows by arrival": wp.rows(8, 3, order="arrival"),
    "rows per key": wp.rows(4, 2).per(),
    "rows per column": wp.rows(4, 2).per("p"),
    "delimited by starts": wp.delimited(start="b"),
    "delimited by ends": wp.delimited(end="b"),
    "per row": wp.per_row(10, every=2),
    "per row by arrival": wp.per_row(10, every=3, order="arrival").per(),
    "last rows": wp.last_rows(5, 4),
    "last rows per key": wp.last_rows(3, 4).per(),
    "own, aware": Pairs(),
}
COMMUTATIVE = {
    "count": wp.count(),
    "sum": wp.sum("v"),
    "total": wp.sum("p"),
    "median": wp.median("v"),
    "first": wp.first("s"),
    "top": wp.top_k("s", 2),
    "approx": wp.approx_distinct("s"),
}
ORDERED = {**COMMUTATIVE, "collect": wp.collect("s")}
POLICIES = {
    "ordered": {},
    "delay": {"delay": 6},
    "slack": {"punctuation": wp.slack(3)},
    "melded": {"punctuation": wp.melded("s", wp.delay(2))},
    "heartbeat": {"punctuation": wp.heartbeat(50, 5)},
}


def rows_of(seed, n):
    """Rows that mostly rise in time, some of them late, with nulls everywhere."""
    rng = random.Random(seed)
    at, rows = 0, []
    for _ in range(n):
        at += rng.choice([0, 0, 1, 1, 2, 9])
        rows.append(
            {
                "ts": max(0, at - rng.choice([0, 0, 0, 3, 8])),
                "k": rng.choice(["a", "b", "", None]),
                "p": rng.randrange(4),
                "v": rng.choice([None, 0.5, -1.25, 3.0, 1e9]),
                "s": rng.choice(["x", "yy", "", None, "é"]),
                "b": rng.choice([True, False, False, None]),
            }
        )
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def query_of(window, aggregates=COMMUTATIVE, *, emit="final", **options):
    stream = wp.stream(schema=SCHEMA, time="ts", keys="k", **(options or {"delay": 6}))
    return stream.window(window).agg(name="q", emit=emit, **aggregates)


def batches(table, sizes):
    low = 0
    for size in sizes:
        yield table.slice(low, size)
        low += size
    yield table.slice(low)


def answers(query, parts, restarts):
    """All that a run gave, taken up again from bytes before each part whose number is in `restarts`."""
    runner, steps = query.start(), []
    for i, part in enumerate(parts):
        if i in restarts:
            runner = query.resume(runner.snapshot().to_bytes())
        steps.append(runner.push(part, now=i * 20))
        steps.append(runner.tick(i * 20 + 10))
    if len(parts) in restarts:
        runner = query.resume(runner.snapshot().to_bytes())
    steps.append(runner.close())
    told = [(repr(s.tables["q"].to_pylist()), repr(s.late.to_pylist()), s.counts) for s in steps]
    return told, runner.counts


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=max(10, settings().max_examples // 3))  # there are many windows
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(0, 30), min_size=1, max_size=6),
    st.sets(st.integers(0, 7), min_size=1),
    st.sampled_from([0, 5]),
    st.sampled_from(["final", "update"]),
    st.sampled_from([COMMUTATIVE, ORDERED]),
    st.sampled_from(sorted(POLICIES)),
)
def test_a_run_that_restarts_gives_the_same_answers(
    window, seed, sizes, restarts, lateness, emit, aggregates, policy
):
    query = query_of(WINDOWS[window], aggregates, emit=emit, lateness=lateness, **POLICIES[policy])
    parts = list(batches(rows_of(seed, 80), sizes))
    assert answers(query, parts, restarts) == answers(query, parts, set())


@pytest.mark.parametrize("window", WINDOWS)
def test_a_restored_run_has_the_same_state_and_nothing_to_store(window):
    query = query_of(WINDOWS[window], ORDERED, emit="update", delay=6, lateness=5)
    runner = query.start()
    for part in batches(rows_of(1, 300), [100, 100]):
        runner.push(part)
    before = runner.snapshot()
    after = query.resume(before.to_bytes()).snapshot()
    assert after.header == before.header
    assert after.blocks.changed(before.blocks.digests) == ({}, [])
    assert dict(after.blocks) == dict(before.blocks)


@pytest.mark.parametrize("some", [set(WINDOWS) - {"landmark"}, {"landmark", "sliding", "session", "rows"}])
def test_several_queries_restart_together(some):
    stream = wp.stream(schema=SCHEMA, time="ts", keys="k", delay=6, lateness=3)
    queries = [
        stream.window(window, keys=keys).agg(name=f"{name} {keys}", **ORDERED)
        for name, window in WINDOWS.items()
        for keys in ((), ("k", "p"))
        if name in some
    ]
    table = rows_of(3, 200)
    runner = wp.start(*queries)
    runner.push(table.slice(0, 120))
    other = resume(runner.snapshot(), *queries)
    alone, again = (joined([r.push(table.slice(120)), r.close()]) for r in (runner, other))
    assert all(alone.tables[q.node.name].equals(again.tables[q.node.name]) for q in queries)


def test_text_in_the_partial_of_a_users_aggregate_survives():
    query = query_of(wp.tumbling(10), {"first": wp.first("s")})
    query = query.__class__(
        replace(query.plan, queries=(replace(query.node, aggregates=(Text(),)),)), query.source
    )
    parts = list(batches(rows_of(5, 80), [30, 30]))
    assert answers(query, parts, {1, 2}) == answers(query, parts, set())


def test_a_run_that_was_closed_stays_closed():
    query = query_of(wp.tumbling(10))
    runner = query.start()
    runner.push(rows_of(1, 20))
    runner.close()
    with pytest.raises(BadQuery, match="closed"):
        query.resume(runner.snapshot()).push(rows_of(1, 20))


def test_taking_a_snapshot_changes_nothing():
    query = query_of(wp.session(4), ORDERED, delay=6, lateness=5)
    watched, alone = query.start(), query.start()
    for part in batches(rows_of(9, 200), [20] * 9):
        watched.snapshot().to_bytes()
        assert watched.push(part).tables["q"].equals(alone.push(part).tables["q"])


def test_a_snapshot_does_not_move_with_the_run():
    query = query_of(wp.sliding(20, 3), delay=6)
    runner = query.start()
    runner.push(rows_of(2, 50))
    taken = runner.snapshot()
    as_it_was = taken.to_bytes()
    runner.push(rows_of(2, 300).slice(50))
    assert taken.to_bytes() == as_it_was


def taken(window=WINDOWS["rows per key"], **options):
    query = query_of(window, ORDERED, delay=6, lateness=5, **options)
    runner = query.start()
    runner.push(rows_of(7, 150))
    return query, runner.snapshot()


@pytest.mark.parametrize("window", ["session", "sliding", "rows per key", "delimited by starts", "last rows"])
def test_a_flipped_byte_in_any_block_is_found_and_the_block_is_named(window):
    query, snapshot = taken(WINDOWS[window])
    rng = random.Random(1)
    for name, block in snapshot.blocks.items():
        for at in [0, 5, 9, 16, len(block) - 1, *rng.choices(range(len(block)), k=5)]:
            damaged = bytearray(block)
            damaged[at] ^= 0x10
            stored = Blocks({**snapshot.blocks, name: bytes(damaged)})
            with pytest.raises(BadState) as error:
                query.resume(Snapshot(snapshot.header, stored))
            assert repr(name) in str(error.value)


@given(st.data())
def test_a_flipped_byte_anywhere_in_the_bytes_is_found(data):
    query, snapshot = taken()
    damaged = bytearray(snapshot.to_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(BadState):
        query.resume(bytes(damaged))


@given(st.integers(0, 5000))
def test_bytes_that_are_cut_short_are_found(size):
    query, snapshot = taken()
    with pytest.raises(BadState):
        query.resume(snapshot.to_bytes()[:-1][:size])


def test_a_block_that_is_missing_is_named():
    query, snapshot = taken()
    for name in snapshot.blocks:
        stored = Blocks({n: b for n, b in snapshot.blocks.items() if n != name})
        with pytest.raises(BadState) as error:
            query.resume(Snapshot(snapshot.header, stored))
        assert repr(name) in str(error.value)


def test_a_block_of_an_older_snapshot_is_named():
    query = query_of(wp.rows(8, 3).per())
    runner = query.start()
    runner.push(rows_of(7, 50))
    old = runner.snapshot()
    runner.push(rows_of(8, 50))
    new = runner.snapshot()
    name = "lane rank|k|per k|time/counters/0"
    mixed = Blocks({**new.blocks, name: old.blocks[name]})
    with pytest.raises(BadState, match="counters/0' is whole but not of this snapshot"):
        query.resume(Snapshot(new.header, mixed))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"window": wp.tumbling(20)}, "window of query 'q' was (Sliding(size=10, slide=10, "),
        ({"aggregates": {"n": wp.count()}}, "aggregates of query 'q' was"),
        ({"emit": "update"}, "emit of query 'q' was final, is now update"),
        ({"lateness": 7}, "lateness of the stream was 0, is now 7"),
        ({"delay": 8}, "punctuation of the stream was Delay(delay=6), is now Delay(delay=8)"),
    ],
)
def test_a_snapshot_of_another_plan_says_what_changed(change, told):
    runner = query_of(wp.tumbling(10), delay=6).start()
    other = query_of(**{"window": wp.tumbling(10), "delay": 6, **change})
    with pytest.raises(BadState, match="the snapshot was written by another plan") as error:
        other.resume(runner.snapshot())
    assert told in str(error.value)


def test_another_type_of_a_column_or_another_query_is_told_too():
    query = query_of(wp.tumbling(10))
    snapshot = query.start().snapshot()
    wider = wp.stream(schema=SCHEMA.set(2, pa.field("p", pa.int32())), time="ts", keys="k", delay=6)
    other = wider.window(wp.tumbling(10)).agg(name="other", **COMMUTATIVE)
    with pytest.raises(BadState) as error:
        other.resume(snapshot)
    for told in ("type of column 'p' of the stream was int64, is now int32", "'q' is gone", "'other' is new"):
        assert told in str(error.value)


def test_bytes_of_something_else_are_refused():
    with pytest.raises(BadState, match="no snapshot"):
        query_of(wp.tumbling(10)).resume(b"PK\x03\x04 and so on, not a snapshot at all")


def test_a_users_aggregate_is_known_by_its_name_and_not_by_its_address():
    query = query_of(wp.tumbling(10))
    plans = [replace(query.plan, queries=(replace(query.node, aggregates=(Text(),)),)) for _ in range(2)]
    runner = Runner(plans[0])
    assert Runner.restore(plans[1], runner.snapshot()).counts == runner.counts


def seconds(low, high, keys=100):
    ts = np.repeat(np.arange(low, high) * 1_000_000, keys)
    k = np.tile(np.arange(keys), high - low)
    return pa.table({"ts": pa.array(ts, pa.timestamp("us")), "k": k, "v": ts % 1013})


def test_only_the_newest_slices_of_a_long_window_are_stored_again():
    stream = wp.stream(schema=seconds(0, 1).schema, time="ts", keys="k")
    query = stream.window(wp.sliding("1 h", "1 s")).agg(wp.count(), wp.sum("v"), wp.max("v"))
    runner = query.start()
    runner.push(seconds(0, 3000))
    before = runner.snapshot()
    runner.push(seconds(3000, 3003))
    after = runner.snapshot()
    put, gone = after.blocks.changed(before.blocks.digests)
    segments = [name for name in after.blocks if "/table/" in name]
    assert len(segments) > 30
    assert sum("/table/" in name for name in put) <= 2
    assert len(gone) <= 1
    store = {**before.blocks, **put}
    for name in gone:
        del store[name]
    assert (
        query.resume(Snapshot(after.header, Blocks(store)))
        .close()
        .tables["query"]
        .equals(runner.close().tables["query"])
    )
