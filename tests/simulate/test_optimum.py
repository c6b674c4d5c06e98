"""The least staleness of any policy: where it is known, and against every policy that there is."""

import pytest

from windowpane.simulate.optimum import optimum
from windowpane.simulate.overload import arrivals, simulate, two_class, uniform, zipf
from windowpane.values.freshness import Policy

BOTH = pytest.mark.parametrize("application", [False, True])
SERVED = (Policy.FIFO, Policy.IN_PLACE, Policy.LINECUTTING, Policy.FRESHEST)


def simulated(policy, shares, load, application):
    outcome = simulate(policy, arrivals(shares, 200_000, seed=3), load, measured=20_000.0).staleness
    return outcome.average_application if application else outcome.average_queue


@BOTH
@pytest.mark.parametrize("load", [0.5, 2.0])
def test_with_one_key_there_is_nothing_to_choose(load, application):
    least = optimum([1.0], load, application=application, slots=16)
    assert least == pytest.approx(simulated(Policy.IN_PLACE, uniform(1), load, application), rel=0.02)


@BOTH
@pytest.mark.parametrize("load", [1.2, 3.0])
def test_with_equal_rates_the_longest_wait_first_is_best(load, application):
    least = optimum(uniform(2), load, application=application, slots=8)
    assert least == pytest.approx(simulated(Policy.IN_PLACE, uniform(2), load, application), rel=0.02)


@BOTH
@pytest.mark.parametrize("shares", [two_class(2, 1), zipf(2, 1.5), zipf(3, 0.9)])
def test_no_policy_has_less_and_ours_has_hardly_more(shares, application):
    least = optimum(shares, 2.0, application=application, slots=8 if len(shares) == 2 else 3)
    found = {policy: simulated(policy, shares, 2.0, application) for policy in SERVED}
    assert min(found.values()) > 0.99 * least
    assert found[Policy.FRESHEST] < 1.02 * least
    assert max(found.values()) > 1.02 * least  # else the test says nothing


def test_a_unit_of_time_is_any():
    seconds = optimum([1.0, 0.1], 2.0, application=True)
    assert optimum([0.001, 0.0001], 2000.0, application=True) == pytest.approx(1000.0 * seconds)
