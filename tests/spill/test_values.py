"""Medians, quantiles, distinct and frequent values over a store: exact, by counts of values."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from tests.property.strategies import for_each
from tests.spill.test_agreement import FAMILIES, VALUES, budgets, cases, check, restarts
from windowpane.core.spill import lane
from windowpane.core.spill.multisets import Moved, Multisets
from windowpane.errors import BadQuery, BadState, OverBudget
from windowpane.planner.spill import always_fits
from windowpane.values.sizes import Budget

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "v": pa.float64(), "s": pa.string()})


def shown(table):
    return sorted(map(repr, table.to_pylist()))


def rows(first, n, keys=3, kinds=1_000):
    t = np.arange(first, first + n)
    return pa.table({"t": t, "k": t % keys, "v": t * 37 % kinds / 8, "s": ["x"] * n}, schema=SCHEMA)


def stream(**options):
    return wp.stream(schema=SCHEMA, time="t", **{"keys": "k", **options})


@pytest.mark.parametrize("family", FAMILIES)
@for_each
@given(data=st.data(), few=st.integers(1, 4))
def test_values_in_small_pieces_answer_as_the_oracle(family, data, few):
    """Few arrivals, expirations and values at once: points wait for what leaves before them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_MOST_VALUES", "_FEW_ARRIVALS", "_MOST_ARRIVALS", "_MOST_EXPIRED"):
            patch.setattr(lane, name, few)
        check(data.draw(cases(family, VALUES)), data.draw(budgets("auto")), data.draw(restarts))


pairs = st.lists(st.tuples(st.integers(0, 6), st.one_of(st.none(), st.integers(-3, 3))), max_size=12)


@given(st.lists(st.tuples(pairs, st.integers(0, 12)), max_size=8), st.integers(0, 8))
def test_runs_are_what_was_added_and_not_taken_out(steps, restart):
    """Against a counter; a null is none of the values, and a restart changes nothing."""
    sets, held, queue = Multisets(1), Counter(), []
    for i, (arrived, gone) in enumerate(steps):
        queue += arrived
        out, queue = queue[:gone], queue[gone:]
        held = Counter((key, code) for key, code in queue if code is not None)
        keys = max((key for key, _ in queue + out), default=-1) + 1
        sets.slide(coded(arrived), coded(out), max(keys, 7 * (i % 2)))
        if i == restart:
            again = Multisets(1)
            again.restore({name: array.copy() for name, array in sets.arrays().items()})
            sets = again
        known = np.arange(len(sets.columns[0]), dtype=np.int32)[::-1]
        (runs,) = sets.of(known)
        for at, key in enumerate(known):
            low, high = runs.offsets[at], runs.offsets[at + 1]
            found = list(zip(runs.values[low:high].tolist(), runs.weights[low:high].tolist(), strict=True))
            assert found == sorted((code, n) for (of, code), n in held.items() if of == key)
        assert sets.nbytes == 8 * (len(known) + 1) + 16 * len(held)


def coded(given_pairs):
    key = np.array([key for key, _ in given_pairs], np.int32)
    valid = np.array([code is not None for _, code in given_pairs], np.bool_)
    codes = np.array([code or 0 for _, code in given_pairs], np.int64)
    return Moved(np.arange(len(key)), key, ((codes, None if valid.all() else valid),))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, None, True] * 50),
        pa.array([1, 255, None, 7] * 50, pa.uint8()),
        pa.array([0.5, -0.0, 0.0, float("nan")] * 50, pa.float32()),
        pa.array([-(2**63), 2**63 - 1, 0, None] * 50),
        pa.array([10**15, 0, None, -1] * 50, pa.timestamp("us", "UTC")),
        pa.array([1, 2, None, 2] * 50, pa.int32()).dictionary_encode(),
        pa.array(["b", "", None, "a"] * 50),
        pa.array(["b", "ü", None, "a"] * 50).dictionary_encode(),
        pa.array(["b", "ü", None, "a"] * 50, pa.string_view()),
        pa.array([b"\xff", b"", None, b"a"] * 50, pa.large_binary()),
        pa.array([b"ab", b"cd", None, b"ab"] * 50, pa.binary(2)),
    ],
    ids=lambda values: str(values.type),
)
def test_values_of_any_type_leave_a_window_as_they_came(values):
    table = pa.table({"t": list(range(200)), "v": values})

    def run(memory):
        query = wp.stream(table, time="t").window(wp.sliding(11, 3), wp.tumbling(40), wp.per_row(9))
        return query.agg(kinds=wp.distinct("v"), top=wp.top_k("v", 2)).run(memory=memory).table

    assert shown(run(Budget(10**6, block_bytes=256, blocks=2))) == shown(run(None))


