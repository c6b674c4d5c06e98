"""When answers come: in the step whose punctuation closes them, once, and revised where lateness allows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from tests.property.harness import (
    Case,
    Seen,
    batch_of,
    check,
    closed_answers,
    drained_answers,
    kept_of,
    rows_of,
    same,
)
from tests.property.strategies import FAMILIES, FEW, FEW_ORDERED, Shape, cases, for_each, inputs

SMALL = Shape(most=25, odd=False, wide=40)
LATE = Shape(least=12, most=25, late=True, odd=False, wide=40)
few = st.sampled_from(["commutative", "ordered"]).map({"commutative": FEW, "ordered": FEW_ORDERED}.get)


@pytest.mark.parametrize("family", FAMILIES)
@for_each
@given(data=st.data())
def test_an_answer_comes_once_and_with_the_punctuation_that_closes_it(family, data):
    check(data.draw(cases(family, data.draw(few), SMALL)), steps=True)


@pytest.mark.parametrize("family", FAMILIES)
@for_each
@given(data=st.data())
def test_rows_within_the_lateness_revise_answers(family, data):
    lateness = data.draw(st.sampled_from([4, 15, 100]))
    check(data.draw(cases(family, data.draw(few), LATE, lateness=lateness)), steps=True)


@pytest.mark.parametrize("family", FAMILIES)
@for_each
@given(data=st.data())
def test_early_answers_are_those_of_the_rows_so_far(family, data):
    lateness = data.draw(st.sampled_from([0, 20]))
    shape = LATE if lateness else SMALL
    check(data.draw(cases(family, data.draw(few), shape, lateness=lateness, emit="update")), steps=True)


def verdicts(case: Case, cuts) -> tuple[list[int], list[int], object]:
    runner = replace(case, cuts=cuts).query().start()
    steps = [runner.push(batch_of(batch)) for batch in replace(case, cuts=cuts).batches]
    late = [seq for step in steps for seq in step.late.column("seq").to_pylist()]
    rejected = [seq for step in steps for seq in step.rejects.column("seq").to_pylist()]
    return late, rejected, runner.counts


@given(data=st.data())
def test_which_rows_are_late_does_not_depend_on_the_batches(data):
    found = data.draw(inputs(LATE))
    policy = data.draw(st.sampled_from([None, wp.slack(0), wp.slack(3), wp.external("up")]))
    lateness = data.draw(st.sampled_from([0, 3]))
    case = Case((wp.tumbling(5),), FEW, **found, lateness=lateness, policy=policy)
    whole, split = verdicts(case, []), verdicts(case, case.cuts)
    assert whole == split
    assert whole == verdicts(case, range(len(case.rows)))
    counts = whole[2]
    assert counts.kept + counts.late + counts.rejected + counts.markers == counts.input == len(case.rows)


@given(data=st.data())
def test_other_policies_close_windows_by_their_own_bound(data):
    found = data.draw(inputs(LATE))
    policy = data.draw(st.sampled_from([wp.slack(0), wp.slack(3), wp.slack(50), wp.manual()]))
    family = data.draw(st.sampled_from(sorted(FAMILIES)))
    window = data.draw(FAMILIES[family])
    check(Case((window,), FEW_ORDERED, **found, policy=policy), steps=True)


@pytest.mark.parametrize("family", FAMILIES)
@for_each
@given(data=st.data())
def test_punctuation_by_hand_closes_what_it_says(family, data):
    case = replace(data.draw(cases(family, FEW_ORDERED, SMALL)), policy=wp.manual())
    runner = case.query().start()
    tie = None if case.ties else runner.operator.tie
    seen, kept = Seen(), []
    for batch in case.batches:
        step = runner.push(batch_of(batch))
        kept += kept_of(batch, step)
        seen.take(rows_of(case, runner.answers(step)))
        times = [row["ts"] for row in case.rows]
        step = runner.punctuate(data.draw(st.integers(min(times) - 5, max(times) + 20)))
        seen.take(rows_of(case, runner.answers(step)))
        same(seen.view, closed_answers(case, kept, runner.bound, tie))
    upto = runner.bound
    seen.take(rows_of(case, runner.answers(runner.close())))
    same(seen.view, drained_answers(case, kept, upto, tie))
