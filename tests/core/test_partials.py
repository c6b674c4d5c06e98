"""The laws that let partials be shared between windows, for every partial and with odd values."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.aggregate_samples import assert_same, batches, copy, make_batch
from windowpane.core.arrays import Column, Tuples
from windowpane.core.partials.base import Ranged, concat, length, take
from windowpane.core.partials.counts import RowCount, ValidCount
from windowpane.core.partials.extremes import Max, Min
from windowpane.core.partials.lifted import Lifted
from windowpane.core.partials.lists import Lists
from windowpane.core.partials.moments import Moments
from windowpane.core.partials.picks import ExtremeCount, Pick
from windowpane.core.partials.runs import ValueCounts, ragged, rank
from windowpane.core.partials.sketches import Kll, Theta, estimate_distinct, estimate_quantiles
from windowpane.core.partials.sums import FloatSum, IntSum, LogSum, WeightedSum
from windowpane.values.aggregates import Algebra
from windowpane.values.user_aggregates import UserAggregate


class Joined(UserAggregate):
    """The digits of j one after the other: associative, not commutative."""

    columns, algebra, type = ("j",), Algebra("algebraic", commutative=False), pa.string()

    def lift(self, j):
        return (j.astype(str),)

    def combine(self, a, b):
        return (a[0] + b[0],)

    def lower(self, partial):
        return partial[0]

    def identity(self):
        return ("",)

    def __repr__(self):
        return "joined"


PARTIALS = [
    RowCount(), ValidCount(("i",)), ValidCount(("i", "f")), IntSum("i"), FloatSum("g"), FloatSum("f"),
    LogSum("f"), WeightedSum("g", "j"), WeightedSum("f", "g"), Min("i"), Max("i"), Min("f"), Max("f"),
    ExtremeCount("i", largest=False), ExtremeCount("f", largest=True), Moments("g"), Moments("f"),
    Pick("first", "i"), Pick("last", "f", floating=True), Pick("first", "s", text=True),
    Pick("last", "s", text=True), Pick("arg_min", "s", "f", text=True),
    Pick("arg_max", "f", "j", floating=True),
    ValueCounts("i"), ValueCounts("f"), ValueCounts("s", text=True), Lists("i"), Lists("f", floating=True),
    Theta("s"), Theta("f", 5), Kll("g", 2000), Lifted(Joined(), commutative=False),
]  # fmt: skip
every_partial = pytest.mark.parametrize("partial", PARTIALS, ids=str)


def halves(batch, cut):
    at = np.arange(len(batch))
    return batch.part(at[:cut]), batch.part(at[cut:])


@every_partial
@given(batch=batches(wide=True))
def test_the_identity_is_neutral_on_both_sides(partial, batch):
    state, nothing = batch.fold(partial), partial.identity(batch.n_rows)
    assert_same(partial.combine(nothing, state), state)
    assert_same(partial.combine(state, nothing), state)


@every_partial
@given(batch=batches(wide=True), cut=st.integers(0, 60))
def test_combining_two_folds_is_folding_both_batches(partial, batch, cut):
    first, second = halves(batch, cut)
    assert_same(partial.combine(first.fold(partial), second.fold(partial)), batch.fold(partial))


@every_partial
@given(batch=batches(wide=True), cuts=st.tuples(st.integers(0, 60), st.integers(0, 60)))
def test_combine_is_associative(partial, batch, cuts):
    first, rest = halves(batch, min(cuts))
    second, third = halves(rest, max(cuts) - min(cuts))
    x, y, z = (part.fold(partial) for part in (first, second, third))
    assert_same(partial.combine(partial.combine(x, y), z), partial.combine(x, partial.combine(y, z)))


@pytest.mark.parametrize("partial", [p for p in PARTIALS if p.commutative], ids=str)
@given(batch=batches(wide=True, in_time=False), cut=st.integers(0, 60))
def test_a_partial_declared_commutative_is(partial, batch, cut):
    first, second = halves(batch, cut)
    x, y = first.fold(partial), second.fold(partial)
    assert_same(partial.combine(x, y), partial.combine(y, x))


@pytest.mark.parametrize("partial", [p for p in PARTIALS if p.commutative], ids=str)
@given(batch=batches(wide=True, in_time=False), seed=st.integers(0, 1000))
def test_a_commutative_fold_does_not_see_the_order_of_tuples(partial, batch, seed):
    shuffled = batch.part(np.random.default_rng(seed).permutation(len(batch)))
    assert_same(shuffled.fold(partial), batch.fold(partial))


@every_partial
@pytest.mark.parametrize("longest", [9, 300])
@given(seed=st.integers(0, 2**32), n_rows=st.integers(1, 300), n_ranges=st.integers(1, 20))
def test_a_range_is_the_fold_of_its_tuples_from_scratch(partial, longest, seed, n_rows, n_ranges):
    batch = make_batch(seed, n_rows, n_rows)
    batch = batch.part(np.argsort(batch.rows, kind="stable"))
    random = np.random.default_rng(seed)
    low = random.integers(0, n_rows, n_ranges)
    high = np.minimum(n_rows, low + random.integers(1, longest + 1, n_ranges))
    inside = [np.nonzero((batch.rows >= a) & (batch.rows < b))[0] for a, b in zip(low, high, strict=True)]
    at = np.concatenate(inside).astype(np.int64)
    owner = np.repeat(np.arange(n_ranges), [len(i) for i in inside])
    state = batch.fold(partial)
    before = copy(state)
    assert_same(partial.ranges(state, low, high), partial.fold(batch.part(at).tuples, owner, n_ranges))
    assert_same(state, before)


@every_partial
@given(batch=batches(wide=True), cut=st.integers(0, 60))
def test_combine_leaves_its_inputs_alone(partial, batch, cut):
    first, second = halves(batch, cut)
    x, y = first.fold(partial), second.fold(partial)
    kept = copy(x), copy(y)
    partial.combine(x, y)
    assert_same(x, kept[0])
    assert_same(y, kept[1])


@every_partial
@given(batch=batches(rows=20))
def test_reduce_combines_neighbouring_rows(partial, batch):
    batch = batch.part(np.argsort(batch.rows, kind="stable"))
    starts = np.arange(0, batch.n_rows, 3)
    whole = partial.fold(batch.tuples, batch.rows // 3, len(starts))
    assert_same(partial.reduce(batch.fold(partial), starts), whole)


@every_partial
@given(batch=batches())
def test_folding_runs_is_folding_rows(partial, batch):
    batch = batch.part(np.argsort(batch.rows, kind="stable"))
    found, heads = np.unique(batch.rows, return_index=True)
    if len(found):
        rows = np.searchsorted(found, batch.rows)
        assert_same(partial.fold_runs(batch.tuples, heads), partial.fold(batch.tuples, rows, len(found)))


@every_partial
@given(batch=batches())
def test_rows_can_be_taken_and_put_together_again(partial, batch):
    state, at = batch.fold(partial), np.arange(batch.n_rows)
    assert_same(concat([take(state, at[:2]), take(state, at[2:])]), state)


def single_row(partial, values):
    n = len(values)
    tuples = Tuples(np.arange(n), np.zeros(n, np.int64), {"x": Column(values)})
    return partial.fold(tuples, np.zeros(n, np.int64), 1)


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50))
def test_an_integer_sum_is_exact_beyond_int64(values):
    high, low = single_row(IntSum("x"), np.array(values, np.int64))
    assert int(high[0]) * 2**32 + int(low[0]) == sum(values)


def test_a_theta_sketch_is_exact_while_it_fits_and_close_beyond():
    few, many = np.arange(4096), np.arange(100_000)
    assert estimate_distinct(single_row(Theta("x"), few)[0]).tolist() == [4096]
    assert estimate_distinct(single_row(Theta("x"), many)[0])[0] == pytest.approx(100_000, rel=0.05)


def test_a_theta_sketch_depends_on_the_set_alone_beyond_its_room_too():
    values = np.random.default_rng(0).integers(0, 5000, 20_000)
    partial = Theta("x", 6)
    whole = single_row(partial, values)
    parts = [single_row(partial, part) for part in np.array_split(values[::-1], 7)]
    united = partial.ranges(concat(parts), np.array([0]), np.array([7]))
    assert united[0].tolist() == whole[0].tolist()


def test_a_kll_sketch_is_near_the_quantile():
    values = np.random.default_rng(0).permutation(100_000).astype(float)
    partial = Kll("x")
    parts = concat([single_row(partial, part) for part in np.array_split(values, 40)])
    cells = partial.ranges(parts, np.array([0]), np.array([40]))[0]
    assert estimate_quantiles(cells, (0.5, 0.9))[0] == pytest.approx([50_000, 90_000], abs=3_000)


def test_value_counts_of_many_values_are_the_same_by_grid_and_by_sort():
    random = np.random.default_rng(0)
    values, rows = random.integers(0, 400, 5000), random.integers(0, 50, 5000)
    tuples = Tuples(np.arange(5000), rows, {"x": Column(values)})
    dense = ragged(ValueCounts("x").fold(tuples, rows, 50))
    sparse = ragged(ValueCounts("x").fold(tuples, rows * 1000, 50_000))
    np.testing.assert_array_equal(dense.values, sparse.values)
    np.testing.assert_array_equal(dense.weights, sparse.weights)


@pytest.mark.parametrize("spread", [100, 20_000, 2**60])
def test_ranks_are_the_same_by_hash_and_by_sort(spread):
    values = np.random.default_rng(0).integers(-spread, spread, 50_000)
    distinct, ranks = rank(values)
    np.testing.assert_array_equal(distinct, np.unique(values))
    np.testing.assert_array_equal(distinct[ranks], values)


def test_text_state_says_where_its_ids_are():
    assert Pick("first", "s", text=True).id_columns() == {3: "s"}
    assert Pick("arg_min", "s", "i", text=True).id_columns() == {4: "s"}
    assert ValueCounts("s", text=True).id_columns() == {0: "s"}
    assert ValueCounts("i").id_columns() == {}


@given(seed=st.integers(0, 2**32), n_ranges=st.integers(1, 30), longest=st.integers(1, 9))
def test_few_ranges_of_a_large_table_are_answered_from_the_rows_they_hold(seed, n_ranges, longest):
    batch = make_batch(seed, 900, 600)
    random = np.random.default_rng(seed)
    low = random.integers(0, 590, n_ranges)
    high = low + random.integers(1, longest + 1, n_ranges)
    for partial in (RowCount(), ValueCounts("i"), Lists("i"), Pick("last", "f", floating=True)):
        state = batch.fold(partial)
        near = Ranged(partial, state, low, high).narrowed()
        assert length(near.columns) == len(
            {row for a, b in zip(low, high, strict=True) for row in range(a, b)}
        )
        assert_same(partial.ranges(near.columns, near.low, near.high), partial.ranges(state, low, high))
