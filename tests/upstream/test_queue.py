"""The update queue: order of service, how many keys it looks at, batches, state as arrays."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.kernels import habits
from windowpane.core.kernels.key_ranks import renew
from windowpane.core.upstream.queue import KeyQueue
from windowpane.errors import BadQuery, BadState
from windowpane.simulate.overload import Arrivals, arrivals, simulate, uniform, zipf

UPDATE = ["fifo", "in_place", "linecutting", "freshest"]
PRICED = ["at random", "timed"]
STEPS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 12), max_size=6),  # keys that update
        st.sampled_from([0.0, 0.125, 0.5, 2.0, 11.0, 300.0]),  # then time passes
        st.integers(0, 4),  # then so many are taken
    ),
    min_size=1,
    max_size=25,
)


def knowing(kind):
    """A queue that knows how updates come, at random or by a rough clock, so that a service has a price."""
    arrays = KeyQueue("freshest", cost=1.5).arrays()
    if kind == "timed":
        for gap in np.random.default_rng(1).uniform(0.6, 1.4, 256):
            habits.notice(arrays["habits"], gap)
        assert arrays["habits"][habits.ALL, habits.KIND] == habits.TIMED
    else:
        arrays["habits"][habits.ALL, habits.KIND] = habits.RANDOM
    return KeyQueue.restore("freshest", arrays)


def played(policy, steps, *, check=None, batches=True):
    """The keys and rows taken, in order."""
    queue = KeyQueue(policy, cost=1.5) if policy in UPDATE else knowing(policy)
    now, row, taken = 1.0, 0, []
    for ids, wait, count in steps:
        rows = np.arange(row, row + len(ids))
        row += len(ids)
        for part in [range(len(ids))] if batches else [[i] for i in range(len(ids))]:
            at = np.array(part, np.int64)
            queue.enqueue(np.array(ids, np.int64)[at], np.full(len(at), now), rows[at])
        now += wait
        for _ in range(count):
            queue = check(queue, now) if check else queue
            served = queue.take(now, limit=1)
            taken += zip(served.ids.tolist(), served.rows.tolist(), strict=True)
            queue.deliver(served.ids, served.times + 0.25)
    return taken, queue, now


def rank(one, now):
    """The value of a key's parabola."""
    wait = now - one.since
    return one.constant + wait * (one.linear + wait * one.square)


@pytest.mark.parametrize("policy", [*UPDATE, *PRICED])
@given(steps=STEPS)
def test_the_key_with_the_highest_rank_is_served(policy, steps):
    def check(queue, now):
        chosen = copy.deepcopy(queue).take(now, limit=1).ids
        ranks, table = copy.deepcopy(queue._queue.ranks), queue._queue.habits
        waiting = queue.waiting()
        for key in waiting:
            renew(ranks[key], table, now)
        highest = max((rank(ranks[key], now) for key in waiting), default=0.0)
        assert len(chosen) == min(len(waiting), 1)
        assert all(rank(ranks[key], now) >= highest - 1e-9 * abs(highest) for key in chosen)
        return queue

    played(policy, steps, check=check)


@given(steps=STEPS)
def test_where_a_service_has_a_price_the_most_overdue_key_is_served(steps):
    """From the definition: due is the wait at which w * w / 2 + w / rate, by cost, reaches the price."""
    saved = []

    def check(queue, now):
        arrays, price = queue.arrays(), queue._queue.habits[habits.ALL, habits.PRICE]
        waiting, chosen = queue.waiting(), copy.deepcopy(queue).take(now, limit=1).ids
        wait = now - arrays["first"][waiting]
        gap = arrays["gaps"][waiting] / arrays["weight"][waiting]
        each = 1.0 / arrays["weight"][waiting]
        since = now - arrays["arrived"][waiting]

        def worth(w):
            """What serving after a wait of w saves, if the key is silent until then."""
            return (w * w / 2 + w * (gap + each * (since + w - wait))) / 1.5

        if len(waiting) and price > 0:
            low, high = np.zeros(len(wait)), np.full(len(wait), 1e9)
            for _ in range(120):
                middle = (low + high) / 2
                low, high = np.where(worth(middle) < price, [middle, high], [low, middle])
            overdue = wait - low
            assert overdue[waiting == chosen[0]] >= overdue.max() - 1e-6 * (1 + abs(overdue).max())
        if len(waiting):
            saved.append(worth(wait)[waiting == chosen[0]][0])
        return queue

    _, queue, _ = played("at random", steps, check=check)
    known = queue._queue.habits[habits.ALL]
    assert known[habits.SERVES] == len(saved)
    assert known[habits.MEAN] == pytest.approx(np.mean(saved) if saved else 0.0)


