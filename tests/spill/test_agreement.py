"""The law over a store: with tiny blocks, tiny pools and restarts, the answers are those of the oracle."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.harness import (
    Case,
    Seen,
    batch_of,
    closed_answers,
    drained_answers,
    kept_of,
    rows_of,
    same,
)
from tests.property.strategies import NUMBERS, SETS, Shape, for_each, inputs, key_sets, lengths, origins
from windowpane.planner.spill import choose  # noqa: F401 - the module must import by itself
from windowpane.values import windows as w
from windowpane.values.sizes import Budget

SUMS = {name: wanted for name, wanted in NUMBERS.items() if name != "squares"}
VALUES = {name: wanted for name, wanted in SETS.items() if not name.startswith("approx")}
VALUES |= {name: NUMBERS[name] for name in ("count", "count_s", "sum_f", "min_f")}
SLIDING = {
    "sliding": st.builds(w.Sliding, lengths, lengths, origins),
    "tumbling": st.builds(lambda size, o: w.Sliding(size, size, o), lengths, origins),
    "with_gaps": st.builds(lambda size, more, o: w.Sliding(size, size + more, o), lengths, lengths, origins),
}
PER_ROW = {
    "per_row": st.builds(w.PerRow, lengths),
    "per_row_of_key": st.builds(lambda size: w.PerRow(size, partition=w.OWN_KEYS), lengths),
}
FAMILIES = {**SLIDING, **PER_ROW}


@st.composite
def cases(draw, family, wanted):
    found = draw(inputs(Shape(late=draw(st.booleans()))))
    windows = tuple(draw(FAMILIES[family]) for _ in range(draw(st.integers(1, 3))))
    return Case(windows, wanted, keys=draw(key_sets), **found)


@st.composite
def budgets(draw, technique):
    size = draw(st.sampled_from([512, 1024, 4096]))
    return Budget(10**8, block_bytes=size, blocks=draw(st.integers(2, 9)), technique=technique)


def check(case, budget, restarts):
    """Push, and now and then end the process in mind: go on from a checkpoint in another life."""
    root = Path(tempfile.mkdtemp())
    try:
        query = case.query()
        runner = query.start(memory=budget, spill_dir=root / "0")
        seen, kept = Seen(), []
        for i, batch in enumerate(case.batches):
            if i in restarts:
                runner.checkpoint()
                # what happens after the checkpoint is lost with the process
                runner.push(batch_of(batch))
                runner.discard()
                runner = case.query().resume(root / "0")
            step = runner.push(batch_of(batch))
            kept += kept_of(batch, step)
            seen.take(rows_of(case, runner.answers(step)))
            same(seen.view, closed_answers(case, kept, runner.bound, None))
        upto = runner.bound
        seen.take(rows_of(case, runner.answers(runner.close())))
        assert runner.counts.kept == len(kept)
        same(seen.view, drained_answers(case, kept, upto, None))
        assert not list((root / "0").iterdir())
    finally:
        shutil.rmtree(root)


restarts = st.sets(st.integers(0, 40), max_size=6)


@pytest.mark.parametrize("wanted", [SUMS, VALUES], ids=["sums", "values"])
@pytest.mark.parametrize("family", FAMILIES)
@for_each
@given(data=st.data())
def test_tuples_in_a_store_answer_as_the_oracle(family, wanted, data):
    check(data.draw(cases(family, wanted)), data.draw(budgets("1W")), data.draw(restarts))


@pytest.mark.parametrize("family", SLIDING)
@for_each
@given(data=st.data())
def test_slices_in_a_store_answer_as_the_oracle(family, data):
    check(data.draw(cases(family, SUMS)), data.draw(budgets("2LA")), data.draw(restarts))
