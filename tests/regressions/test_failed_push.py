"""A push that fails leaves the run as it was: nothing of it counts, and nothing that it closed is lost."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import BadQuery, Overflow, UnknownColumn, WrongType

ROWS = pa.schema({"t": pa.int64(), "k": pa.string(), "u": pa.uint64()})


def rows(times: list[int], keys: list[str] | None = None, values: list[int] | None = None) -> pa.Table:
    keys, values = keys or ["a"] * len(times), values or [1] * len(times)
    return pa.table({"t": times, "k": keys, "u": values}, schema=ROWS)


def counts_of(step: wp.local.Step, name: str = "query") -> list[tuple[int, int]]:
    return [(r["window"]["start"], r["count"]) for r in step.tables[name].to_pylist()]


@pytest.mark.parametrize("policy", [wp.ordered(), wp.slack(1), wp.heartbeat("1 s"), wp.delay(3)])
def test_a_value_that_cannot_be_read_does_not_move_the_clock(policy):
    stream = wp.stream(schema=ROWS, time="t", punctuation=policy)
    runner = stream.window(wp.tumbling(10)).agg(wp.count(), wp.sum("u")).start()
    runner.push(rows([5]))
    with pytest.raises(WrongType, match="above the largest int64"):
        runner.push(rows([100, 101, 102], values=[1, 1, 2**64 - 1]))
    assert runner.push(rows([7])).counts.kept == 1
    assert runner.counts.input == runner.counts.kept == 2
    assert counts_of(runner.close()) == [(0, 2)]


def test_the_answers_of_other_queries_survive_an_overflow():
    stream = wp.stream(schema=ROWS, time="t")
    total = stream.window(wp.tumbling(10)).agg(wp.sum("u"), name="total")
    number = stream.window(wp.tumbling(10)).agg(wp.count(), name="number")
    runner = wp.start(total, number)
    runner.push(rows([1, 2], values=[2**62, 2**62]))
    for fails in (lambda: runner.push(rows([11])), lambda: runner.punctuate(10), runner.close):
        with pytest.raises(Overflow, match="does not fit int64"):
            fails()
    runner.remove("total")
    assert counts_of(runner.push(rows([11])), "number") == [(0, 2)]
    assert counts_of(runner.close(), "number") == [(10, 1)]
    assert runner.counts.kept == 3


def test_a_source_that_is_not_listed_does_not_stand_in_later_batches():
    policy = wp.melded("k", wp.ordered(), sources=["a", "b"])
    runner = (
        wp.stream(schema=ROWS, time="t", punctuation=policy).window(wp.tumbling(10)).agg(wp.count()).start()
    )
    runner.push(rows([1, 2], ["a", "b"]))
    with pytest.raises(BadQuery, match="'c' in column 'k' is not among the listed sources"):
        runner.push(rows([3], ["c"]))
    runner.push(rows([11, 12], ["a", "b"]))
    assert runner.bound == 11
    assert runner.counts.input == 4


def test_a_batch_with_a_column_twice_or_without_one_is_refused():
    runner = wp.stream(schema=ROWS, time="t").window(wp.tumbling(10)).agg(wp.count()).start()
    twice = pa.Table.from_arrays([*rows([1]).columns, pa.array([2])], names=["t", "k", "u", "t"])
    with pytest.raises(BadQuery, match="the batch has two columns 't'"):
        runner.push(twice)
    with pytest.raises(UnknownColumn):
        runner.push(rows([1]).drop_columns(["u"]))
    assert runner.counts.input == 0


def test_answers_of_a_query_that_was_removed():
    runner = wp.stream(schema=ROWS, time="t").window(wp.tumbling(10)).agg(wp.count()).start()
    runner.remove("query")
    with pytest.raises(BadQuery, match="removed"):
        runner.answers(runner.push(rows([1])))


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_table_that_fails_in_its_last_piece_can_be_pushed_again(monkeypatch, chunked):
    """Larger batches than the runner takes at once, and tables of several chunks."""
    monkeypatch.setattr("windowpane.local.runner._MOST_ROWS", 10**6 if chunked else 2)
    runner = wp.stream(schema=ROWS, time="t").window(wp.tumbling(10)).agg(wp.count(), wp.sum("u")).start()
    bad = rows([1, 11, 21, 31], values=[1, 1, 1, 2**64 - 1])
    if chunked:
        bad = pa.concat_tables([bad.slice(0, 2), bad.slice(2)])
    with pytest.raises(WrongType, match="above the largest int64") as failed:
        runner.push(bad)
    assert not hasattr(failed.value, "__notes__")
    assert runner.counts.input == 0
    step = runner.push(rows([1, 11, 21, 31]))
    assert counts_of(step) == [(0, 1), (10, 1), (20, 1)]
    assert counts_of(runner.close()) == [(30, 1)]
    assert runner.counts.kept == 4


def test_a_failed_list_says_how_many_rows_were_taken():
    runner = wp.stream(schema=ROWS, time="t").window(wp.tumbling(10)).agg(wp.count()).start()
    with pytest.raises(UnknownColumn) as failed:
        runner.push([rows([1, 2, 11]), rows([12]), rows([13]).drop_columns(["u"])])
    assert failed.value.__notes__[0].startswith("4 rows of this push were taken in before it failed")
    assert counts_of(runner.push(rows([13]))) == [(0, 2)]
    assert counts_of(runner.close()) == [(10, 3)]
