"""The first row of a stream waits as long as it is alone: nothing tells yet whether its time is absurd."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from tests.property.harness import batch_of
from tests.property.strategies import FAMILIES, FEW_ORDERED, Shape, cases, for_each
from windowpane.core.arrays import NEVER
from windowpane.errors import BadQuery
from windowpane.local import resume
from windowpane.local.admission import Gate
from windowpane.local.runner import joined
from windowpane.query import together

SCHEMA = pa.schema([("t", pa.int64()), ("s", pa.string()), ("m", pa.bool_()), ("seq", pa.int64())])
FAR = 10**9


def query_of(policy=None, ahead=100, window=None, **how):
    stream = wp.stream(schema=SCHEMA, time="t", punctuation=policy, max_ahead=ahead, **how)
    return stream.window(window or wp.tumbling(10)).agg(wp.count())


def row(t, seq=0, *, s="a", m=False):
    return pa.record_batch([[t], [s], [m], [seq]], schema=SCHEMA)


def seqs(table):
    return table["seq"].to_pylist()


def expected(times, ahead, delay):
    """The rule, row by row: which are kept, late, too far ahead; one that waits in the end is kept."""
    kept, late, far = [], [], []
    waits = high = None
    for seq, t in enumerate(times):
        if high is None and waits is None:
            waits = seq
        elif high is None and t > times[waits] + ahead:
            far.append(seq)
        elif high is None and t < times[waits] - ahead:
            far.append(waits)
            waits = seq
        else:
            if high is None:
                kept.append(waits)
                high = times[waits]
            (late if t < high - delay else far if t > high + ahead else kept).append(seq)
            high = max(high, t) if seq in kept else high
    return kept if high is not None else [waits], late, far


times_ = st.lists(st.one_of(st.integers(0, 90), st.integers(500, 590)), min_size=1, max_size=12)


@given(times=times_, ahead=st.integers(0, 60), delay=st.integers(0, 30), again=st.booleans())
def test_a_row_near_the_first_one_confirms_it_and_one_far_below_shows_it_to_be_absurd(
    times, ahead, delay, again
):
    query = query_of(wp.delay(delay), ahead)
    runner, steps = query.start(), []
    for seq, t in enumerate(times):
        steps.append(runner.push(row(t, seq)))
        if again:
            runner = resume(runner.snapshot().to_bytes(), query)
    step = joined([*steps, runner.close()])
    kept, late, far = expected(times, ahead, delay)
    assert (seqs(step.late), seqs(step.rejects)) == (late, far)
    assert set(step.rejects["reason"].to_pylist()) <= {"too far ahead"}
    assert sum(runner.answers(step)["count"].to_pylist()) == len(kept)
    assert step.counts == runner.counts
    total = step.counts
    assert (total.input, total.kept) == (len(times), len(kept))


@pytest.mark.parametrize("family", FAMILIES)
@for_each
@given(data=st.data())
def test_no_answer_comes_later_because_the_first_row_waits(family, data):
    """Its own bound closes no window that holds it, so that nothing is missed while it waits."""
    case = data.draw(cases(family, FEW_ORDERED, Shape(most=12, odd=False, wide=40)))
    at_once, waiting = case.query().start(), case.query().start()
    waiting.gate = Gate(replace(waiting.plan.stream, max_ahead=10**6))
    both = [[runner.push(batch_of([one])) for one in case.rows] for runner in (at_once, waiting)]
    free, held = ([*steps, r.close()] for steps, r in zip(both, (at_once, waiting), strict=True))
    if any(getattr(window, "order", "") == "arrival" for window in case.windows):
        # these go by arrival and not by the bound: the first row alone can be a window
        free, held = ([joined(steps[:2]), *steps[2:]] for steps in (free, held))
    for step, other in zip(free, held, strict=True):
        assert step.tables["query"].equals(other.tables["query"])


def test_an_absurd_first_row_is_rejected_once_another_tells_and_moves_nothing():
    runner = query_of(wp.ordered()).start()
    step = runner.push(row(FAR, 0))
    assert (runner.bound, runner.gate.clock.high, step.counts.input) == (NEVER, NEVER, 0)
    step = runner.push(row(5, 1))
    assert (seqs(step.rejects), step.rejects["reason"].to_pylist()) == ([0], ["too far ahead"])
    assert (runner.bound, step.counts.input) == (NEVER, 1)
    runner.push(row(7, 2))
    assert (runner.bound, runner.gate.clock.high, runner.counts.kept) == (7, 7, 2)


def test_of_a_batch_all_but_one_of_which_is_too_far_ahead_that_one_waits():
    runner = query_of(wp.ordered()).start()
    batch = pa.Table.from_batches([row(5, 0), row(FAR, 1)]).combine_chunks().to_batches()[0]
    assert seqs(runner.push(batch).rejects) == [1]
    assert (runner.bound, runner.counts.kept) == (NEVER, 0)
    assert runner.push(row(-FAR, 2)).counts.rejects == {"too far ahead": 1}


def test_the_end_of_the_stream_confirms_the_only_row():
    runner = query_of().start()
    runner.push(row(5))
    step = runner.close()
    assert runner.answers(step)["count"].to_pylist() == [1]
    assert (step.counts.input, step.counts.kept) == (1, 1)


def test_a_bound_by_hand_counts_and_confirms_a_row_that_is_near_it():
    runner = query_of(wp.manual()).start()
    runner.push(row(105, 0))
    assert runner.punctuate(4).counts.kept == 0
    assert runner.bound == 4
    step = runner.punctuate(110)  # the row came before, so that it is not late by this
    assert runner.answers(step)["count"].to_pylist() == [1]
    assert (step.counts.kept, runner.bound) == (1, 110)


def test_a_row_near_the_bound_need_not_wait():
    runner = query_of(wp.delay(3)).start()
    runner.punctuate(50)
    assert runner.push(row(150)).counts.kept == 1
    assert runner.bound == 147
    late = query_of(wp.delay(3)).start()
    late.punctuate(50)
    assert late.push(row(49)).counts.late == 1


def test_a_bound_far_below_tells_nothing_of_the_first_row():
    runner = query_of(wp.delay(3)).start()
    runner.punctuate(0)
    runner.push(row(FAR, 0))
    assert runner.push(row(1000, 1)).counts.rejects == {"too far ahead": 1}
    assert runner.push(row(1001, 2)).counts.kept == 2
    assert runner.bound == 998


def test_in_a_lull_the_clock_confirms_a_row_that_is_near_it_as_if_it_had_not_waited():
    ahead, free = (query_of(wp.heartbeat(50, delay=5), limit).start() for limit in (100, None))
    for runner in (ahead, free):
        runner.tick(900)
        runner.push(row(940), now=945)
        runner.tick(970)
        assert runner.counts.kept + (runner.gate.first is not None) == 1
        runner.tick(994)
        assert runner.bound in (935, NEVER)
        runner.tick(995)
        assert (runner.bound, runner.counts.kept) == (990, 1)
    absurd = query_of(wp.heartbeat(50, delay=5)).start()
    absurd.push(row(FAR, 0), now=945)
    absurd.tick(995)
    assert absurd.bound == 990
    assert absurd.push(row(996, 1), now=996).counts.kept == 1
    assert absurd.counts.rejects == {"too far ahead": 1}


def test_a_first_marker_waits_as_a_row_does():
    runner = query_of(wp.external("m")).start()
    runner.push(row(FAR, 0, m=True))
    assert runner.bound == NEVER
    assert seqs(runner.push(row(5, 1)).rejects) == [0]
    step = runner.push(row(20, 2, m=True))  # near the row, so that both are confirmed
    assert (runner.bound, step.counts.kept, step.counts.markers) == (20, 1, 1)
    assert runner.answers(step)["count"].to_pylist() == [1]


def test_a_first_row_of_a_source_that_is_not_listed_is_an_error_of_its_own_push():
    runner = query_of(wp.melded("s", wp.delay(1), sources=["a", "b"])).start()
    with pytest.raises(BadQuery, match="'z' in column 's' is not among the listed"):
        runner.push(row(5, s="z"))
    runner.push([row(6, s="a"), row(7, s="b")])
    assert (runner.bound, runner.counts.kept) == (5, 2)


def test_a_push_that_fails_says_how_many_rows_were_taken_in_with_the_one_that_waits():
    runner = query_of().start()
    bad = pa.record_batch([["x"]], names=["t"])
    with pytest.raises(Exception, match="t") as failure:
        runner.push([row(5, 0), bad])
    assert failure.value.__notes__[0].startswith("1 rows of this push were taken in")
    with pytest.raises(Exception, match="t") as failure:
        runner.push([row(6, 1), bad])
    assert failure.value.__notes__[0].startswith("1 rows of this push were taken in")
    assert runner.push(row(7, 2)).counts.kept == 3


def test_a_push_that_fails_leaves_the_row_waiting():
    runner = query_of().start()
    runner.push(row(FAR, 0))
    bad = pa.table({"t": pa.array([5]), "s": ["a"], "m": ["no"], "seq": [1]})
    with pytest.raises(Exception, match="m"):
        runner.push(bad)
    assert runner.push(row(5, 1)).counts.rejects == {"too far ahead": 1}


def test_rows_within_memory_wait_too_and_go_on_from_a_checkpoint(tmp_path):
    query = query_of(wp.delay(2), window=wp.sliding(20, 10))
    runner = query.start(memory="4 MB", spill_dir=tmp_path)
    runner.push(row(FAR, 0))
    runner.checkpoint()
    runner.discard()
    runner = resume(tmp_path, query)
    step = joined([runner.push(row(t, 1 + i)) for i, t in enumerate((3, 4, 25))] + [runner.close()])
    assert seqs(step.rejects) == [0]
    assert (runner.counts.input, runner.counts.kept) == (4, 3)
    found = [(r["window"]["start"], r["count"]) for r in runner.answers(step).to_pylist()]
    assert found == [(-10, 2), (0, 2), (10, 1), (20, 1)]


def test_a_snapshot_from_before_rows_waited_goes_on_as_confirmed():
    query = query_of(wp.ordered())
    runner = query.start()
    runner.push([row(5), row(6)])
    old = runner.snapshot()
    header = json.loads(json.dumps(old.header))
    assert "first" not in header["gate"]
    header["gate"]["clock"]["clock"] = [6, 6, 5]  # the anchor was the median
    other = type(runner).restore(together([query])[0], type(old)(header, old.blocks))
    assert other.push(row(7)).counts.kept == 1
    assert other.bound == 7


def test_one_row_of_a_large_batch_is_stored_alone():
    runner = query_of().start()
    times = np.full(10_000, 5)
    table = pa.table({"t": times, "s": ["x" * 50] * 10_000, "m": [None] * 10_000, "seq": times})
    times = pa.array([5, *[None] * 9_999], pa.int64())
    runner.push(table.set_column(0, "t", times))
    assert runner.counts.rejects == {"null time": 9_999}
    assert len(runner.snapshot().header["gate"]["first"]["row"]) < 3_000
