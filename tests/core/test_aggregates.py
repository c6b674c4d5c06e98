"""Bound aggregates against the textbook oracle, their types, and the messages of what they refuse."""

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.aggregate_samples import TYPES, make_batch
from tests.oracle import Item, aggregate
from tests.oracle.aggregates import natural
from windowpane.core.aggregates import bind
from windowpane.core.arrays import Column, Tuples
from windowpane.core.columns import read_column
from windowpane.core.partials.base import Ranged
from windowpane.values import aggregates as ag
from windowpane.values.errors import BadAggregate, Overflow, WrongType
from windowpane.values.semantics import Tuple

# (our aggregate, the oracle's name and arguments)
NUMERIC = [
    (make(column), (name, column))
    for column in ("j", "g", "f")
    for name, make in [
        ("sum", ag.sum), ("min", ag.min), ("max", ag.max), ("mean", ag.mean), ("variance", ag.variance),
        ("stddev", ag.stddev), ("geometric_mean", ag.geometric_mean), ("min_count", ag.min_count),
        ("max_count", ag.max_count), ("m4", ag.m4), ("median", ag.median),
    ]
]  # fmt: skip
ANY = [
    (make(column), (name, column))
    for column in ("i", "f", "s")
    for name, make in [
        ("count", ag.count), ("first", ag.first), ("last", ag.last), ("distinct", ag.distinct),
        ("collect", ag.collect), ("distinct", ag.approx_distinct),
    ]
]  # fmt: skip
OTHERS = [
    (ag.count(), ("count",)),
    (ag.weighted_mean("g", "j"), ("weighted_mean", "g", "j")),
    (ag.variance("g", ddof=0), ("variance", "g", 0)),
    (ag.arg_min("s", "f"), ("arg_min", "s", "f")),
    (ag.arg_max("f", "j"), ("arg_max", "f", "j")),
    (ag.arg_max("s", "i"), ("arg_max", "s", "i")),
    (ag.quantile("i", 0.3), ("quantile", "i", 0.3)),
    (ag.quantile("f", 0.99), ("quantile", "f", 0.99)),
]
FREQUENT = [
    (ag.top_k("s", 3), ("top_k", "s", 3)),
    (ag.top_k("j", 2), ("top_k", "j", 2)),
    (ag.top_k("f", 100), ("top_k", "f", 100)),
    (ag.heavy_hitters("s", 0.25), ("heavy_hitters", "s", 0.25)),
    (ag.heavy_hitters("f", 0.2), ("heavy_hitters", "f", 0.2)),
]


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return a == b


def windows(seed, n, n_rows, n_ranges):
    """A batch sorted by row, so that tuples of a range are in order of time, and ranges of rows."""
    batch = make_batch(seed, n, n_rows)
    batch = batch.part(np.argsort(batch.rows, kind="stable"))
    random = np.random.default_rng(seed)
    low = random.integers(0, n_rows, n_ranges)
    return batch, low, np.minimum(n_rows, low + random.integers(1, 6, n_ranges))


def items_of(batch, low, high):
    rows = pa.table(batch.table).to_pylist()
    inside = np.nonzero((batch.rows >= low) & (batch.rows < high))[0]
    return [Item(Tuple(int(batch.tuples.time[i]), arrival=int(n)), rows[i]) for n, i in enumerate(inside)]


def in_time_order(seed, n, n_rows, n_ranges):
    """As `windows`, with rows that follow time, as slices do."""
    batch, low, high = windows(seed, n, n_rows, n_ranges)
    tuples = Tuples(np.sort(batch.tuples.time), batch.tuples.key, batch.tuples.columns)
    return type(batch)(tuples, batch.table, batch.rows, batch.n_rows, batch.take), low, high


sizes = {
    "seed": st.integers(0, 2**32), "n": st.integers(0, 80), "n_rows": st.integers(1, 30),
    "n_ranges": st.integers(1, 12),
}  # fmt: skip


@pytest.mark.parametrize(("ours", "oracle"), NUMERIC + ANY + OTHERS, ids=lambda v: getattr(v, "name", ""))
@given(**sizes)
def test_an_aggregate_over_ranges_is_what_the_textbook_says(ours, oracle, seed, n, n_rows, n_ranges):
    batch, low, high = in_time_order(seed, n, n_rows, n_ranges)
    order_of = dict(zip(batch.table["s"].to_pylist(), batch.tuples.columns["s"].order.tolist(), strict=True))
    results = batch.lower(ours, low, high)
    for got, a, b in zip(results, low, high, strict=True):
        wanted = aggregate(
            items_of(batch, a, b), *oracle,
            order=lambda v: order_of[v] if isinstance(v, str) else natural(v),
        )  # fmt: skip
        assert same(got, wanted), (got, wanted)


