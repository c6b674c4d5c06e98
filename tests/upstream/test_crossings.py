"""When one rank overtakes another: the tournament looks at neither before, and must not miss it."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windowpane.core.kernels.key_ranks import falls
from windowpane.core.kernels.kinetic import best, build
from windowpane.core.upstream.queue import new_queue

NUMBERS = st.one_of(st.just(0.0), st.floats(1e-6, 1e3))
SIGNED = st.one_of(NUMBERS, NUMBERS.map(lambda x: -x))


@given(lead=NUMBERS, rise=SIGNED, bend=SIGNED)
@example(lead=0.0, rise=1.0, bend=-0.25).via("a difference of 0, and the root was 0 / 0")
@example(lead=0.0, rise=0.0, bend=-1.0)
@example(lead=1e-18, rise=1.0, bend=-0.25).via("2 * lead / (sqrt(...) - rise) has no digit left")
def test_a_lead_is_gone_when_it_is_said_to_be_and_not_before(lead, rise, bend):
    found = falls(lead, rise, bend)
    assert found >= 0.0
    for x in [0.5 * found, 0.999 * found] if found < np.inf else [1.0, 1e3, 1e12]:
        ahead = lead + rise * x + bend * x * x
        assert ahead >= -1e-9 * (lead + abs(rise * x) + abs(bend * x * x))
    if found < np.inf:
        x = 1.001 * found + 1e-9
        behind = lead + rise * x + bend * x * x
        touches = abs(rise * rise - 4.0 * bend * lead) <= 1e-3 * rise * rise
        assert behind <= 1e-9 * (lead + abs(rise * x) + abs(bend * x * x)) or touches


@pytest.mark.parametrize("keys", [(0, 1), (1, 0)])
@pytest.mark.parametrize(("rise", "crossing"), [(1.0, 2.0), (0.0, 0.0)])
def test_of_keys_that_came_together_one_overtakes_the_other_when_it_does(keys, rise, crossing):
    """As a batch of keys before any was served: all ranks are 0, a dear slow key rises first."""
    queue, (first, second) = new_queue(2, 1.0, 0.0), keys
    queue.ranks.linear[first], queue.ranks.square[first] = rise, 0.5
    queue.ranks.square[second] = 1.0
    build(queue.tree, queue.ranks, queue.habits, np.ones(2, np.bool_), 0.0)
    for now in (0.0, 1.0, 1.9, 2.1, 50.0):
        if now or rise:
            expected = first if now < crossing else second
            assert best(queue.tree, queue.ranks, queue.habits, now) == expected