def timed_worth(table, w, silence, gap, cost, price):
    """What waiting costs for each unit of time that it puts off the next service, beyond what that is worth.

    From the definitions: wait for a moment, or for the next update, but as long as a service.
    """
    piece = max(int(np.searchsorted(habits.EDGES, silence / gap, side="right")), 4)
    hazard = 1 + (table[habits.HAZARD, piece] - 1) / (1 + cost / gap)
    rest = table[habits.LEFT, piece] * gap - (silence - [0.0, *habits.EDGES][piece] * gap)
    if rest <= 0.02 * gap:
        rest = max(table[habits.LEFT, min(piece + 1, habits.PIECES - 1)], 0.02) * gap
    long = max(rest, cost)
    put_off = gap * (1 + max(np.floor((cost - rest) / gap), 0))
    ahead = ((w + long) ** 2 - w**2) / 2 / put_off
    return (min(w / hazard, ahead) - (np.sqrt(gap**2 + 2 * price * cost) - gap)) / cost


@given(steps=STEPS)
def test_where_updates_are_timed_the_key_is_served_that_gains_least_by_waiting(steps):
    def check(queue, now):
        arrays, table = queue.arrays(), queue._queue.habits
        price, waiting = table[habits.ALL, habits.PRICE], queue.waiting()
        chosen = copy.deepcopy(queue).take(now, limit=1).ids
        if price > 0 and len(waiting):
            gaps = np.maximum(arrays["gaps"][waiting] / arrays["weight"][waiting], 1e-12)
            known = zip(now - arrays["first"][waiting], now - arrays["arrived"][waiting], gaps, strict=True)
            worths = np.array([timed_worth(table, *one, 1.5, price) for one in known])
            most = worths.max()
            assert worths[waiting == chosen[0]] >= most - 1e-6 * (1 + abs(most))
        return queue

    played("timed", steps, check=check)


@pytest.mark.parametrize("pattern", ["regular", "together"])
@pytest.mark.parametrize("theta", [0.0, 0.6, 0.9])
def test_freshest_sees_updates_coming_that_come_by_a_clock(pattern, theta):
    def staleness(policy, load):
        stream = arrivals(zipf(100, theta), 20_000, seed=2, pattern=pattern)
        return simulate(policy, stream, load, measured=4_000.0).staleness.average_application

    ratios = [
        staleness("freshest", load) / min(staleness(policy, load) for policy in UPDATE[:3])
        for load in (1.5, 3.0, 10.0)
    ]
    assert max(ratios) < 1.03
    if theta or pattern == "regular":  # keys that all update at one time, equally often, are all alike
        assert np.mean(ratios) < 0.85


@pytest.mark.parametrize("keys", [10, 100])
@pytest.mark.parametrize("theta", [0.0, 0.9])
def test_clocks_of_some_keys_do_not_spoil_the_service_of_the_others(keys, theta):
    def staleness(policy, load):
        stream = arrivals(zipf(keys, theta), 20_000, seed=2, pattern="mixed")
        return simulate(policy, stream, load, measured=4_000.0).staleness.average_application

    for load in (1.5, 3.0, 10.0):
        best = min(staleness(policy, load) for policy in UPDATE[:3])
        assert staleness("freshest", load) < 1.03 * best


def test_updates_that_are_mixed_are_those_of_their_keys():
    def times(pattern, key):
        stream = arrivals(zipf(10, 0.6), 5_000, seed=4, pattern=pattern)
        assert (np.diff(stream.times) >= 0).all()
        return stream.times[stream.ids == key].tolist()

    clocked = [times("mixed", key) == times("regular", key) for key in range(10)]
    random = [times("mixed", key) == times("random", key) for key in range(10)]
    assert sum(clocked) == 3
    assert clocked == [not one for one in random]


def test_a_service_has_a_price_unless_updates_come_in_bursts():
    def price(pattern):
        queue = KeyQueue("freshest", cost=2.0)
        stream = arrivals(zipf(20, 0.6), 6_000, seed=3, pattern=pattern)
        for at in range(0, 6_000, 2):
            queue.enqueue(stream.ids[at : at + 2], stream.times[at : at + 2])
            queue.take(stream.times[min(at + 1, len(stream.ids) - 1)], limit=1)
        return queue._queue.habits[habits.ALL, [habits.PRICE, habits.MEAN]]

    for pattern in ("random", "regular", "mixed"):
        in_use, mean = price(pattern)
        assert 0.85 * mean / 1.3 < in_use < 0.85 * mean * 1.3
    assert price("bursts")[0] == 0.0


