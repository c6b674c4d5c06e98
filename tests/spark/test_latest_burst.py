"""Row 22 of the reliability matrix for the queue behind a function on Spark: ten times the load for 60 s.

Micro-batches of a second, by a clock of the test's own: no Spark is needed to count.
"""

import numpy as np
import pyarrow as pa
import pytest

from windowpane.spark.envelope import write_batch
from windowpane.spark.fresh import Fresh
from windowpane.spark.queue_spec import QueueSpec

KEYS, RATE, COST, BUDGET = 200, 100, 0.008, 0.9  # at rest the function is busy for 0.8 s of a second
REST, BURST, AFTER = 10, 60, 90
TYPES = (("t", pa.int64()), ("k", pa.int64()), ("v", pa.int64()))
ANSWER = pa.schema(list(TYPES))


class Run:
    """A queue, and what was sent and delivered."""

    def __init__(self, policy, seed):
        self.now, self.rng = 1_000.0, np.random.default_rng(seed)
        spec = QueueSpec("q", ("k",), "t", policy, BUDGET, self.function, ANSWER)
        self.fresh = Fresh(spec, TYPES, ticks=lambda: self.now)
        self.newest, self.delivered, self.waiting, self.areas = {}, {}, [], []

    def function(self, frame):
        self.now += 0.001 + COST * len(frame)
        assert (frame["v"] >= frame["k"].map(self.delivered).fillna(-1)).all()
        self.delivered |= dict(zip(frame["k"], frame["v"], strict=True))
        return frame

    def second(self, i, rows):
        """The micro-batch of a second; rates of keys differ (Zipf 0.9)."""
        self.now = max(self.now, 1_000.0 + i)
        chances = np.arange(1, KEYS + 1) ** -0.9
        ids = self.rng.choice(KEYS, rows, p=chances / chances.sum())
        numbers = i * 10_000 + np.arange(rows)
        self.newest |= dict(zip(ids.tolist(), numbers.tolist(), strict=True))
        batch = pa.record_batch([numbers, ids, numbers], schema=ANSWER)
        _, notes = self.fresh.step([write_batch(batch)] if rows else [], lambda: self.now)
        self.waiting.append(notes.waiting)
        self.areas.append((self.now, notes.staleness_us / 1e6 * (self.now - 1_000.0) / KEYS))

    def average(self, begin, end):
        """Application staleness over all keys between two seconds."""
        (since, before), (until, after) = self.areas[begin], self.areas[end]
        return (after - before) / (until - since)


def ran(policy, load):
    run = Run(policy, seed=1)
    for i in range(REST + BURST + AFTER):
        run.second(i, RATE * (load if REST <= i < REST + BURST else 1))
    return run


@pytest.mark.parametrize("policy", ["freshest", "in_place"])
def test_a_burst_leaves_nothing_behind(policy):
    burst, calm = ran(policy, 10), ran(policy, 1)
    over = REST + BURST
    assert burst.average(REST, over - 1) > 2 * calm.average(REST, over - 1)  # it was a burst
    assert max(burst.waiting) <= KEYS
    after = over + 59, over + AFTER - 1
    assert burst.average(*after) <= 1.1 * calm.average(*after)
    while burst.waiting[-1]:
        burst.second(len(burst.waiting), 0)
    assert burst.delivered == burst.newest


def test_every_row_would_still_be_waiting_a_minute_later():
    later = ran("append", 10)
    assert later.waiting[REST + BURST + 60] > 100 * KEYS
