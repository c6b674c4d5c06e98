"""The least staleness of any policy: where it is known, and against every policy that there is."""

import pytest

from windowpane.simulate.optimum import due, in_slots, optimum
from windowpane.simulate.overload import arrivals, simulate, simulate_due, two_class, uniform, zipf
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


@BOTH
@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("rates", [[1.0, 1.0], [0.2, 0.2, 0.6], [0.3, 0.3, 0.3]])
def test_keys_that_update_alike_need_no_names(rates, slots, application):
    prices = [1.0, 20.0]
    told = [rate * (1.0 + 1e-9 * key) for key, rate in enumerate(rates)]
    alike, apart = (
        in_slots(given, 2.0, application=application, slots=slots, services=6, prices=prices)
        for given in (rates, told)
    )
    assert alike[0] == pytest.approx(apart[0], rel=1e-4)
    assert alike[1] == pytest.approx(apart[1], rel=1e-4)


@BOTH
def test_no_price_has_less_than_the_least_of_any_policy_and_the_best_hardly_more(application):
    rates = two_class(3, 1)
    prices = [0.1, 8.0, 24.0, 80.0, 8000.0]
    least, found = in_slots(rates, 2.0, application=application, slots=4, services=8, prices=prices)
    assert min(found) > 0.9998 * least
    assert min(found) < 1.002 * least
    assert max(found) > 1.02 * least  # else the test says nothing


@BOTH
@pytest.mark.parametrize("price", [0.0, 30.0])
def test_a_rule_has_the_staleness_that_its_simulation_shows(price, application):
    rates = zipf(2, 0.9)
    coarse, fine = (
        in_slots(rates, 2.0, application=application, slots=n, services=8, prices=[price])[1][0]
        for n in (4, 8)
    )
    outcome = simulate_due(arrivals(rates, 200_000, seed=3), 2.0, due(rates, price), measured=20_000.0)
    shown = outcome.staleness.average_application if application else outcome.staleness.average_queue
    assert 2.0 * fine - coarse == pytest.approx(shown, rel=0.02)


def test_the_longest_wait_first_is_the_rule_without_a_price():
    stream = arrivals(zipf(5, 0.9), 2_000, seed=1)
    longest = simulate(Policy.IN_PLACE, stream, 2.0)
    found = simulate_due(stream, 2.0, due(zipf(5, 0.9), 0.0))
    assert found.serves.tolist() == longest.serves.tolist()
    assert found.waited == pytest.approx(longest.waited)


def test_a_service_is_due_when_it_saves_its_price():
    rates, price = zipf(4, 1.0), 12.5
    waits = due(rates, price)
    assert waits * waits / 2 + waits / rates == pytest.approx(price)
    assert (waits[1:] < waits[:-1]).all()  # the slower the sooner