def test_queries_of_sums_and_of_values_share_a_store():
    """A window by tuple beside them keeps no values, though its keys are the same."""
    of, both = stream(), (wp.sliding(100, 20), wp.sliding(40, 10))
    asked = [
        of.window(wp.per_row(50).per()).agg(total=wp.sum("v"), name="by_tuple"),
        of.window(*both).agg(middle=wp.median("v"), name="values"),
        of.window(wp.sliding(100, 20), keys=()).agg(kinds=wp.distinct("v"), n=wp.count(), name="all"),
    ]
    table = rows(0, 900)
    found = []
    for memory in (None, Budget(10**6, block_bytes=512, blocks=4)):
        with wp.start(*asked, memory=memory) as runner:
            steps = [runner.push(table.slice(at, 130)) for at in range(0, 900, 130)] + [runner.close()]
            names = ("by_tuple", "values", "all")
            found.append([shown(pa.concat_tables(s.tables[n] for s in steps)) for n in names])
    assert found[0] == found[1]


def test_values_count_for_the_budget_and_go_with_their_window():
    query = stream().window(wp.sliding(2_000, 500)).agg(middle=wp.median("v"))
    with query.start(memory=Budget(10**7, block_bytes=1024, blocks=2)) as runner:
        runner.push(rows(0, 2_000, kinds=10**9))
        many = runner.state_bytes
        runner.push(rows(2_000, 6_000, kinds=8))
        assert many > 16 * 1_900
        assert runner.state_bytes < many - 16 * 1_500
        assert runner.choice.technique == "1W"
    with query.start(memory=Budget(25_000, block_bytes=1024)) as runner:
        with pytest.raises(OverBudget, match=r"Give at least [\d,]+ bytes"):
            runner.push(rows(0, 4_000, kinds=10**9))
        assert len(runner.answers(runner.punctuate(4_000))) == 8 * 3


def test_runs_that_do_not_fit_together_are_not_gone_on_with():
    sets = Multisets(1)
    sets.slide(coded([(0, 1), (1, 2)]), coded([]), 2)
    arrays = sets.arrays()
    for name in arrays:
        with pytest.raises(BadState, match="values 0 of a window do not fit together"):
            Multisets(1).restore({**arrays, name: arrays[name][:-1]})


@pytest.mark.parametrize(
    ("window", "aggregate", "technique", "message"),
    [
        (wp.sliding(10, 5), wp.quantile("v", 0.5), "2LA", "need all values. Use technique='1W'"),
        (wp.per_row(5), wp.sum("v"), "2LA", r"per_row\(\) slides by tuple"),
        (wp.sliding(10, 5), wp.distinct("s"), "2LA", "need all values. Use technique='1W'"),
        (wp.tumbling(5), wp.approx_quantile("v", 0.5), "auto", r"approx_quantile\(\) .* max, median"),
        (wp.per_row(5), wp.collect("s"), "auto", r"collect\(\) of query 'query' cannot run within memory="),
    ],
)
def test_what_cannot_be_kept_is_told_before_anything_runs(window, aggregate, technique, message):
    query = stream().window(window).agg(found=aggregate)
    with pytest.raises(BadQuery, match=message):
        query.start(memory=Budget(10**6, technique=technique))


def test_the_choice_says_why():
    query = stream(keys=()).window(wp.sliding(10, 5)).agg(middle=wp.median("v"))
    assert not always_fits(query.plan, Budget(10**9))
    told = query.explain("64 MB", rate=10)
    assert "2LA     keeps no values" in told
    assert "and 16 B for each distinct value of a key in a window\n" in told
    assert "choose  1W  because slices of a fixed width cannot hold all values" in told
    of_texts = stream().window(wp.per_row(10)).agg(kinds=wp.distinct("s"))
    assert "of a key in a window, and the texts\n" in of_texts.explain("64 MB", rate=10)
