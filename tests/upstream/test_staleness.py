"""Staleness by its definition (3.3, 5.1), the bound on the difference of the two, and figures 2 and 6."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.upstream import model
from windowpane.core.kernels.staleness import area
from windowpane.core.upstream.append import AppendQueue
from windowpane.core.upstream.queue import KeyQueue
from windowpane.simulate.overload import Arrivals, arrivals, simulate, two_class, uniform, zipf

LINES = ["append", "fifo", "in_place", "linecutting"]


@st.composite
def streams(draw):
    keys = draw(st.integers(1, 5))
    gaps = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, 7.5]), min_size=1, max_size=40))
    ids = draw(st.lists(st.integers(0, keys - 1), min_size=len(gaps), max_size=len(gaps)))
    costs = draw(st.lists(st.sampled_from([0.5, 1.0, 2.25, 6.0]), min_size=keys, max_size=keys))
    return Arrivals(1.0 + np.cumsum(gaps), np.array(ids, np.int64), keys), costs


TIES = Arrivals(np.array([1.0] * 18 + [1.25, 1.25]), np.array([0] * 19 + [1]), 2), [0.5, 0.5]


@pytest.mark.parametrize("policy", LINES)
@example(stream=TIES, extra=3.3)
@given(stream=streams(), extra=st.sampled_from([0.0, 3.3, 60.0]))
def test_the_simulator_equals_the_definitions(policy, stream, extra):
    updates, costs = stream
    until = updates.span + extra
    times, ids = updates.times.tolist(), updates.ids.tolist()
    trace = model.run(policy, times, ids, costs, until)
    outcome = simulate(policy, updates, np.array(costs), until=until)
    for key in range(updates.keys):
        for queue, found in ((True, outcome.staleness.queue), (False, outcome.staleness.application)):
            expected = model.staleness(trace, times, ids, key, until, queue=queue)
            assert found[key] == pytest.approx(expected, abs=1e-9)
    assert outcome.serves.tolist() == [
        sum(k == key for _, k, _ in trace.serves) for key in range(updates.keys)
    ]


@given(
    since=st.floats(0, 50),
    counted=st.floats(0, 50),
    until=st.floats(0, 50),
)
def test_the_area_is_the_integral(since, counted, until):
    grid = np.linspace(0, 50, 20_001)
    inside = (grid >= max(since, counted)) & (grid <= until)
    sampled = float((grid[inside] - since).sum() * (50 / 20_000))
    assert area(since, counted, until) == pytest.approx(sampled, abs=0.3)
    assert area(np.inf, counted, until) == 0


@dataclass
class Figure2:
    """What an update queue does with an update each 2 units (a at 0, b at 2, ...), a service takes 3."""

    serves: dict[int, str] = field(default_factory=dict)
    delivers: dict[int, str] = field(default_factory=dict)
    application: list[int] = field(default_factory=list)
    queue: list[int] = field(default_factory=list)

    def run(self):
        queue, one, free = KeyQueue("in_place", cost=3.0), np.zeros(1, np.int64), 0
        for now in range(13):
            if now % 2 == 0:
                queue.enqueue(one, np.array([float(now)]), np.array([now // 2]))
            if now in [start + 3 for start in self.serves]:
                queue.deliver(one, np.array([float(now)]))
                self.delivers[now] = self.serves[now - 3]
            if now >= free and len(queue):
                self.serves[now] = "abcdefg"[queue.take(float(now)).rows[0]]
                free = now + 3
            known = queue.arrays()
            self.application.append(int(max(now - known["pending"][0], 0.0)))
            self.queue.append(int(max(now - known["first"][0], 0.0)))
        return self


def test_figure_2_the_staleness_of_one_key():
    # 3.3 with the parameters of the figure; docs/upstream.md draws it.
    found = Figure2().run()
    assert found.serves == {0: "a", 3: "b", 6: "d", 9: "e", 12: "g"}  # c is overwritten by d, f by g
    assert found.delivers == {3: "a", 6: "b", 9: "d", 12: "e"}
    times = np.arange(0.0, 13.0, 2.0)
    trace = model.run("in_place", times.tolist(), [0] * 7, [3.0], 12.0)
    assert {when: "abcdefg"[number] for when, _, number in trace.serves} == found.serves
    assert {when: "abcdefg"[number] for when, _, number in trace.deliveries} == found.delivers
    # Application: ramps 0-3, 1-4 (b waits since 2), 2-5 (c since 4), 1-4 (e since 8).
    application = (4.5 + 7.5 + 10.5 + 7.5) / 12
    # Queue: b waits 2-3, c 4-6, e 8-9, f 10-12.
    queue = (0.5 + 2.0 + 0.5 + 2.0) / 12
    outcome = simulate("in_place", Arrivals(times, np.zeros(7, np.int64), 1), 3.0)
    assert outcome.staleness.average_application == pytest.approx(application)
    assert outcome.staleness.average_queue == pytest.approx(queue)


def test_figure_2_at_single_moments():
    queue = KeyQueue("in_place", cost=3.0)
    one = np.zeros(1, np.int64)
    queue.enqueue(one, np.array([0.0]))
    queue.take(0.0)
    queue.enqueue(one, np.array([2.0]))
    queue.deliver(one, np.array([3.0]))
    # "When a' is delivered, staleness only goes down to (now - arrival time for b)": 1 at time 3.
    assert queue.arrays()["pending"].tolist() == [2.0]
    assert queue.staleness(3.0).application[0] * 3.0 == pytest.approx(4.5)
    assert queue.staleness(4.0).application[0] * 4.0 == pytest.approx(4.5 + 1.5)


QUEUES = {  # figure 6: IBM1, GM1, MSFT1 came; then IBM2 arrives
    "append": ["IBM1", "GM1", "MSFT1", "IBM2"],
    "fifo": ["GM1", "MSFT1", "IBM2"],
    "in_place": ["IBM2", "GM1", "MSFT1"],
}


@pytest.mark.parametrize("policy", ["fifo", "in_place"])
def test_figure_6_where_an_update_goes(policy):
    names = ["IBM1", "GM1", "MSFT1", "IBM2"]
    queue = KeyQueue(policy)
    queue.enqueue(np.array([0, 1, 2, 0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert [names[row] for row in queue.take(5.0).rows] == QUEUES[policy]


def test_figure_6_an_append_queue_keeps_both():
    names = ["IBM1", "GM1", "MSFT1", "IBM2"]
    queue = AppendQueue()
    queue.enqueue(np.array([0, 1, 2, 0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert [names[row] for row in queue.take(5.0).rows] == QUEUES["append"]


@pytest.mark.parametrize("load", [1.5, 2.0, 5.0, 20.0])
@pytest.mark.parametrize("shares", [[1.0], uniform(10), zipf(10, 0.9), two_class(10, 8)], ids=len)
@pytest.mark.parametrize("policy", ["fifo", "in_place", "linecutting", "freshest"])
def test_the_two_kinds_of_staleness_differ_as_section_5_1_says(policy, shares, load):
    updates = arrivals(shares, 4_000, seed=3)
    # Until all is served and delivered, so that there are only whole cycles.
    outcome = simulate(policy, updates, load, until=updates.span + load * (updates.keys + 2))
    delta = (outcome.staleness.application - outcome.staleness.queue) * outcome.staleness.span
    least = outcome.waited * load
    most = least + outcome.serves * load * load / 2
    assert (delta >= least * (1 - 1e-9)).all()
    assert (delta <= most * (1 + 1e-9)).all()
    assert delta.sum() < most.sum()
