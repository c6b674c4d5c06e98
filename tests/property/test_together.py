"""Several windows and several queries over one stream share one pass, and answer as if each were alone."""

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
    drained_answers,
    kept_of,
    rows_of,
    same,
    split_final,
)
from tests.property.strategies import FAMILIES, FEW, FEW_ORDERED, Shape, for_each, inputs, key_sets, ties
from windowpane.values.windows import OWN_KEYS, Rows

SHAPE = Shape(most=25, wide=40)
LATE = Shape(least=12, most=25, wide=40, late=True)
on_time = st.one_of([FAMILIES[name] for name in sorted(FAMILIES) if name != "rows"])
FEWS = {"commutative": FEW, "ordered": FEW_ORDERED}
few = st.sampled_from(sorted(FEWS)).map(FEWS.get)


def within_keys(window, keys):
    """The window with a partition that adds no key column."""
    partition = getattr(window, "partition", ())
    if partition in ((), OWN_KEYS):
        return window
    return replace(window, partition=tuple(c for c in partition if c in keys))


@st.composite
def several(draw, windows, shape=SHAPE, **fixed):
    keys = draw(key_sets)
    found = draw(st.lists(windows, min_size=2, max_size=4))
    return Case(
        tuple(within_keys(window, keys) for window in found),
        draw(few),
        keys=keys,
        ties=draw(ties),
        **{**draw(inputs(shape)), **fixed},
    )


@given(case=several(on_time))
def test_several_windows_in_one_query(case):
    check(case, steps=True)


@given(case=several(FAMILIES["rows"]))
def test_several_windows_over_positions_in_one_query(case):
    check(case, steps=True)


@given(data=st.data())
def test_several_windows_with_lateness_and_early_answers(data):
    windows = data.draw(st.sampled_from([on_time, FAMILIES["rows"]]))
    check(
        data.draw(several(windows, LATE, lateness=data.draw(st.sampled_from([10, 50])), emit="update")),
        steps=True,
    )


@given(data=st.data())
def test_several_queries_with_different_keys_in_one_run(data):
    lateness = data.draw(st.sampled_from([0, 20]))
    found, tie = data.draw(inputs(LATE if lateness else SHAPE)), data.draw(ties)
    kinds = st.one_of([FAMILIES[name] for name in sorted(FAMILIES)])
    cases = [
        Case(
            (data.draw(kinds),),
            data.draw(few),
            keys=data.draw(key_sets),
            emit=data.draw(st.sampled_from(["final", "update"])),
            lateness=lateness,
            ties=tie,
            **found,
        )
        for _ in range(data.draw(st.integers(2, 4)))
    ]
    stream = replace(cases[0], keys=()).stream()
    runner = wp.start(*(case.query(stream, name=f"q{i}") for i, case in enumerate(cases)))
    order = None if tie else runner.operator.tie
    seen, kept = [Seen() for _ in cases], []
    for batch in cases[0].batches:
        step = runner.push(batch_of(batch))
        kept += kept_of(batch, step)
        for i, case in enumerate(cases):
            seen[i].take(rows_of(case, split_final(step.tables[f"q{i}"])[0]))
    upto, last = runner.bound, runner.close()
    for i, case in enumerate(cases):
        seen[i].take(rows_of(case, split_final(last.tables[f"q{i}"])[0]))
        same(seen[i].view, drained_answers(case, kept, upto, order))


@pytest.mark.parametrize("partition", [OWN_KEYS, ("k",), ("p",), ("p", "k"), ("k", "g")])
@for_each
@given(data=st.data())
def test_positions_count_within_the_partition(partition, data):
    window = Rows(data.draw(st.integers(1, 6)), data.draw(st.integers(1, 8)), "time", partition)
    lateness = data.draw(st.sampled_from([0, 15]))
    found = data.draw(inputs(LATE if lateness else SHAPE))
    check(
        Case((window,), FEW_ORDERED, keys=("k", "g"), ties=data.draw(ties), lateness=lateness, **found),
        steps=True,
    )