@pytest.mark.parametrize(("ours", "oracle"), FREQUENT, ids=lambda v: getattr(v, "name", ""))
@given(**sizes)
def test_frequent_values_come_most_frequent_first_and_ties_by_value(ours, oracle, seed, n, n_rows, n_ranges):
    batch, low, high = windows(seed, n, n_rows, n_ranges)
    for got, a, b in zip(batch.lower(ours, low, high), low, high, strict=True):
        items = items_of(batch, a, b)
        assert same(got and [pair["value"] for pair in got], aggregate(items, *oracle))
        for pair in got or []:
            held = [item.row[oracle[1]] for item in items]
            assert pair["count"] == sum(v is not None and natural(v) == natural(pair["value"]) for v in held)


@given(**sizes)
def test_a_list_of_quantiles_is_numpys(seed, n, n_rows, n_ranges):
    batch, low, high = windows(seed, n, n_rows, n_ranges)
    shares = [0.0, 0.1, 0.5, 0.77, 1.0]
    for got, a, b in zip(batch.lower(ag.quantile("g", shares), low, high), low, high, strict=True):
        values = [item.row["g"] for item in items_of(batch, a, b) if item.row["g"] is not None]
        assert (got is None) == (not values)
        if values:
            assert got == pytest.approx(np.quantile(values, shares).tolist())


def test_quantiles_of_overlapping_ranges_do_not_depend_on_the_order_of_ranges():
    batch = make_batch(1, 3000, 100)
    low = np.repeat(np.arange(80), 3)
    high = low + np.tile([1, 7, 20], 80)
    there = batch.lower(ag.median("g"), low, high)
    back = batch.lower(ag.median("g"), low[::-1].copy(), high[::-1].copy())
    assert there == back[::-1]


