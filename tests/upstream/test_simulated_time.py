"""The span of a simulation: it has to end, and staleness is averaged over it."""

import math

import pytest

from windowpane.core.upstream.windows import UpdateWindow
from windowpane.errors import BadQuery
from windowpane.simulate.overload import Arrivals, simulate
from windowpane.simulate.overload_windows import simulate_append_windows, simulate_windows

FOUR = Arrivals([0.0, 1.0, 2.0, 3.0], [0, 0, 0, 0], 1)
PAIRS = UpdateWindow(2, 1)
RUNS = {
    "in_place": lambda **span: simulate("in_place", FOUR, 2.0, **span),
    "append": lambda **span: simulate("append", FOUR, 2.0, **span),
    "switch": lambda **span: simulate("switch", FOUR, 2.0, **span),
    "windows": lambda **span: simulate_windows(PAIRS, FOUR, 2.0, **span),
    "append windows": lambda **span: simulate_append_windows(PAIRS, FOUR, 2.0, **span),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("name", ["measured", "until"])
@pytest.mark.parametrize("time", [math.inf, -math.inf, math.nan, "5"])
def test_a_time_that_never_comes_is_no_end_of_a_simulation(run, name, time):
    """The loops took tuples from behind the last one until the process died."""
    with pytest.raises(BadQuery, match=rf"{name}={time!r}: give a finite time, in the unit of the stream's"):
        run(**{name: time})


def test_an_update_that_never_comes_is_none():
    with pytest.raises(BadQuery, match=r"the last time is infinite\. Leave out updates that never come"):
        Arrivals([0.0, math.inf], [0, 0], 1)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("span", [{"measured": 3.0}, {"measured": 5.0}, {"until": 0.0}])
def test_nothing_is_stale_in_no_time(run, span):
    found = run(**span).staleness
    assert (found.application.tolist(), found.span) == ([0.0], 0.0)


def test_append_windows_of_a_stream_without_updates_are_never_stale():
    found = simulate_append_windows(PAIRS, Arrivals([], [], 2), 1.0)
    assert found.staleness.application.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("run", [simulate_windows, simulate_append_windows])
@pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf, "1", [1.0]])
def test_what_a_tuple_of_windows_costs_is_a_time(run, cost):
    with pytest.raises(BadQuery, match=r"cost=.*: give a time of at least 0, the same for every tuple"):
        run(PAIRS, FOUR, cost)


@pytest.mark.parametrize("run", [simulate_windows, simulate_append_windows])
def test_windows_whose_tuples_cost_nothing_are_given_as_they_come(run):
    found = run(PAIRS, FOUR, 0)
    assert found.done.tolist() == [1.0, 2.0, 3.0]
    assert found.staleness.application.tolist() == [0.0]


@pytest.mark.parametrize("times", [[], [0.0]])
def test_no_windows_are_shed_where_tuples_cost_nothing(times):
    stream = Arrivals(times, [0] * len(times), 1)
    found = simulate_append_windows(UpdateWindow(1, 1), stream, 0.0, shed=True)
    assert found.done.tolist() == times
