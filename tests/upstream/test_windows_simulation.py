"""The simulated window operator: figure 12, staleness against its definition, and the append baselines."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windowpane import errors
from windowpane.core.upstream.windows import Commit, UpdateWindow
from windowpane.simulate.overload import Arrivals, arrivals, uniform, zipf
from windowpane.simulate.overload_windows import (
    simulate_append_windows,
    simulate_windows,
    window_staleness,
)
from windowpane.values.freshness import Policy


def every_unit(n):
    """One key, a tuple at each of the times 1, 2, 3, ..."""
    return Arrivals(np.arange(1.0, n + 1), np.zeros(n, np.int64), 1)


STREAMS = st.builds(
    lambda gaps, ids: Arrivals(np.cumsum(gaps), np.array(ids[: len(gaps)], np.int64), 3),
    st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=1, max_size=40),
    st.lists(st.integers(0, 2), min_size=40, max_size=40),
)
WINDOWS = st.builds(UpdateWindow, st.integers(1, 5), st.integers(1, 6), st.sampled_from(Commit))


@pytest.mark.paper
class TestFigure12:
    """One key, size 3, slide 1, a tuple at every unit of time, 2 units to process one."""

    def run(self, commit, until):
        return simulate_windows(UpdateWindow(3, 1, commit), every_unit(40), 2.0, until=until)

    def test_lazy(self):
        found = self.run(Commit.LAZY, 27.0)
        # Windows by their first tuple: 1 is tuples 1 to 3, which is complete at time 3.
        assert (found.windows + 1).tolist() == [1, 7, 13, 19]
        assert found.committed.tolist() == [3, 9, 15, 21]
        assert found.done.tolist() == [9, 15, 21, 27]

    def test_eager(self):
        found = self.run(Commit.EAGER, 25.0)
        # Window 1 is begun at time 1 and its result given at time 7, as the text of section 6.2.2 says.
        assert (found.windows + 1).tolist() == [1, 7, 13, 19]
        assert found.committed.tolist() == [1, 7, 13, 19]
        assert found.done.tolist() == [7, 13, 19, 25]

    def test_staleness_of_lazy(self):
        # Both begin with window ends. Queue: window 2 waits from 4 to 9, window 8 from 10 to 15, ...
        # Application: 0 at 3, 6 at 9; then window 2, complete since 4, is the oldest missing: 5 to 11 at 15.
        found = self.run(Commit.LAZY, 15.0).staleness
        assert found.queue[0] * 15.0 == pytest.approx(2 * 5.0**2 / 2)
        assert found.application[0] * 15.0 == pytest.approx(6.0**2 / 2 + (11.0**2 - 5.0**2) / 2)

    def test_staleness_of_eager(self):
        # Queue, by starters: window 2 waits from 2 to 7, window 8 from 8 to 13. Application, by closers: 0 at
        # 3, 4 at 7; then window 2, complete since 4, is the oldest missing: 3 to 9 at 13.
        found = self.run(Commit.EAGER, 13.0).staleness
        assert found.queue[0] * 13.0 == pytest.approx(2 * 5.0**2 / 2)
        assert found.application[0] * 13.0 == pytest.approx(4.0**2 / 2 + (9.0**2 - 3.0**2) / 2)


def by_definition(window, stream, delivered, measured, until):
    """Average over a fine grid of the age of the oldest window that is complete and newer than delivered."""
    grid = np.linspace(measured, until, 301)
    middle = (grid[1:] + grid[:-1]) / 2
    found = []
    for key in range(stream.keys):
        times = stream.times[stream.ids == key]
        closes = times[window.size - 1 :: window.slide]
        total = 0.0
        for t in middle:
            known = [w for k, w, at in delivered if k == key and at <= t]
            missing = closes[max(known) + 1 if known else 0 :]
            missing = missing[missing <= t]
            total += t - missing[0] if len(missing) else 0.0
        found.append(total / len(middle))
    return found


@given(window=WINDOWS, stream=STREAMS, cost=st.sampled_from([0.25, 1.0, 2.5]))
@settings(max_examples=25, deadline=None)
def test_staleness_is_what_its_definition_says(window, stream, cost):
    until = stream.span + 3.0
    outcomes = [
        simulate_windows(window, stream, cost, until=until),
        simulate_append_windows(window, stream, cost, until=until),
        simulate_append_windows(window, stream, cost, shed=True, until=until),
    ]
    for found in outcomes:
        rows = list(zip(found.keys.tolist(), found.windows.tolist(), found.done.tolist(), strict=True))
        expected = by_definition(window, stream, rows, 0.0, until)
        assert found.staleness.application.tolist() == pytest.approx(expected, abs=0.02 * until)


@given(window=WINDOWS, stream=STREAMS, cost=st.sampled_from([0.25, 1.0, 2.5]))
@settings(max_examples=60, deadline=None)
def test_staleness_of_windows_of_event_time(window, stream, cost):
    """A window counts from the first tuple of its key at or behind its end, if it holds any."""
    until = stream.span + 3.0
    found = simulate_windows(replace(window, timed=True), stream, cost, until=until)
    rows = list(zip(found.keys.tolist(), found.windows.tolist(), found.done.tolist(), strict=True))
    for key in range(stream.keys):
        times = stream.times[stream.ids == key].tolist()
        closes = {}
        for window_id in {w for t in times for w in windows_at(window, int(t))}:
            behind = [t for t in times if int(t) >= window_id * window.slide + window.size]
            closes[window_id] = min(behind, default=np.inf)
        total, last = 0.0, -np.inf
        done = [(at, w) for k, w, at in rows if k == key]
        assert all(closes[w] <= at for at, w in done)
        for (begin, last), (end, _) in pairwise([(0.0, -np.inf), *done, (until, None)]):
            since = min((close for w, close in closes.items() if w > last), default=np.inf)
            low = max(begin, since)
            if low < end:
                total += ((end - since) ** 2 - (low - since) ** 2) / 2
        assert found.staleness.application[key] * until == pytest.approx(total, abs=1e-6)


def windows_at(window, place):
    near = range((place - window.size) // window.slide, place // window.slide + 1)
    return [w for w in near if 0 <= place - w * window.slide < window.size]


@given(
    window=WINDOWS,
    stream=STREAMS,
    cost=st.sampled_from([0.25, 1.0, 2.5]),
    measured=st.sampled_from([0.0, 2.0]),
    policy=st.sampled_from([Policy.IN_PLACE, Policy.FIFO, Policy.FRESHEST]),
)
@settings(max_examples=100, deadline=None)
def test_staleness_kept_online_is_that_of_the_deliveries(window, stream, cost, measured, policy):
    until = stream.span + 3.0
    found = simulate_windows(window, stream, cost, policy=policy, measured=measured, until=until)
    delivered = (found.keys, found.windows, found.done)
    after = window_staleness(window, stream, delivered, measured, until)
    assert found.staleness.application.tolist() == pytest.approx(after.application.tolist(), abs=1e-9)
    assert found.most_held <= window.size + window.slide - 1
    # The operator is never busy for longer than it had; what it has begun may end later.
    assert len(found.windows) * window.size * cost <= until
    assert (found.processed - window.size) * cost <= until


@given(window=WINDOWS, stream=STREAMS, cost=st.sampled_from([0.25, 1.0, 2.5]))
@settings(max_examples=60, deadline=None)
def test_append_windows_process_every_window_in_order(window, stream, cost):
    found = simulate_append_windows(window, stream, cost, until=1e9)
    wanted = {
        (key, w)
        for key in range(stream.keys)
        for w in range((np.count_nonzero(stream.ids == key) - window.size) // window.slide + 1)
    }
    rows = list(zip(found.keys.tolist(), found.windows.tolist(), strict=True))
    assert sorted(rows) == sorted(wanted)
    # Tuple by tuple: each is processed once for every window that it lies in, after all before it.
    seen, free, done = [0, 0, 0], 0.0, {}
    for key, time in zip(stream.ids.tolist(), stream.times.tolist(), strict=True):
        place, seen[key] = seen[key], seen[key] + 1
        inside = [w for w in range(place + 1) if w * window.slide <= place < w * window.slide + window.size]
        free = max(free, time) + cost * len(inside)
        done |= {(key, w): free for w in inside if place == w * window.slide + window.size - 1}
    assert [done[row] for row in rows] == pytest.approx(found.done.tolist())


def test_shedding_keeps_what_the_operator_can_take():
    window, stream = UpdateWindow(10, 1), every_unit(20_000)
    found = simulate_append_windows(window, stream, 1.0, shed=True)
    assert 0.85 * stream.span < found.processed <= stream.span
    assert found.done[-1] - stream.times[-1] < 500


def test_runs_are_the_same_again():
    stream = arrivals(zipf(10, 0.9), 5_000, seed=3)
    first, again = (simulate_windows(UpdateWindow(5, 1, Commit.EAGER), stream, 1.0) for _ in range(2))
    assert first.windows.tolist() == again.windows.tolist()
    assert first.done.tolist() == again.done.tolist()


def test_append_windows_of_event_time_are_refused():
    with pytest.raises(errors.BadWindow, match="Use windows that count"):
        simulate_append_windows(UpdateWindow(2, 1, timed=True), every_unit(5), 1.0)


def test_many_keys_fit_the_memory_that_is_set_aside():
    stream = arrivals(uniform(500), 20_000, seed=1)
    for commit in Commit:
        found = simulate_windows(UpdateWindow(6, 3, commit), stream, 1.0)
        assert len(found.windows) > 500
