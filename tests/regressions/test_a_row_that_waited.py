"""A first row that waits comes with its own clock, dictionary and provisional answer, as if it had not."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windowpane as wp
from tests.spark.pump import Pump
from windowpane.errors import BadState

SCHEMA = pa.schema({"t": pa.int64(), "s": pa.string(), "m": pa.bool_()})


def table_of(*rows):
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


@pytest.mark.parametrize("ahead", [None, 100])
def test_its_source_was_heard_when_it_came_not_when_it_was_confirmed(ahead):
    policy = wp.melded("s", wp.heartbeat(30, delay=0))
    stream = wp.stream(schema=SCHEMA, time="t", punctuation=policy, max_ahead=ahead)
    runner = stream.window(wp.session(5)).agg(wp.count()).start()
    for t, source, now in ((50, "a", 40), (60, "b", 80), (55, "a", 81)):
        runner.push(table_of((t, source, False)), now=now)
        runner.tick(now)
    assert runner.bound == 60
    assert (runner.counts.kept, runner.counts.late) == (2, 1)


@pytest.mark.parametrize("ahead", [None, 10**9])
def test_the_tick_after_it_tells_when_it_came(ahead):
    stream = wp.stream(schema=SCHEMA, time="t", punctuation=wp.heartbeat(30, delay=5), max_ahead=ahead)
    runner = stream.window(wp.tumbling(10)).agg(wp.count()).start()
    runner.push(table_of((50, "a", False)))
    assert [len(runner.answers(runner.tick(now))) for now in (100, 130)] == [0, 1]
    assert runner.bound == 125


def test_its_dictionary_need_not_fit_that_of_the_next_batch():
    kind = pa.dictionary(pa.int8(), pa.string())

    def batch(time, prefix, rows):
        words = pa.array([f"{prefix}{i}" for i in range(rows)])
        keys = pa.DictionaryArray.from_arrays(pa.array(range(rows), pa.int8()), words)
        return pa.record_batch([pa.array([time] * rows), keys], schema=schema)

    schema = pa.schema({"t": pa.int64(), "k": kind})
    stream = wp.stream(schema=schema, time="t", keys="k", max_ahead=10)
    runner = stream.window(wp.tumbling(10)).agg(wp.count()).start()
    runner.push(batch(1, "a", 1))
    runner.push(batch(2, "b", 128))
    assert len(runner.answers(runner.close())) == 129


def test_its_window_has_a_provisional_answer_in_both_runtimes():
    stream = wp.stream(schema=SCHEMA, time="t", delay=1_000, max_ahead=100)
    query = stream.window(wp.tumbling(10), keys="s").agg(wp.count(), emit="update")
    pump, runner, found = Pump(query), query.start(), []
    for t, key in ((5, "a"), (6, "b"), (7, "b")):
        found += runner.answers(runner.push(table_of((t, key, False)))).to_pylist()
        pump.push(table_of((t, key, False)))
    assert [(row["s"], row["count"]) for row in found] == [("a", 1), ("b", 1), ("b", 2)]
    assert sorted(map(repr, pump.table().to_pylist())) == sorted(map(repr, found))


@pytest.mark.parametrize("cuts", [(3,), (2, 3), (1, 2, 3)])
def test_a_marker_is_progress_whichever_batch_it_comes_with(cuts):
    rows = [(0, "a", False), (10, "a", False), (90, "a", True), (150, "a", False)]
    policy = wp.melded("s", wp.external("m"), sources=["a", "b"])  # b holds the bound back
    stream = wp.stream(schema=SCHEMA, time="t", punctuation=policy, max_ahead=100)
    query = stream.window(wp.session(5)).agg(wp.count())
    pump, runner = Pump(query), query.start()
    for low, high in zip((0, *cuts), (*cuts, 4), strict=True):
        runner.push(table_of(*rows[low:high]))
        pump.push(table_of(*rows[low:high]))
    assert (runner.counts.kept, runner.counts.markers, runner.counts.rejected) == (3, 1, 0)
    assert (pump.counts.kept, pump.counts.markers, pump.counts.too_far_ahead) == (3, 1, 0)


def test_conditions_that_differ_in_blanks_within_a_text_are_others():
    def query(condition):
        return wp.stream(schema=SCHEMA, time="t").where(condition).window(wp.tumbling(10)).agg(wp.count())

    snapshot = query(pc.field("s") == "a  b").start().snapshot()
    with pytest.raises(BadState, match="where of the stream was"):
        query(pc.field("s") == "a b").resume(snapshot)