@pytest.mark.parametrize("policy", [*UPDATE, *PRICED])
@given(steps=STEPS)
def test_a_batch_is_as_good_as_one_update_after_the_other(policy, steps):
    assert played(policy, steps)[0] == played(policy, steps, batches=False)[0]


@pytest.mark.parametrize("policy", [*UPDATE, *PRICED])
@given(steps=STEPS)
def test_arrays_are_the_whole_state(policy, steps):
    def swap(queue, _now):
        return KeyQueue.restore(queue.policy, queue.arrays())

    taken, queue, now = played(policy, steps)
    again, copy, _ = played(policy, steps, check=swap)
    assert again == taken
    assert np.array_equal(copy.staleness(now + 1).queue, queue.staleness(now + 1).queue)
    assert np.array_equal(copy.staleness(now + 1).application, queue.staleness(now + 1).application)


@pytest.mark.parametrize("policy", [*UPDATE, *PRICED])
@given(steps=STEPS)
def test_the_newest_row_of_each_key_is_served_and_none_is_lost(policy, steps):
    taken, queue, now = played(policy, steps)
    rest = queue.take(now)
    assert len(queue) == 0
    served = [*taken, *zip(rest.ids.tolist(), rest.rows.tolist(), strict=True)]
    last = {key: row for row, key in enumerate(key for ids, _, _ in steps for key in ids)}
    final = dict(served)
    assert final == last
    for key in last:  # never an older one after a newer one
        rows = [row for k, row in served if k == key]
        assert rows == sorted(set(rows))


@pytest.mark.parametrize("load", [2.0, 5.0, 20.0])
@pytest.mark.parametrize(
    ("policy", "pattern", "most"),
    [
        ("fifo", "random", 14),
        ("in_place", "random", 14),
        ("linecutting", "random", 14),
        ("freshest", "random", 20),
        ("freshest", "regular", 90),  # ranks that change while a key is silent
    ],
)
def test_few_keys_are_looked_at_for_each_update_and_service(policy, pattern, load, most):
    """On average: now and then all of them are, when the price of a service has changed."""
    keys = 10_000
    updates = arrivals(zipf(keys, 0.9), 60_000, seed=1, pattern=pattern)
    outcome = simulate(policy, updates, load)
    assert outcome.most_waiting > 600
    assert outcome.looked / (len(updates.ids) + outcome.serves.sum()) < most


def test_looking_grows_with_the_logarithm_of_the_keys():
    def looked(keys):
        outcome = simulate("freshest", arrivals(uniform(keys), 30 * keys, seed=1), 3.0, until=30.0 * keys)
        return outcome.looked / outcome.serves.sum()

    few, many = looked(200), looked(3_200)
    assert many < 2.5 * few


def test_a_budget_is_spent_in_policy_order_and_not_exceeded():
    queue = KeyQueue("in_place", cost=1.0)
    queue.enqueue(np.arange(5), np.arange(5.0))
    queue.learn(np.array([1]), np.array([2.0]))
    taken = queue.take(10.0, budget=3.6, costs=np.array([1.0, 2.0, 0.5, 0.5, 0.5]))
    assert taken.ids.tolist() == [0, 1, 2]
    assert taken.times.tolist() == [10.0, 11.0, 13.0]
    assert queue.take(14.0, budget=0.4).ids.tolist() == []
    assert queue.take(14.0, limit=1).ids.tolist() == [3]
    assert len(queue) == 1


@given(steps=STEPS)
def test_updates_of_a_key_at_one_time_teach_no_more_than_one(steps):
    """Also where the first of them comes when the queue begins, so that no time has passed."""
    many, once = KeyQueue("freshest", cost=1.5), KeyQueue("freshest", cost=1.5)
    now = 0.0
    for ids, wait, count in steps:
        for queue, keys in ((many, ids * 3), (once, list(dict.fromkeys(ids)))):
            queue.enqueue(np.array(keys, np.int64), np.full(len(keys), now))
        now += wait + 0.01
        taken = [queue.take(now, limit=count).ids.tolist() for queue in (many, once)]
        assert taken[0] == taken[1]
    for name in ("gaps", "weight", "habits"):
        assert np.array_equal(many.arrays()[name], once.arrays()[name])


