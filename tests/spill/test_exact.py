"""Exact sums of floats: math.fsum is the oracle, and what left a sum leaves no trace."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from windowpane.core.kernels import exact

WILD = st.floats(allow_nan=False, allow_infinity=False)
TAME = st.floats(-1e6, 1e6)


def empty():
    return np.zeros(exact.CHUNKS, np.int64), np.array([exact.CHUNKS, -1], np.int32), np.zeros(3, np.int32)


def fill(total, values, sign=1):
    for bits in np.array(values, np.float64).view(np.int64):
        exact.add_exact(*total, 0, bits, sign)


def oracle(values):
    """The sum as a fraction, rounded once; infinite beyond float64."""
    whole = sum((Fraction(v) for v in values), Fraction(0))
    try:
        return float(whole)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


@given(st.lists(st.one_of(WILD, TAME), max_size=40))
@example([1.7976931348623157e308] * 3)
@example([5e-324, -5e-324, 5e-324])
@example([2.0**53, 1.0, 2.0**-1074])
@example([2.0**53, 1.0])
@example([2.0**53 + 2, 1.0])
@example([-(2.0**53), -1.0, -(2.0**-1074)])
@example([2.2250738585072014e-308, -5e-324])
@example([1.0, -(2.0**-1074)])
@example([-(2.0**k) for k in (-1010, -978, 14, 46)])
@example([-(2.0**46)] * 1024)
def test_sums_are_rounded_once(values):
    total = empty()
    fill(total, values)
    assert exact.read_exact(*total, 0) == oracle(values)
    assert exact.read_exact(*total, 0) == oracle(values)  # reading changes nothing


@given(st.lists(st.one_of(WILD, TAME), max_size=30), st.lists(st.one_of(WILD, TAME), max_size=30))
def test_what_left_leaves_no_trace(gone, stays):
    total = empty()
    fill(total, gone)
    exact.read_exact(*total, 0)
    fill(total, stays)
    fill(total, gone, -1)
    assert exact.read_exact(*total, 0) == oracle(stays)


def test_nan_and_infinities_leave_a_sum():
    total = empty()
    fill(total, [1.5, math.nan])
    assert math.isnan(exact.read_exact(*total, 0))
    fill(total, [math.nan], -1)
    fill(total, [math.inf])
    assert exact.read_exact(*total, 0) == math.inf
    fill(total, [-math.inf])
    assert math.isnan(exact.read_exact(*total, 0))
    fill(total, [math.inf], -1)
    assert exact.read_exact(*total, 0) == -math.inf
    fill(total, [-math.inf], -1)
    assert exact.read_exact(*total, 0) == 1.5


@given(st.lists(TAME, min_size=1, max_size=40))
def test_a_pair_holds_twice_the_digits(values):
    total = empty()
    fill(total, values)
    one = np.zeros(1)
    first, second = exact.read_pair(*total, 0, one, one.view(np.int64))
    whole = sum((Fraction(v) for v in values), Fraction(0))
    assert first == float(whole)
    assert second == float(whole - Fraction(first))


@given(st.lists(st.tuples(st.integers(0, 3), TAME, TAME), max_size=40))
def test_runs_are_summed_apart(rows):
    rows.sort(key=lambda row: row[0])
    keys = [row[0] for row in rows]
    heads = [i for i, k in enumerate(keys) if i == 0 or keys[i - 1] != k]
    values = np.array([[row[1] for row in rows], [row[2] for row in rows]]).reshape(2, -1)
    first, _ = exact.sum_runs(values.view(np.int64), np.array(heads, np.int64), np.array([0, 1], np.int64), 2)
    for run, key in enumerate(dict.fromkeys(keys)):
        for j in (0, 1):
            assert first[j, run] == math.fsum(row[1 + j] for row in rows if row[0] == key)


def test_values_slide_through_without_drift():
    rng = np.random.default_rng(7)
    values = rng.standard_normal(20_000) * 10.0 ** rng.integers(-12, 13, 20_000)
    total, size = empty(), 1_000
    naive = 0.0
    bits = values.view(np.int64)
    for i in range(20_000):
        exact.add_exact(*total, 0, bits[i], 1)
        naive += values[i]
        if i >= size:
            exact.add_exact(*total, 0, bits[i - size], -1)
            naive -= values[i - size]
        if i % 997 == 0:
            held = values[max(0, i - size + 1) : i + 1]
            assert exact.read_exact(*total, 0) == math.fsum(held)
    assert naive != math.fsum(values[19_000:20_000])  # the way that drifts does drift here
