"""The clock against an obvious reference, under every split of the stream into batches."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.arrays import ALWAYS, NEVER
from windowpane.core.clock import Clock
from windowpane.values.errors import BadQuery, BadState
from windowpane.values.punctuation import (
    Delay,
    Heartbeat,
    Melded,
    Slack,
    delay,
    external,
    heartbeat,
    manual,
    melded,
    ordered,
    slack,
)

TIMES = st.integers(-30, 30)
SINGLE = st.one_of(
    st.builds(delay, st.integers(0, 12)),
    st.builds(slack, st.integers(0, 5)),
    st.just(external("m")),
    st.just(manual()),
)
ROWS = st.lists(st.tuples(TIMES, st.booleans(), st.integers(0, 3)), min_size=1, max_size=40)


@dataclass
class Reference:
    """The definition, one tuple at a time."""

    policy: object
    lateness: int
    max_ahead: int | None
    anchor: int | None
    melds: bool
    listed: int
    kept: dict[int, list[int]] = field(default_factory=dict)
    marks: dict[int, int] = field(default_factory=dict)
    bound: int | None = None

    def own_bound(self, s):
        times = self.kept.get(s, [])
        found = [self.marks[s]] if s in self.marks else []
        if isinstance(self.policy, Delay) and times:
            found.append(max(times) - self.policy.delay)
        if isinstance(self.policy, Slack) and len(times) > self.policy.rows:
            found.append(max(times[: len(times) - self.policy.rows]))
        return max(found, default=None)

    def take(self, t, marks, s):
        s = s if self.melds else 0
        if not marks and self.bound is not None and t < self.bound - self.lateness:
            return 1
        every = [*self.marks.values(), *(x for times in self.kept.values() for x in times)]
        progress = max([*every, *(x for x in (self.anchor, self.bound) if x is not None)], default=None)
        if self.max_ahead is not None and progress is not None and t > progress + self.max_ahead:
            return 2
        self.kept.setdefault(s, [])
        if marks:
            self.marks[s] = max(self.marks.get(s, t), t)
        else:
            self.kept[s].append(t)
        bounds = [self.own_bound(s) for s in set(self.kept) | set(range(self.listed))]
        if None not in bounds:
            self.bound = max([min(bounds), *([self.bound] if self.bound is not None else [])])
        return 3 if marks else 0


def batches_of(rows, cuts):
    edges = [0, *sorted(c % (len(rows) + 1) for c in cuts), len(rows)]
    return [rows[a:b] for a, b in pairwise(edges)]


def arrays_of(rows):
    return (
        np.array([r[0] for r in rows], np.int64),
        np.array([r[1] for r in rows], np.bool_),
        np.array([r[2] for r in rows], np.int64),
    )


def check_verdict(verdict, rows, codes, high_before, bound):
    kept = [r[0] for r, c in zip(rows, codes, strict=True) if c == 0]
    assert verdict.codes.tolist() == codes
    assert verdict.counts == tuple(codes.count(c) for c in range(4))
    assert verdict.all_kept == (len(kept) == len(rows))
    assert verdict.low == min(kept, default=ALWAYS)
    assert verdict.high == max(kept, default=NEVER)
    assert verdict.in_order == (sorted([high_before, *kept]) == [high_before, *kept])
    assert verdict.bound == (NEVER if bound is None else bound)


@given(SINGLE, ROWS, st.lists(st.integers(0, 60), max_size=5), st.integers(0, 6), st.booleans(), st.data())
def test_every_split_of_a_stream_gives_the_verdicts_of_the_definition(policy, rows, cuts, late, meld, data):
    use_markers, listed = data.draw(st.booleans()), data.draw(st.integers(0, 3)) if meld else 1
    rows = [(t, m and use_markers, s) for t, m, s in rows]
    full = melded("s", policy, sources=list(range(listed))) if meld else policy
    clock, stored = Clock(full, lateness=late), Clock(full, lateness=late)
    reference = Reference(policy, late, None, None, meld, listed)
    high = NEVER
    for batch in batches_of(rows, cuts):
        stored.restore(json.loads(json.dumps(clock.snapshot())))
        codes = [reference.take(*row) for row in batch]
        time, marker, source = arrays_of(batch)
        for each in (clock, stored):
            verdict = each.admit(time, marker if use_markers else None, source if meld else None)
            check_verdict(verdict, batch, codes, high, reference.bound)
        high = clock.high
        assert stored.snapshot() == clock.snapshot()


def start_of(first, ahead):
    """The largest time of those around the middle one, which are reached from it in steps of `ahead`."""
    data = [t for t, marks, _ in first if not marks]
    times = sorted(t for t, _, _ in first)
    tell = sorted(data) if data and len(first) > 2 else times
    found = tell[(len(tell) - 1) // 2]
    for t in times:
        found = t if found < t <= found + ahead else found
    return found


@given(ROWS, st.integers(0, 20))
def test_the_only_one_of_the_first_tuples_that_has_a_place_is_to_wait(first, ahead):
    start = start_of(first, ahead)
    near = [i for i, (t, _, _) in enumerate(first) if t <= start]
    clock, (time, marker, _) = Clock(delay(3), max_ahead=ahead), arrays_of(first)
    assert clock.begin(time, marker) == (near[0] if len(near) == 1 else None)
    for bound in (start - ahead - 1, start - ahead):
        other = Clock(delay(3), max_ahead=ahead)
        other.punctuate(bound)
        alone = len(near) == 1 and bound < start - ahead
        assert other.begin(time, marker) == (near[0] if alone else None)


@given(SINGLE, ROWS, ROWS, st.lists(st.integers(0, 60), max_size=5), st.integers(0, 20), st.booleans())
def test_tuples_too_far_ahead_are_told_apart_whatever_the_batches(policy, first, rows, cuts, ahead, meld):
    clock = Clock(melded("s", policy) if meld else policy, max_ahead=ahead)
    reference = Reference(policy, 0, ahead, start_of(first, ahead), meld, 0 if meld else 1)
    for batch in [first, *batches_of(rows, cuts)]:
        high = clock.high
        codes = [reference.take(*row) for row in batch]
        verdict = clock.admit(*arrays_of(batch))
        check_verdict(verdict, batch, codes, high, reference.bound)


@given(st.lists(TIMES, min_size=1, max_size=60), st.integers(0, 70), st.integers(0, 8))
def test_the_fast_path_and_the_loop_keep_the_same_slack(times, cut, rows):
    fast, slow = Clock(slack(rows), lateness=1000), Clock(slack(rows), lateness=1000)
    for part in (times[:cut], times[cut:]):
        a = fast.admit(np.array(part, np.int64))
        b = slow._one_by_one(np.array(part, np.int64), None, None)
        assert (a.bound, a.low, a.high, a.in_order) == (b.bound, b.low, b.high, b.in_order)
        assert fast.snapshot() == slow.snapshot()


def test_one_absurd_first_row_does_not_poison_the_stream():
    for absurd in (2**61, -(2**61)):
        clock = Clock(delay(10), max_ahead=1000)
        codes = clock.admit(np.array([absurd, 100, 101, 105])).codes.tolist()
        assert codes[1:] == [0, 0, 0]
        assert clock.high == 105
        assert clock.admit(np.array([200, 90])).codes.tolist() == [0, 1]


@given(st.lists(TIMES, min_size=1, max_size=30), st.integers(0, 20), st.randoms(use_true_random=False))
def test_where_a_stream_begins_depends_on_the_first_times_alone(times, ahead, rng):
    mixed = rng.sample(times, len(times))
    codes = []
    for order in (times, mixed):
        clock = Clock(manual(), max_ahead=ahead)
        codes.append(sorted(zip(order, clock.admit(np.array(order)).codes.tolist(), strict=True)))
    assert codes[0] == codes[1]


def test_a_bound_by_hand_never_moves_back_and_makes_earlier_tuples_late():
    clock = Clock(manual())
    assert clock.admit(np.array([5, 3, 9])).bound == NEVER
    assert clock.punctuate(7) == 7
    assert clock.punctuate(2) == 7
    assert clock.punctuate(NEVER) == 7
    assert clock.admit(np.array([6, 7, 8])).codes.tolist() == [1, 0, 0]


def test_after_the_end_every_tuple_is_late():
    clock = Clock(delay(5), max_ahead=10, lateness=2**61)
    clock.admit(np.array([1, 2]))
    assert clock.end() == ALWAYS
    assert clock.admit(np.array([2**62, 0])).codes.tolist() == [1, 1]


def test_times_at_the_limit_do_not_overflow():
    clock = Clock(Delay(2**61), max_ahead=2**61, lateness=2**61)
    assert clock.admit(np.array([-(2**62), -(2**62)])).counts == (2, 0, 0, 0)
    assert clock.admit(np.array([2**62])).counts == (0, 0, 1, 0)
    free = Clock(Delay(2**61), lateness=2**61)
    assert free.admit(np.array([2**62, -(2**62)])).codes.tolist() == [0, 1]


def test_in_a_lull_the_heartbeat_moves_the_bound_behind_the_clock():
    clock = Clock(heartbeat(100, delay=10))
    clock.admit(np.array([1000]), now=1000)
    assert clock.tick(1099) == 990
    assert clock.tick(1100) == 1090
    assert clock.tick(1150) == 1140
    assert clock.admit(np.array([1139, 1145]), now=1160).codes.tolist() == [1, 0]
    assert clock.tick(1200) == 1140


def test_without_a_time_of_arrival_the_next_tick_starts_the_lull():
    clock = Clock(heartbeat(100))
    clock.admit(np.array([50]))
    assert clock.tick(1000) == 50
    assert clock.tick(1099) == 50
    assert clock.tick(1100) == 1100


def test_a_heartbeat_needs_no_tuple_ever():
    for policy in (heartbeat(100), melded("s", heartbeat(100)), melded("s", heartbeat(100), sources=["a"])):
        clock = Clock(policy)
        assert clock.tick(1000) == NEVER
        assert clock.tick(1100) == 1100


def test_an_idle_source_stops_holding_back_the_others():
    clock = Clock(melded("s", heartbeat(100, delay=0)))
    clock.admit(np.array([10, 500]), source=np.array([0, 1]), now=1000)
    assert clock.bound == 10
    clock.admit(np.array([600]), source=np.array([1]), now=1080)
    assert clock.tick(1099) == 10
    assert clock.tick(1100) == 600
    verdict = clock.admit(np.array([599, 600, 700]), source=np.array([0, 0, 1]), now=1101)
    assert verdict.codes.tolist() == [1, 0, 0]
    assert verdict.bound == 600


def test_listed_sources_hold_the_bound_until_each_is_seen():
    clock = Clock(melded("s", ordered(), sources=["a", "b"]))
    assert clock.admit(np.array([10]), source=np.array([0])).bound == NEVER
    assert clock.admit(np.array([7]), source=np.array([1])).bound == 7


def test_a_clock_refuses_the_state_of_another_policy():
    with pytest.raises(BadState, match="Restart with the old punctuation"):
        Clock(delay(5)).restore(Clock(delay(6)).snapshot())


def test_policies_are_plain_values_with_checked_parameters():
    assert heartbeat("30 s", "5 s") == Heartbeat(30_000_000, 5_000_000, Delay(5_000_000))
    assert melded("r", heartbeat(9)) == Heartbeat(9, 0, Melded("r", Delay(0)))
    for build in (
        lambda: delay(-1),
        lambda: slack(-1),
        lambda: heartbeat(0),
        lambda: Clock(ordered(), max_ahead=-1),
        lambda: Clock(ordered(), lateness=2**62),
        lambda: Clock(melded("s", ordered())).admit(np.array([1])),
        lambda: melded("s", melded("t", heartbeat(1))),
    ):
        with pytest.raises(BadQuery):
            build()
