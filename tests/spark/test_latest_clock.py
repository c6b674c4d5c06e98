"""Update queues in a bucket whose clock is set back, or is another machine's: the budget stays what it is."""

import pytest

from tests.spark.test_latest_bucket import ANSWER, SCHEMA, Hours, keyed, spec
from windowpane.spark.envelope import write_batch
from windowpane.spark.fresh import Fresh
from windowpane.spark.fresh_calls import last_told

TYPES = tuple(zip(SCHEMA.names, SCHEMA.types, strict=True))


@pytest.mark.parametrize("policy", ["freshest", "append"])
def test_a_clock_that_is_behind_after_a_restart_does_no_harm(policy):
    clock = Hours()

    def slow(frame):
        clock.now += 0.001 * len(frame)
        return frame[ANSWER.names]

    fresh = Fresh(spec(policy, budget=0.4, function=slow), TYPES, ticks=clock)
    used = []
    for i, back in enumerate((0.0, 0.0, 0.0, 500.0, *[0.0] * 20)):
        clock.now += 10.0 - back
        before, told = clock.now, last_told(fresh.queue)
        _, notes = fresh.step([write_batch(keyed(0, 1_000, i))], clock)
        used.append(clock.now - before)
        assert notes.oldest_us >= 0
        assert notes.staleness_us >= 0
        if clock.now < told:  # time goes on with the calls from where it was
            assert last_told(fresh.queue) == pytest.approx(told + used[-1], abs=1e-6)
    assert 0.35 <= min(used) <= max(used) <= 0.401  # a clock that stood still would show no budget as spent
    arrays = fresh.queue.arrays()
    assert (arrays["waited"] >= 0).all()
    assert (arrays["gaps"] >= 0).all()


class Hands:
    """The hands of a clock, which are set back when told, and its ticks."""

    def __init__(self):
        self.ticks, self.back = 5.0, 0.0

    def __call__(self):
        return 1e9 + self.ticks - self.back


@pytest.mark.parametrize("policy", ["freshest", "append"])
def test_a_clock_that_is_set_back_during_a_call_does_no_harm(policy):
    hands, calls = Hands(), []

    def slow(frame):
        hands.ticks += 0.001 * len(frame)
        hands.back += 1.0 if len(calls) % 7 == 3 else 0.0
        calls.append(len(frame))
        return frame[ANSWER.names]

    fresh = Fresh(spec(policy, budget=0.4, function=slow), TYPES, ticks=lambda: hands.ticks)
    for i in range(20):
        hands.ticks += 2.0
        before = hands.ticks
        fresh.step([write_batch(keyed(0, 1_000, i))], hands)
        assert 0.35 <= hands.ticks - before <= 0.401
    assert hands.back > 5.0
    assert fresh.queue.views()["cost"].max() == pytest.approx(0.001, rel=0.1)
