"""Windows under update semantics: against the model, and against all that ever arrived."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.upstream.window_model import Model
from windowpane import errors
from windowpane.core.upstream.memory import PagePool
from windowpane.core.upstream.windows import Commit, Phase, UpdateWindow, WindowQueue
from windowpane.values.freshness import Policy

KEYS = 4
WINDOWS = st.builds(
    UpdateWindow, st.integers(1, 6), st.integers(1, 7), st.sampled_from(Commit), st.booleans()
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("come"),
            st.lists(st.tuples(st.integers(0, KEYS - 1), st.integers(-2, 9)), min_size=1, max_size=12),
        ),
        st.tuples(st.just("serve"), st.integers(1, 9)),
        st.tuples(st.just("punctuate"), st.integers(0, 5)),
    ),
    min_size=1,
    max_size=30,
)
POLICIES = [Policy.FIFO, Policy.IN_PLACE, Policy.LINECUTTING, Policy.FRESHEST]


def ints(values):
    return np.array(values, np.int64)


class Drive:
    """A queue and the model side by side; a row is its place and the number of its tuple."""

    def __init__(self, window, policy=Policy.IN_PLACE, block=2):
        self.window = window
        self.pool = PagePool(200, 32 * block)
        self.queue = WindowQueue(window, self.pool, 2, policy=policy, block=block)
        eager = window.commit is Commit.EAGER
        self.model = Model(window.size, window.slide, eager=eager, timed=window.timed)
        self.clock = self.time = 0
        self.numbers = defaultdict(list)
        self.dequeued, self.marks, self.done = [], [], []

    def come(self, batch):
        numbers = list(range(self.clock, self.clock + len(batch)))
        self.clock += len(batch)
        places, late = [], []
        for (key, step), number in zip(batch, numbers, strict=True):
            self.time += max(step, 0)
            places.append(self.time + min(step, 0))
            late.append(not self.model.arrive(key, places[-1]))
            if not late[-1]:
                self.numbers[key].append(number)
        keys = ints([key for key, _ in batch])
        found = self.queue.enqueue(
            keys, np.stack([ints(places), ints(numbers)], axis=1), np.array(numbers, float)
        )
        assert found.tolist() == late

    def serve(self, tuples):
        self.model.serve(tuples)
        served = self.queue.serve(float(self.clock), tuples)
        self.dequeued += zip(
            served.keys.tolist(), served.windows.tolist(), map(tuple, served.rows.tolist()), strict=True
        )
        self.marks += served.marks.tolist()
        self.done += zip(served.done_keys.tolist(), served.done_windows.tolist(), strict=True)

    def punctuate(self, ahead):
        if self.window.timed:
            self.time += ahead
            self.queue.punctuate(self.time, float(self.clock))
            self.model.punctuate(self.time)

    def play(self, steps, check=lambda _: None):
        for kind, what in steps:
            getattr(self, kind)(what)
            check(self)
        return self

    def arrivals_in(self, key, window):
        """From all that ever came: the tuples of exactly this window."""
        low = window * self.window.slide
        pairs = zip(self.model.keys[key].places, self.numbers[key], strict=True)
        return [(p, n) for p, n in pairs if low <= p < low + self.window.size]


@given(window=WINDOWS, steps=STEPS, block=st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_the_queue_does_what_the_rules_say(window, steps, block):
    def check(drive):
        model = drive.model
        assert [(key, w, row[0]) for key, w, row in drive.dequeued] == model.dequeued
        assert drive.done == model.done
        seen = range(len(drive.queue.phases()))
        phases = [model.keys[key].phase if key in model.keys else "done" for key in seen]
        assert drive.queue.phases() == [Phase(phase) for phase in phases]
        waiting = sorted(key for key, state in model.keys.items() if state.waits_since is not None)
        assert drive.queue.waiting().tolist() == waiting

    Drive(window, block=block).play(steps, check)


@given(window=WINDOWS, steps=STEPS, policy=st.sampled_from(POLICIES))
@settings(max_examples=150, deadline=None)
def test_every_delivered_window_is_whole_and_newer_than_the_one_before(window, steps, policy):
    drive = Drive(window, policy).play([*steps, ("serve", 10_000)])
    given_ = defaultdict(list)
    for key, w, row in drive.dequeued:
        given_[key, w].append(row)
    for key, w in drive.done:
        assert given_[key, w] == drive.arrivals_in(key, w)
    for key in range(KEYS):
        windows = [w for at, w in drive.done if at == key]
        assert windows == sorted(set(windows))
    # What was begun and not delivered is at most one window for each key, and that only if it commits early.
    begun = set(given_) - set(drive.done)
    assert len(begun) == len({key for key, _ in begun})
    assert not begun or window.commit is Commit.EAGER


@given(window=WINDOWS.filter(lambda w: not w.timed), steps=STEPS, policy=st.sampled_from(POLICIES))
@settings(max_examples=100, deadline=None)
def test_a_key_never_has_more_than_size_plus_slide_less_one_tuples(window, steps, policy):
    drive = Drive(window, policy).play(steps)
    assert drive.queue.most_held <= window.size + window.slide - 1 == window.most_tuples


@pytest.mark.parametrize("commit", Commit)
@pytest.mark.parametrize(("size", "slide"), [(3, 1), (4, 4), (5, 2), (1, 1), (2, 5)])
def test_that_bound_is_reached_where_windows_touch(commit, size, slide):
    drive = Drive(UpdateWindow(size, slide, commit))
    drive.come([(0, 1)])
    drive.serve(1)
    drive.come([(0, 1)] * 5 * (size + slide))
    most = {(2, 5): 3}.get((size, slide), size + slide - 1)
    assert drive.queue.most_held == most


@given(window=WINDOWS, steps=STEPS)
@settings(max_examples=100, deadline=None)
def test_an_operator_that_follows_the_marks_alone_builds_the_same_windows(window, steps):
    """Table 1: open where the mark is an end, update the open window with every tuple."""
    drive = Drive(window).play(steps)
    open_, built = {}, {}
    for (key, w, row), mark in zip(drive.dequeued, drive.marks, strict=True):
        if w * window.slide + window.size == mark and key not in open_:
            open_[key] = (w, [])
        assert mark in {-1, 0} or mark == open_[key][0] * window.slide + window.size
        open_[key][1].append(row)
        if (key, w) in drive.done and len(open_[key][1]) == len(drive.arrivals_in(key, w)):
            built[key, w] = open_.pop(key)[1]
    assert built == {(key, w): drive.arrivals_in(key, w) for key, w in drive.done}


def test_marks_of_a_lazy_window():
    drive = Drive(UpdateWindow(5, 2))
    drive.come([(0, 1)] * 7)
    drive.serve(1)
    assert [row[0] for _, _, row in drive.dequeued] == [2, 3, 4, 5, 6]
    assert drive.marks == [7, -1, 0, -1, 0]


def test_memory_returns_when_windows_are_served():
    drive = Drive(UpdateWindow(3, 3, Commit.EAGER))
    drive.come([(key, 1) for key in range(KEYS) for _ in range(3)])
    assert drive.queue.usage.used == 12
    drive.serve(100)
    assert drive.queue.usage.used == 0
    assert drive.pool.free_pages == drive.pool.pages


def test_many_keys_grow_the_queue_and_lose_nothing():
    queue = WindowQueue(UpdateWindow(2, 1, Commit.EAGER), PagePool(4_000, 128), 2)
    rng = np.random.default_rng(0)
    windows = []
    for number in range(60):
        keys = rng.integers(0, 10 * (number + 1), 50)
        queue.enqueue(keys, np.zeros((50, 2), np.int64), np.full(50, float(number)))
        served = queue.serve(float(number), 40)
        windows += zip(served.done_keys.tolist(), served.done_windows.tolist(), strict=True)
    assert len(windows) == len(set(windows)) > 500


@pytest.mark.parametrize("commit", Commit)
def test_a_full_pool_is_an_error_and_the_queue_goes_on(commit):
    queue = WindowQueue(UpdateWindow(4, 4, commit), PagePool(1, 64), 2, block=2)
    with pytest.raises(errors.OutOfMemory, match="1 pages is full after 4 of 5 tuples"):
        queue.enqueue(ints([0, 0, 0, 0, 1]), np.zeros((5, 2), np.int64), np.zeros(5))
    served = queue.serve(1.0, 10)
    assert (served.tuples, served.done_keys.tolist()) == (4, [0])
    queue.enqueue(ints([1] * 4), np.zeros((4, 2), np.int64), np.full(4, 2.0))
    assert queue.serve(3.0, 10).done_keys.tolist() == [1]


def test_what_cannot_be_is_refused():
    with pytest.raises(errors.BadWindow, match="size 0 and slide 1"):
        UpdateWindow(0, 1)
    with pytest.raises(errors.BadQuery, match="keeps every tuple"):
        WindowQueue(UpdateWindow(1, 1), PagePool(1), 1, policy="append")
    with pytest.raises(errors.BadQuery, match="have no punctuation"):
        WindowQueue(UpdateWindow(1, 1), PagePool(1), 1).punctuate(3, 0.0)