def lower_one(spec, array):
    """One result over all values of one column."""
    column = read_column(array, "x")
    n = len(array)
    tuples = Tuples(np.arange(n), np.zeros(n, np.int64), {"x": column})
    bound = bind(spec, {"x": array.type})
    ends = np.array([0]), np.array([1])
    ranged = tuple(Ranged(p, p.fold(tuples, np.zeros(n, np.int64), 1), *ends) for p in bound.partials)
    result = bound.lower(ranged, lambda _, ids: pa.array(ids))
    assert result.type == bound.type
    return result


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int8(), [3, -4]), (pa.uint64(), [3, 2**63 - 1]), (pa.float32(), [1.5, -2.5]),
        (pa.bool_(), [True, False]),
        (pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
        (pa.date64(), [dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
        (pa.time32("s"), [dt.time(1), dt.time(23, 59, 59)]), (pa.time64("us"), [dt.time(1), dt.time(2)]),
        (pa.timestamp("s"), [dt.datetime(1960, 1, 1), dt.datetime(2024, 1, 1)]),  # noqa: DTZ001 - has no zone
        (pa.timestamp("us", "UTC"), [dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in (1960, 2024)]),
        (pa.duration("ms"), [dt.timedelta(1), dt.timedelta(-2)]),
    ],
    ids=str,
)  # fmt: skip
def test_values_keep_the_type_of_their_column(type_, values):
    array = pa.array([None, *values], type_)
    assert lower_one(ag.min("x"), array).to_pylist() == [min(values)]
    assert lower_one(ag.max("x"), array).to_pylist() == [max(values)]
    assert lower_one(ag.last("x"), array).to_pylist() == [values[-1]]
    assert lower_one(ag.collect("x"), array).to_pylist() == [values]
    assert lower_one(ag.top_k("x", 1), array).to_pylist() == [[{"value": min(values), "count": 1}]]
    assert lower_one(ag.distinct("x"), array).to_pylist() == [2]
    assert lower_one(ag.first("x"), pa.array([None], type_)).to_pylist() == [None]


def test_nanoseconds_come_back_as_nanoseconds():
    result = lower_one(ag.max("x"), pa.array([1_000, 5_000], pa.timestamp("ns")))
    assert result.cast(pa.int64()).to_pylist() == [5_000]


def test_an_integer_sum_that_leaves_int64_is_an_error_and_one_that_comes_back_is_not():
    most = 2**63 - 1
    assert lower_one(ag.sum("x"), pa.array([most, 1, -1])).to_pylist() == [most]
    assert lower_one(ag.mean("x"), pa.array([most, most])).to_pylist() == [float(most)]
    with pytest.raises(Overflow, match=r"column 'x' is 9223372036854775808 .* Cast the column to double"):
        lower_one(ag.sum("x"), pa.array([most, 1]))


def test_the_variance_of_large_values_neither_cancels_nor_overflows():
    assert lower_one(ag.variance("x"), pa.array([1e9 + v for v in (4, 7, 13, 16)])).to_pylist() == [30.0]
    assert lower_one(ag.variance("x"), pa.array([1e308, 1e308])).to_pylist() == [0.0]


@pytest.mark.parametrize(
    ("spec", "type_", "message"),
    [
        (ag.sum("x"), pa.string(), "column 'x' has type string, but a number for sum() is needed. Cast"),
        (ag.mean("x"), pa.bool_(), "column 'x' has type bool, but a number for mean() is needed. Cast"),
        (ag.sum("x"), pa.decimal128(10, 2), "Cast the column to double or int64."),
        (ag.min("x"), pa.string(), "but a number, time, date or boolean for min() is needed. Use first()"),
        (ag.collect("x"), pa.list_(pa.int64()), "Select the field or element you need"),
        (ag.median("x"), pa.timestamp("us"), "but a number for median() is needed"),
        (ag.arg_min("y", "x"), pa.string(), "column 'x' has type string"),
    ],
)
def test_a_wrong_type_names_the_column_its_type_and_the_remedy(spec, type_, message):
    with pytest.raises(WrongType) as error:
        bind(spec, {"x": type_, "y": pa.int64()})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ag.quantile("x", 1.5), "q is 1.5, but it must be from 0 to 1"),
        (lambda: ag.quantile("x", []), "empty list"),
        (lambda: ag.top_k("x", 0), "k is 0, but it must be a whole number of at least 1"),
        (lambda: ag.heavy_hitters("x", 0), "share is 0, but it must be above 0"),
        (lambda: ag.variance("x", -1), "ddof is -1"),
        (lambda: ag.approx_distinct("x", 3), "lg_k is 3, but it must be a whole number from 5 to 26"),
        (lambda: ag.approx_quantile("x", 0.5, k=1), "k is 1, but it must be a whole number from 8 to 65535"),
        (lambda: bind(ag.Aggregate("summ", ("i",), ag.ALGEBRAIC), TYPES), "there is no aggregate 'summ'"),
    ],
)
def test_a_bad_parameter_is_refused_with_its_value(make, message):
    with pytest.raises(BadAggregate) as error:
        make()
    assert message in str(error.value)


def test_a_result_column_is_named_after_function_and_columns_unless_named():
    assert ag.count().name == "count"
    assert ag.sum("price").name == "sum_price"
    assert ag.weighted_mean("price", "volume").name == "weighted_mean_price_volume"
    assert ag.sum("price").named("total").name == "total"


def test_equal_partials_are_shared_by_different_aggregates():
    kept = {p for spec in (ag.sum("i"), ag.mean("i"), ag.count("i")) for p in bind(spec, TYPES).partials}
    assert len(kept) == 2


def test_no_ranges_give_no_results():
    none = np.empty(0, np.int64)
    for spec in (ag.sum("i"), ag.median("i"), ag.top_k("i", 2), ag.m4("i"), ag.collect("i"), ag.last("f")):
        bound = bind(spec, TYPES)
        ranged = tuple(Ranged(p, p.identity(0), none, none) for p in bound.partials)
        assert bound.lower(ranged, lambda _, ids: pa.array(ids)).to_pylist() == []


def test_a_dictionary_column_gives_its_values():
    bound = bind(ag.first("x"), {"x": pa.dictionary(pa.int32(), pa.string())})
    assert bound.type == pa.string()
    ids = Column(np.array([4]), None, np.array([9]))
    state = bound.partials[0].fold(Tuples(np.array([0]), np.array([0]), {"x": ids}), np.array([0]), 1)
    ranged = (Ranged(bound.partials[0], state, np.array([0]), np.array([1])),)
    assert bound.lower(ranged, lambda _, ids: pa.array([f"id {i}" for i in ids])).to_pylist() == ["id 4"]
