"""Results of windows count for the application when they are delivered, and what they took is learned."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.kernels.update_queue import COST

QUOTES = wp.Updates("symbol", "t")


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def rows(symbols):
    return pa.table({"t": np.zeros(len(symbols), np.int64), "symbol": list(symbols), "v": [1] * len(symbols)})


def costs_of(fresh):
    waiting = fresh._operator.queue.machine.waiting
    return waiting.keys.cost[: len(fresh.staleness().keys)].tolist(), float(waiting.totals[COST])


def test_a_result_is_delivered_when_done_says_so_or_with_the_next_get():
    clock = Clock()
    fresh = QUOTES.window(1, clock=clock).agg(wp.count())
    fresh.put(rows("A"))
    clock.now += 1
    assert len(fresh.get()) == 1
    clock.now += 3
    assert fresh.staleness().application[0] * 4 == pytest.approx(4**2 / 2)  # not yet
    fresh.done()
    clock.now += 4
    fresh.done()
    assert fresh.staleness().application[0] * 8 == pytest.approx(4**2 / 2)
    fresh.put(rows("A"))
    fresh.get()
    clock.now += 2
    fresh.get()
    clock.now += 5
    assert fresh.staleness().application[0] * 15 == pytest.approx(4**2 / 2 + 2**2 / 2)
    assert fresh.staleness().queue[0] * 15 == pytest.approx(1 / 2)


@pytest.mark.parametrize("commit", ["lazy", "eager"])
def test_what_a_window_took_is_learned_from_one_get_to_the_next(commit):
    clock = Clock()
    fresh = QUOTES.window(2, commit=commit, clock=clock, cost=5.0, policy="freshest").agg(wp.count())
    assert fresh.done() is None
    fresh.put(rows("AABB"))
    assert costs_of(fresh) == ([0.0, 0.0], 10.0)  # two rows of 5 seconds, as a guess
    assert len(fresh.get()) == 2
    clock.now += 8
    fresh.get()  # 4 rows took 8 seconds
    assert costs_of(fresh) == ([4.0, 4.0], pytest.approx(10.0 - 0.1 * 6.0))
    fresh.put(rows("AA"))
    clock.now += 50  # nobody works on anything
    assert len(fresh.get(2)) == 1
    clock.now += 1
    fresh.done()
    clock.now += 50
    assert costs_of(fresh)[0] == [pytest.approx(4.0 - 0.1 * 3.0), 4.0]


def test_a_window_whose_rows_came_one_by_one_took_what_all_of_them_took():
    clock = Clock()
    fresh = QUOTES.window(3, commit="eager", clock=clock).agg(wp.count())
    for _ in range(3):
        fresh.put(rows("A"))
        got = fresh.get()
        clock.now += 2
    assert len(got) == 1
    fresh.done()
    assert costs_of(fresh)[0] == [6.0]


MOVES = st.lists(
    st.one_of(st.integers(1, 4), st.tuples(st.just("get"), st.integers(1, 9)), st.just("done")), max_size=30
)


@given(
    moves=MOVES,
    size=st.integers(1, 4),
    slide=st.integers(1, 4),
    commit=st.sampled_from(["lazy", "eager"]),
    pauses=st.lists(st.integers(0, 3), min_size=31, max_size=31),
)
@settings(max_examples=80, deadline=None)
def test_application_staleness_counts_until_results_are_delivered(moves, size, slide, commit, pauses):
    """The age of the oldest window in full behind the last delivered one, integrated move by move."""
    clock = Clock()
    fresh = QUOTES.window(size, slide, commit=commit, clock=clock, memory=1 << 16).agg(wp.count())
    came, held, delivered, total = [], -1, -1, 0.0
    for move, pause in zip([*moves, 1], pauses, strict=False):
        if isinstance(move, int):
            fresh.put(rows("A" * move))
            came += [clock.now] * move
        elif came:
            delivered = held
            if move == "done":
                fresh.done()
            else:
                held = max(
                    [held, *(row["start"] // slide for row in fresh.get(move[1])["window"].to_pylist())]
                )
        closes = came[(delivered + 1) * slide + size - 1 :]
        age = clock.now - closes[0] if closes else 0.0
        total += pause * (age + pause / 2) if closes else 0.0
        clock.now += pause
    span = clock.now - 100.0
    assert fresh.staleness().application[0] * span == pytest.approx(total)
