"""Conditions and computed columns belong to the stream: every row goes through them, however it comes."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windowpane as wp
from windowpane.errors import BadQuery, BadState, UnknownColumn, WrongType
from windowpane.local import runner as runner_module
from windowpane.plan.fingerprint import fingerprint

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.string(), "v": pa.int64()})
V = pc.field("v")
WINDOW = wp.tumbling(10)


def rows(times, values, keys=None):
    return pa.table({"t": times, "k": keys or ["a"] * len(times), "v": values}, schema=SCHEMA)


DATA = rows([1, 2, 3, 11, 12, 21], [10, -1, 20, -5, 7, 3], list("abaabb"))
ANSWERS = [("a", 0, 2, 60), ("b", 10, 1, 14), ("b", 20, 1, 6)]
"""By key and start: count and sum of twice `v` where `v` is above 0."""


def stream_of(source=None, **options):
    how = {"schema": SCHEMA} if source is None else {}
    return wp.stream(source, time="t", keys="k", delay=5, **how, **options)


def derived(source=None, **options):
    """Only where `v` is above 0, and twice `v` as `d` in its place."""
    return stream_of(source, **options).where(V > 0).select("t", "k", d=V * 2)


def asked(stream, **options):
    return stream.window(WINDOW).agg(wp.count(), total=wp.sum("d"), **options)


def answers(*steps, name="query"):
    found = [row for step in steps for row in step.tables[name].to_pylist()]
    return sorted((r["k"], r["window"]["start"], r["count"], r["total"]) for r in found)


def halves(table=DATA):
    return table.slice(0, 3), table.slice(3)


def test_pushed_rows_go_through_conditions_and_computed_columns():
    """They were ignored: only the rows of a source went through them."""
    runner = asked(derived()).start()
    steps = [runner.push(part) for part in halves()]
    assert answers(*steps, runner.close()) == ANSWERS == answers(asked(derived(DATA)).run())


def test_a_condition_alone_is_no_less_than_one_with_computed_columns():
    runner = stream_of().where(V > 0).window(WINDOW).agg(wp.count(), total=wp.sum("v")).start()
    assert answers(runner.push(DATA), runner.close()) == [("a", 0, 2, 30), ("b", 10, 1, 7), ("b", 20, 1, 3)]


def test_a_stream_with_a_source_takes_pushed_rows_as_the_source_has_them():
    runner = asked(derived(DATA)).start()
    assert answers(runner.push(DATA), runner.close()) == ANSWERS


def test_rows_pushed_after_a_resume_go_through_them():
    query = asked(derived())
    first = query.start()
    steps = [first.push(halves()[0])]
    again = asked(derived()).resume(first.snapshot().to_bytes())
    assert answers(*steps, again.push(halves()[1]), again.close()) == ANSWERS


def test_all_queries_over_one_stream_have_them():
    for source in (DATA, None):
        stream = derived(source)
        queries = [asked(stream, name=name) for name in ("one", "two")]
        if source is None:
            runner = wp.start(*queries)
            steps = [runner.push(DATA), runner.close()]
        else:
            steps = [wp.run(*queries)]
        assert answers(*steps, name="one") == answers(*steps, name="two") == ANSWERS


def test_streams_of_one_source_with_other_conditions_are_other_streams():
    stream = stream_of(DATA)
    queries = [
        stream.where(pc.field("v") > least).window(WINDOW).agg(wp.count(), name=f"q{least}")
        for least in (0, 1)
    ]
    with pytest.raises(BadQuery, match="the queries read different streams"):
        wp.run(*queries)


def test_a_query_that_is_added_reads_the_same_rows():
    stream = derived()
    runner = asked(stream, name="one").start()
    steps = [runner.push(halves()[0])]
    runner.add(asked(stream, name="two"))
    with pytest.raises(BadQuery, match="query 'three' reads another stream"):
        runner.add(asked(stream_of().where(V > 1).select("t", "k", d=V * 2), name="three"))
    steps += [runner.push(halves()[1]), runner.close()]
    assert answers(*steps, name="one") == ANSWERS
    assert answers(*steps[1:], name="two") == [one for one in ANSWERS if one[1] > 0]


def test_numbers_of_another_type_make_another_stream_though_they_print_alike():
    whole, part = (stream_of().where(V / two > 0) for two in (2, 2.0))
    runner = whole.window(WINDOW).agg(wp.count()).start()
    with pytest.raises(BadQuery, match="reads another stream"):
        runner.add(part.window(WINDOW).agg(wp.count(), name="other"))


def test_runs_within_memory_have_them_and_go_on_with_them(tmp_path):
    query = asked(derived())
    with query.start(memory="8 MB") as runner:
        assert answers(runner.push(DATA), runner.close()) == ANSWERS
    assert answers(asked(derived(DATA)).run(memory="8 MB")) == ANSWERS
    first = query.start(memory="8 MB", spill_dir=tmp_path)
    steps = [first.push(halves()[0])]
    first.checkpoint()
    first.discard()
    with pytest.raises(BadState, match=r"where of the stream was \(v > 0\), is now \(v > 1\)"):
        asked(stream_of().where(V > 1).select("t", "k", d=V * 2)).resume(tmp_path)
    again = query.resume(tmp_path)
    assert answers(*steps, again.push(halves()[1]), again.close()) == ANSWERS


def test_rows_that_a_condition_drops_are_not_counted_and_not_looked_at():
    """Not as input, not as late or rejected; and no time of theirs moves the bound."""
    table = rows([1, 100, None, 12, 3], [1, -1, -1, 2, 3])
    for way in ("run", "push"):
        query = stream_of(table if way == "run" else None, max_ahead=50).where(V > 0)
        query = query.window(WINDOW).agg(wp.count())
        if way == "run":
            counts = query.run().counts
        else:
            runner = query.start()
            runner.push(table)
            assert runner.bound == 7
            counts = runner.counts
        assert (counts.input, counts.kept, counts.late, counts.rejected) == (3, 2, 1, 0)


def test_rows_for_which_a_condition_is_null_are_dropped():
    runner = stream_of().where(V > 0).window(WINDOW).agg(wp.count()).start()
    assert runner.push(rows([1, 2], [None, 1])).counts.input == 1


def test_a_push_of_which_no_row_is_left_is_a_step_without_answers():
    runner = asked(derived()).start()
    for nothing in (rows([1, 99], [-1, -1]), rows([], [])):
        step = runner.push(nothing)
        assert (step.counts.input, answers(step)) == (0, [])
    assert answers(runner.push(DATA), runner.close()) == ANSWERS


def test_steps_are_taken_in_the_order_in_which_they_were_written():
    first = stream_of().select("t", "k", v=V - 8).where(V > 0)
    then = stream_of().where(V > 0).select("t", "k", v=V - 8)
    found = []
    for stream in (first, then):
        runner = stream.window(wp.tumbling(100), keys=()).agg(wp.collect("v")).start()
        runner.push(DATA)
        found += runner.close().tables["query"]["collect_v"].to_pylist()
    assert found == [[2, 12], [2, 12, -1, -5]]


def test_rows_keep_their_order_through_many_batches_of_a_large_push():
    n = 200_000
    table = rows(list(range(n)), [i % 3 for i in range(n)])
    stream = wp.stream(schema=SCHEMA, time="t").where(V > 0).select("t", w=V)
    runner = stream.window(wp.tumbling(n)).agg(wp.count()).start()
    step = runner.push(table)
    assert (step.counts.kept, step.counts.late) == (step.counts.input, 0)
    assert step.counts.input == sum(1 for i in range(n) if i % 3)


def test_pushed_batches_have_the_columns_from_before_select():
    runner = asked(derived()).start()
    made = pa.table({"t": [1], "k": ["a"], "d": [20]})
    with pytest.raises(UnknownColumn, match="the batch has no column 'v'; it has t, k, d"):
        runner.push(made)
    with pytest.raises(WrongType, match="column 'v' has type string, but int64, as in the first batch"):
        runner.push(DATA.set_column(2, "v", pa.array(["x"] * len(DATA))))
    other = DATA.append_column("more", pa.array(range(len(DATA)))).select(["more", "v", "t", "k"])
    texts = other.set_column(3, "k", other["k"].dictionary_encode())
    assert answers(runner.push(texts), runner.close()) == ANSWERS


def test_a_failed_list_tells_the_rows_that_were_given_and_not_those_that_were_left(tmp_path):
    bad = DATA.drop_columns(["v"])
    for memory in ({}, {"memory": "8 MB", "spill_dir": tmp_path}):
        runner = asked(derived()).start(**memory)
        with pytest.raises(UnknownColumn) as failed:
            runner.push([*halves(), bad])
        assert failed.value.__notes__[0].startswith("6 rows of this push were taken in before it failed")
        assert answers(runner.close()) == ANSWERS


def test_rows_for_which_an_expression_fails_leave_the_run_as_it_was(monkeypatch):
    monkeypatch.setattr(runner_module, "_MOST_ROWS", 2)
    stream = stream_of().select("t", "k", d=pc.scalar(100) / V)
    runner = asked(stream).start()
    with pytest.raises(BadQuery, match=r"select\(.*d=divide.*failed for a row of stream: divide by zero"):
        runner.push(rows([1, 2, 3], [1, 2, 0]))
    assert runner.counts.input == 0
    assert answers(runner.push(rows([1, 2, 3], [1, 2, 4])), runner.close()) == [("a", 0, 3, 175)]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda s: s.where(pc.field("w") > 0), r"where\(\(w > 0\)\): No match for FieldRef.Name\(w\)"),
        (lambda s: s.where(V + 1), r"where\(.*\): Filter expression must evaluate to bool"),
        (lambda s: s.select("t", "k", d=pc.field("w")), r"select\(t=t, k=k, d=w\): No match for FieldRef"),
        (lambda s: s.select("t", "k", d=V + "x"), r"select\(.*\): .*no kernel"),
        (lambda s: s.where("v > 0"), "in this process give an expression"),
        (lambda s: s.select("t", "k", d="v * 2"), "in this process give an expression"),
    ],
)
def test_an_expression_that_cannot_be_is_an_error_when_the_stream_is_built(wrong, told):
    for source in (None, DATA):
        with pytest.raises(BadQuery, match=f"(?i){told}"):
            wrong(stream_of(source))


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        (
            lambda s: s.where(V > 5),
            lambda s: s.where(V > 6),
            r"where of the stream was \(v > 5\), is now \(v > 6\)",
        ),
        (lambda s: s.where(V > 5), lambda s: s, r"where of the stream was \(v > 5\), is now absent"),
        (lambda s: s, lambda s: s.where(V > 5), r"where of the stream was absent, is now \(v > 5\)"),
        (
            lambda s: s.select("t", "k", v=V * 2),
            lambda s: s.select("t", "k", v=V * 3),
            r"text of column 'v' of the stream was .*v.* 2\), is now .*v.* 3\)",
        ),
        (
            lambda s: s.select("t", "k", v=V, w=V * 2).where(pc.field("w") > 5).select("t", "k", "v"),
            lambda s: s.select("t", "k", v=V, w=V * 3).where(pc.field("w") > 5).select("t", "k", "v"),
            r"was \(w > 5\) with w = .*2\), is now \(w > 5\) with w = .*3\)",
        ),
        (  # pyarrow leaves the middle of a long list out
            lambda s: s.where(V.isin(list(range(100)))),
            lambda s: s.where(V.isin([i if i != 50 else -50 for i in range(100)])),
            "where of the stream was is_in",
        ),
    ],
)
def test_a_run_does_not_go_on_with_another_condition_or_computed_column(then, now, told):
    before, same, after = (
        how(stream_of()).window(WINDOW).agg(wp.count(), wp.sum("v")) for how in (then, then, now)
    )
    runner = before.start()
    runner.push(DATA)
    snapshot = runner.snapshot().to_bytes()
    with pytest.raises(BadState, match=told):
        after.resume(snapshot)
    assert same.resume(snapshot).counts == runner.counts


def chained(source=None, least=0, again=1):
    """How many windows of a key had a sum above `again`, of the rows above `least`."""
    inner = stream_of(source).where(pc.field("v") > least).window(WINDOW).agg(total=wp.sum("v"))
    stream = wp.stream(inner, time="window_end", keys="k").where(pc.field("total") > again)
    return stream.window(wp.tumbling(100)).agg(wp.count(), total=wp.sum("total"))


def test_conditions_between_two_queries_hold_for_a_run_and_for_pushed_answers():
    wanted = [("a", 0, 1, 30), ("b", 0, 1, 7)]
    assert answers(chained(DATA, again=3).run()) == wanted
    runner = chained(again=3).start()
    pushed = {
        "k": ["a", "b", "b"], "window_start": [0, 10, 20], "window_end": [10, 20, 30],
        "total": [30, 7, 3], "revision": pa.array([0, 0, 0], pa.int32()),
    }  # fmt: skip
    assert answers(runner.push(pushed), runner.close()) == wanted


def test_a_chained_run_is_refused_for_its_own_condition_and_not_for_that_of_the_query_before():
    """The state of a run depends on the answers that it is given; how they came about the other run knows."""
    snapshot = chained().start().snapshot()
    with pytest.raises(BadState, match=r"where of the stream was \(total > 1\), is now \(total > 2\)"):
        chained(again=2).resume(snapshot)
    assert chained(least=3).resume(snapshot).counts.input == 0


def test_plans_with_conditions_travel_as_bytes():
    plan = asked(derived()).plan
    there = pickle.loads(pickle.dumps(plan))  # noqa: S301 - our own bytes
    assert there == plan
    assert fingerprint(there) == fingerprint(plan)


def test_texts_that_only_spark_can_run_do_not_go_unnoticed_in_this_process():
    """The plan of a stream on Spark, to which rows are pushed by hand."""
    stream = stream_of()
    for node, told in (
        (stream.node.where("v > 0"), "only Spark can run the condition 'v > 0' of 'stream'"),
        (stream.node.computing({"v": "w * 2"}), "only Spark can run column 'v' from 'w [*] 2'"),
    ):
        query = replace(stream, node=node).window(WINDOW).agg(wp.count())
        with pytest.raises(BadQuery, match=told):
            query.start()
