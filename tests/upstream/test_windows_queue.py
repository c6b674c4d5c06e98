"""Windows under update semantics: against the model, and against all that ever arrived."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.upstream.window_model import ByMarks, Model
from windowpane import errors
from windowpane.core.kernels.update_windows import NO_START, NOT_OPENED
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
        self.clock, self.time = 0, -25  # so that windows end before, at and after 0
        self.numbers = defaultdict(list)
        self.operator = ByMarks()
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
        self.marks += served.marks.tolist()
        ends = iter(served.done_keys.tolist())
        told = defaultdict(int)
        for key, row, mark in zip(
            served.keys.tolist(), served.rows.tolist(), served.marks.tolist(), strict=True
        ):
            if mark > NOT_OPENED and key in self.operator.open:  # it had ended before
                self.operator.end(key)
                told[key] += 1
            end = self.operator.read(key, tuple(row), mark)
            self.dequeued.append((key, (end - self.window.size) // self.window.slide, tuple(row)))
        for key in ends:
            told[key] -= 1
            if told[key] < 0:
                self.operator.end(key)
        self.done += zip(served.done_keys.tolist(), served.done_windows.tolist(), strict=True)
        self.done_tuples = served.done_tuples.tolist()

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
    wanted = {(key, w * window.slide + window.size): drive.arrivals_in(key, w) for key, w in drive.done}
    assert {(key, end): rows for key, end, rows in drive.operator.given} == wanted
    assert len(drive.operator.given) == len(wanted)


@given(window=WINDOWS.filter(lambda w: not w.timed), steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_where_tuples_are_counted_the_marks_say_when_a_window_ends_as_well(window, steps):
    drive = Drive(window).play(steps)
    operator = ByMarks()
    for (key, _, row), mark in zip(drive.dequeued, drive.marks, strict=True):
        if row[0] == operator.read(key, row, mark) - 1:
            operator.end(key)
    assert [(key, (end - window.size) // window.slide) for key, end, _ in operator.given] == drive.done
    assert [rows for *_, rows in operator.given] == [drive.arrivals_in(*done) for done in drive.done]


@pytest.mark.parametrize("commit", Commit)
def test_marks_of_windows_that_end_at_or_before_0_are_their_ends(commit):
    queue = WindowQueue(UpdateWindow(3, 1, commit, timed=True), PagePool(4), 1)
    seen = []
    for place in range(-7, 4):
        queue.enqueue(ints([0, 1]), ints([[place], [place + 1]]), np.zeros(2))
        seen += queue.serve(0.0, 9).marks.tolist()
    opened = [mark for mark in seen if mark > NOT_OPENED]
    assert {-1, 0} <= set(opened)
    assert set(seen) - set(opened) <= {NO_START, NOT_OPENED}


def test_marks_of_a_lazy_window():
    drive = Drive(UpdateWindow(5, 2))
    drive.come([(0, 1)] * 7)
    drive.serve(1)
    assert [row[0] for _, _, row in drive.dequeued] == [2, 3, 4, 5, 6]
    assert drive.marks == [7, NO_START, NOT_OPENED, NO_START, NOT_OPENED]


@given(window=WINDOWS, steps=STEPS)
@settings(max_examples=100, deadline=None)
def test_windows_that_arrived_in_full_are_done_lost_or_to_come(window, steps):
    def check(drive):
        lost = 0
        for key, state in drive.model.keys.items():
            windows = {w for place in state.places for w in drive.model.windows_of(place)}
            full = {w for w in windows if state.bound is not None and drive.model.end_of(w) <= state.bound}
            to_come = {state.newest} if state.waits_since is not None else set()
            to_come |= {state.committed} if state.phase != "done" else set()
            lost += len(full - to_come - {w for at, w in drive.done if at == key})
        assert drive.queue.lost == lost

    Drive(window).play(steps, check)


@given(window=WINDOWS, steps=STEPS, policy=st.sampled_from(POLICIES))
@settings(max_examples=100, deadline=None)
def test_both_buffers_of_a_key_are_bounded(window, steps, policy):
    """LAZY: windows wait in the enqueue buffer. EAGER: it is emptied whenever a window starts."""
    eager = window.commit is Commit.EAGER

    def check(drive):
        waits, works = drive.queue.buffered()
        keys = np.arange(len(waits))
        rows, offsets = drive.queue._buffers.read(keys)
        for key in keys.tolist():
            places = rows[offsets[key] : offsets[key + 1], 0].tolist()
            assert len(set(places)) <= window.size + window.slide
            if not window.timed:
                assert len(places) <= window.most_tuples
                assert waits[key] <= (min(window.size, window.slide) if eager else window.most_tuples)
                assert works[key] <= window.size - 1  # the first tuple is processed when it is committed
        assert window.timed or max(getattr(drive, "done_tuples", ()), default=0) <= window.size
        if eager and policy is Policy.IN_PLACE:
            for key, state in drive.model.keys.items():
                assert works[key] == len(state.dequeue)
                assert waits[key] == (len(state.enqueue) if state.waits_since is not None else 0)

    Drive(window, policy).play(steps, check)


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
