"""Row 22 of the reliability matrix: ten times the load for 60 s."""

import numpy as np
import pytest

from windowpane.simulate.overload import phases, simulate, zipf

KEYS, RATE, COST = 200, 100.0, 0.008  # at rest the consumer is 80% busy
REST, BURST, AFTER = 200.0, 60.0, 260.0


@pytest.mark.parametrize("policy", ["fifo", "in_place", "linecutting", "freshest"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_burst_leaves_nothing_behind(policy, seed):
    # The same updates before and after, with a burst between them and without.
    updates, calm = (
        phases(zipf(KEYS, 0.9), [(REST, RATE), (BURST, rate), (AFTER, RATE)], seed=seed)
        for rate in (10 * RATE, RATE)
    )

    def average(stream, begin, end):
        return simulate(policy, stream, COST, measured=begin, until=end).staleness.average_application

    over = REST + BURST
    assert average(updates, REST, over) > 2 * average(calm, REST, over)  # it was a burst
    after = over + 60, over + AFTER
    assert average(updates, *after) <= 1.02 * average(calm, *after)  # and it is forgotten
    outcome = simulate(policy, updates, COST, until=updates.span + KEYS * COST + 1)
    assert outcome.most_waiting <= len(np.unique(updates.ids))
    assert outcome.covered.all()
    assert outcome.updates.sum() == len(updates.ids)


def test_an_append_queue_is_still_behind_after_60_s():
    updates = phases(zipf(KEYS, 0.9), [(REST, RATE), (BURST, 10 * RATE), (AFTER, RATE)], seed=1)
    over = REST + BURST
    later = simulate("append", updates, COST, measured=over + 60, until=over + 260)
    assert later.staleness.average_application > 60
    assert later.most_waiting > 100 * KEYS
