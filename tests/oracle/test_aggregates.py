import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import Item, aggregate
from windowpane.values.semantics import Tuple

numbers = st.lists(st.integers(-1000, 1000) | st.floats(-1e6, 1e6), min_size=1, max_size=20)
NAN = math.nan


def items(values, times=None, **columns):
    """Tuples with a column v, at times 0, 1, ... unless told."""
    return [
        Item(Tuple(times[i] if times else i, i), {"v": v, **{name: c[i] for name, c in columns.items()}})
        for i, v in enumerate(values)
    ]


def of(values, function, *args, **columns):
    return aggregate(items(values, **columns), function, "v", *args)


def test_count_without_a_column_counts_rows_and_with_one_skips_nulls():
    assert aggregate(items([1, None, 3]), "count") == 3
    assert of([1, None, 3], "count") == 2


@pytest.mark.parametrize(
    "spec",
    [
        ("sum",), ("min",), ("max",), ("mean",), ("geometric_mean",), ("variance",), ("stddev",),
        ("min_count",), ("max_count",), ("first",), ("last",), ("m4",), ("median",), ("quantile", 0.1),
        ("heavy_hitters", 0.1), ("top_k", 3), ("arg_min", "v"), ("arg_max", "v"), ("weighted_mean", "v"),
    ],
)  # fmt: skip
def test_all_nulls_give_none(spec):
    assert of([None, None], *spec) is None


def test_all_nulls_count_zero_and_collect_nothing():
    assert of([None], "count") == 0
    assert of([None], "distinct") == 0
    assert of([None], "collect") == []


def test_integers_add_exactly_and_raise_beyond_int64():
    assert of([2**62, 2**62 - 1], "sum") == 2**63 - 1
    assert of([-(2**63)], "sum") == -(2**63)
    with pytest.raises(OverflowError, match="the sum 9223372036854775808 leaves int64"):
        of([2**63 - 1, 1], "sum")


def test_a_sum_that_leaves_int64_only_on_the_way_is_no_overflow():
    assert of([2**63 - 1, 1, -1], "sum") == 2**63 - 1


def test_sums_follow_ieee():
    assert math.isnan(of([1.0, NAN], "sum"))
    assert of([math.inf, 1.0], "sum") == math.inf
    assert math.isnan(of([math.inf, -math.inf], "mean"))
    assert of([1e308, 1e308], "sum") == math.inf


def test_nan_is_larger_than_any_number():
    assert of([NAN, 1.0, math.inf], "min") == 1.0
    assert math.isnan(of([NAN, 1.0], "max"))
    assert math.isnan(of([NAN], "min"))
    assert of([NAN, NAN, 1.0], "max_count") == 2
    assert of([NAN, NAN, 1.0], "distinct") == 2
    assert of(["a", "b"], "arg_max", "by", by=[1.0, NAN]) == "b"


@given(numbers)
def test_moments_agree_with_the_statistics_module(values):
    assert of(values, "mean") == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert of(values, "variance", 0) == pytest.approx(statistics.pvariance(values))
    if len(values) > 1:
        assert of(values, "variance") == pytest.approx(statistics.variance(values))
        assert of(values, "stddev") == pytest.approx(statistics.stdev(values))


def test_the_sample_variance_of_one_value_is_unknown():
    assert of([5], "variance") is None
    assert of([5], "variance", 0) == 0
    assert of([5], "stddev") is None


@given(numbers, st.floats(0, 1))
def test_quantiles_agree_with_numpy(values, q):
    assert of(values, "quantile", q) == pytest.approx(np.quantile(values, q), rel=1e-9, abs=1e-6)
    assert of(values, "quantile", q, "lower") == np.quantile(values, q, method="lower")
    assert of(values, "quantile", q, "nearest") == np.quantile(values, q, method="nearest")
    assert of(values, "median") == pytest.approx(np.median(values), abs=1e-9)


def test_a_weighted_mean_skips_tuples_without_value_or_weight():
    assert of([10, 20, None, 40], "weighted_mean", "w", w=[1, 3, 5, None]) == 17.5
    assert of([10, 20], "weighted_mean", "w", w=[1, -1]) is None


def test_geometric_mean():
    assert of([1, 10, 100], "geometric_mean") == pytest.approx(10)
    assert of([0, 5], "geometric_mean") == 0
    assert math.isnan(of([-1, 5], "geometric_mean"))


def test_counts_of_the_smallest_and_largest():
    assert of([3, 1, 1, None, 3, 3], "min_count") == 2
    assert of([3, 1, 1, None, 3, 3], "max_count") == 3


def test_arg_min_and_arg_max_take_the_earliest_then_the_smallest():
    by = [2, 1, 1, 2, 1]
    assert of([50, 40, 30, 20, 10], "arg_min", "by", by=by) == 40
    assert of([50, 40, 30, 20, 10], "arg_max", "by", by=by) == 50
    assert aggregate(items([9, 8, 7], times=[1, 0, 0], by=[5, 5, 5]), "arg_max", "v", "by") == 7
    assert of([None, 2], "arg_min", "by", by=[0, 1]) == 2


def test_first_takes_the_smallest_and_last_the_largest_of_their_time():
    tied = items([4, 2, 9, 7, None], times=[1, 1, 3, 3, 4])
    assert aggregate(tied, "first", "v") == 2
    assert aggregate(tied, "last", "v") == 9
    assert aggregate(tied, "m4", "v") == {"min": 2, "max": 9, "first": 2, "last": 9}


def test_ties_by_value_can_follow_another_order():
    tied = items(["aa", "b"], times=[0, 0])
    assert aggregate(tied, "first", "v") == "aa"
    assert aggregate(tied, "first", "v", order=len) == "b"
    assert aggregate(tied, "top_k", "v", 2, order=len) == ["b", "aa"]


def test_frequent_values_come_most_frequent_first_then_by_value():
    values = ["c", "b", "b", "a", "c", "d", None]
    assert of(values, "top_k", 3) == ["b", "c", "a"]
    assert of(values, "heavy_hitters", 1 / 3) == ["b", "c"]
    assert of(values, "heavy_hitters", 0.9) == []
    assert of(values, "top_k_counted", 1) == [{"value": "b", "count": 2}]
    assert of(values, "heavy_hitters_counted", 1 / 3) == [
        {"value": "b", "count": 2},
        {"value": "c", "count": 2},
    ]


def test_several_quantiles_come_as_a_list():
    assert of([1, 2, 3], "quantile", [0, 0.5, 1]) == [1, 2, 3]


def test_collect_goes_by_time_then_tie():
    found = [
        Item(Tuple(1, 0, tie=2), {"v": "z"}),
        Item(Tuple(1, 1, tie=1), {"v": "y"}),
        Item(Tuple(0, 2), {"v": "x"}),
    ]
    assert aggregate(found, "collect", "v") == ["x", "y", "z"]