def test_freshest_gains_where_updates_come_in_batches_of_one_time():
    keys, batch, load = 1_000, 1_000, 3.0
    random = arrivals(zipf(keys, 0.9), 40_000, seed=3)
    stream = Arrivals((np.floor(random.times / batch) + 0.5) * batch, random.ids, random.keys)
    fresh, in_place = (
        simulate(
            policy, stream, load, measured=random.span / 6, until=random.span
        ).staleness.average_application
        for policy in ("freshest", "in_place")
    )
    assert fresh < 0.8 * in_place


def test_a_slow_key_is_served_before_a_fast_one_that_waits_longer():
    queue = KeyQueue("freshest", cost=1.0)
    fast = np.arange(1.0, 100.0)
    queue.enqueue(np.zeros(99, np.int64), fast)
    queue.enqueue(np.array([1]), np.array([99.5]))
    queue.take(99.5, limit=2)
    queue.enqueue(np.array([0]), np.array([100.0]))
    queue.enqueue(np.array([1]), np.array([101.0]))
    assert queue.take(102.0, limit=1).ids.tolist() == [1]


def test_a_cheap_key_is_served_before_a_dear_one():
    queue = KeyQueue("freshest", cost=1.0)
    queue.enqueue(np.array([0, 1]), np.array([1.0, 1.0]))
    queue.take(1.0)
    queue.learn(np.array([0, 1]), np.array([10.0, 0.1]))
    queue.enqueue(np.array([0, 1]), np.array([2.0, 2.0]))
    assert queue.take(3.0).ids.tolist() == [1, 0]


def test_known_costs_lower_staleness():
    updates = arrivals(uniform(40), 40_000, seed=5)
    costs = np.where(np.arange(40) % 2, 0.5, 5.5)
    known = simulate("freshest", updates, costs).staleness.average_queue
    blind = simulate("in_place", updates, costs).staleness.average_queue
    assert known < 0.9 * blind


@pytest.mark.parametrize("seeming", [1e-9, 1e-3])
def test_keys_that_seem_to_cost_next_to_nothing_do_not_spoil_the_service_of_the_others(seeming):
    """As where the clock did not move while they were processed."""
    stream, costs = arrivals(zipf(20, 0.5), 20_000, seed=1), np.full(20, 3.0)
    costs[::4] = seeming
    found = {p: simulate(p, stream, costs).staleness.average_application for p in ("in_place", "freshest")}
    assert found["freshest"] < 0.8 * found["in_place"]


def test_habits_of_random_updates_are_those_of_a_key_without_memory():
    table, rng = habits.new_habits(), np.random.default_rng(1)
    assert np.allclose(table[[habits.HAZARD, habits.LEFT]], 1)
    for gap in rng.exponential(1.0, 8_192):
        habits.notice(table, gap)
    assert np.allclose(table[habits.LEFT], 1, atol=0.15)
    assert np.allclose(table[habits.HAZARD, 3:], 1, atol=0.15)


def test_after_a_burst_silence_means_more_silence():
    table, rng = habits.new_habits(), np.random.default_rng(2)
    for gap in np.where(rng.random(8_192) < 0.875, 0.01, 8.0):
        habits.notice(table, gap)
    assert table[habits.LEFT, 5] > 3 * table[habits.LEFT, 0]
    assert table[habits.HAZARD, 2] > 3


def test_a_policy_that_keeps_all_is_refused():
    with pytest.raises(BadQuery, match="policy 'append' keeps every tuple"):
        KeyQueue("append")
    with pytest.raises(BadQuery, match=r"there is no policy 'lifo'\. Choose one of: append, shed, fifo"):
        KeyQueue("lifo")
    with pytest.raises(BadQuery, match=r"policy 'switch' changes between two, which this queue cannot\."):
        KeyQueue("switch")


def test_foreign_arrays_are_refused():
    arrays = KeyQueue("fifo").arrays()
    arrays.pop("habits")
    with pytest.raises(BadState, match="not the arrays of an update queue"):
        KeyQueue.restore("fifo", arrays)


def test_a_state_whose_gaps_were_counted_in_other_pieces_goes_on_and_learns_them_anew():
    queue = knowing("timed")
    queue.enqueue(np.array([3, 1, 3]), np.array([1.0, 2.0, 4.0]))
    arrays = queue.arrays()
    restored = KeyQueue.restore("freshest", arrays | {"habits": arrays["habits"][:, :8]})
    assert np.array_equal(restored.arrays()["habits"], habits.new_habits())
    assert sorted(restored.take(5.0).ids.tolist()) == [1, 3]
