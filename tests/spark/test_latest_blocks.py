"""The blocks of an update queue: those that are named as unchanged have the bytes of then.

Else another worker would go on from another state than this one, or find blocks that are not of their names.
"""

import json

import pytest

from tests.spark.test_latest_bucket import ANSWER, POLICIES, SCHEMA, Hours, keyed, spec, table
from windowpane.core import blocks as codec
from windowpane.core.kernels.habits import ALL, PRICE
from windowpane.core.lane_blocks import Blocks
from windowpane.core.upstream.queue import KeyQueue
from windowpane.spark import fresh_store
from windowpane.spark.envelope import write_batch
from windowpane.spark.fresh import _FORGET, Fresh

TYPES = tuple(zip(SCHEMA.names, SCHEMA.types, strict=True))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(fresh_store, "CHUNK", 4)


def stored(fresh):
    """The header and the blocks, each of which is what its digest says."""
    blocks = Blocks()
    header = json.loads(json.dumps(fresh.store(0, blocks)))
    for name in blocks:
        assert codec.digest_of(blocks[name]) == blocks.digests[name], name
    return header, dict(blocks)


def reopened(fresh):
    header, blocks = stored(fresh)
    other = Fresh(fresh.spec, TYPES, ticks=fresh.ticks)
    other.restore(0, header, blocks)
    return other


@pytest.mark.parametrize("policy", POLICIES)
def test_blocks_of_keys_that_wait_while_others_update_stay_as_they_were_stored(policy):
    clock = Hours()

    def slow(frame):
        clock.now += 0.01 * len(frame)
        return frame[ANSWER.names]

    fresh = Fresh(spec(policy, budget=0.03, function=slow), TYPES, ticks=clock)
    for i in range(80):
        clock.now += 1.0
        # Each key updates every tenth second. Once the queue knows that, it ranks all keys anew.
        rows = table(*[(i, f"key {j}", i) for j in range(i % 10, 60, 10)])
        fresh.step([write_batch(rows.to_batches()[0])], clock)
        stored(fresh)
    if policy == "freshest":
        assert fresh.queue.views()["habits"][ALL, PRICE] > 0.0


def test_a_queue_that_learns_of_keys_with_outdated_rows_is_stored_with_them():
    clock = Hours()
    fresh = Fresh(spec(), TYPES, ticks=clock)

    def step(low, high, at, bound):
        _, notes = fresh.step([write_batch(keyed(low, high, at))], clock, bound=bound)
        stored(fresh)
        return notes

    step(0, 5, 1_000, 1_000)
    clock.now += 2 * _FORGET
    assert step(100, 105, 2_000, 2_000).keys == 5  # the others are forgotten
    assert step(200, 203, 5, 2_000).outdated == 3  # three new keys, which may have had newer results
    step(300, 301, 3_000, 2_000)
    assert reopened(fresh).queue.keys == len(fresh.index) == 9


def test_blocks_of_a_version_that_stored_other_columns_are_written_anew(monkeypatch):
    clock = Hours()
    fresh = Fresh(spec(), TYPES, ticks=clock)
    fresh.step([write_batch(keyed(0, 9, 1))], clock)
    views = KeyQueue.views
    with monkeypatch.context() as before:
        before.setattr(KeyQueue, "views", lambda queue: {"more": views(queue)["first"]} | views(queue))
        fresh = reopened(fresh)
    fresh.step([write_batch(keyed(0, 1, 2))], clock)
    stored(fresh)
    assert reopened(fresh).queue.keys == 9
