"""What `bench recovery` compares with tells what is missing, doubled, foreign or out of order."""

from collections import Counter

import pytest

from windowpane.bench.recovery_truth import Answers, Updates

ANSWERS = Answers(Counter({(1, 5): 1, (2, 7): 2}))
UPDATES = Updates(Counter([(1, 10, 4), (1, 20, 5), (1, 30, 6), (2, 15, 7)]))
"""Key 1 was updated at 10, 20 and 30, key 2 at 15."""


@pytest.mark.parametrize(
    ("batches", "missing", "extra"),
    [
        ([[(1, 5)], [(2, 7), (2, 7)]], 0, 0),
        ([[(2, 7)], [(2, 7), (1, 5)]], 0, 0),
        ([[(1, 5), (2, 7)]], 1, 0),
        ([[(1, 5), (1, 5)], [(2, 7), (2, 7)]], 0, 1),
        ([[(1, 6)], [(2, 7), (2, 7)]], 1, 1),
    ],
)
def test_answers_come_once_in_any_micro_batch(batches, missing, extra):
    assert ANSWERS.compare(batches) == (missing, extra)


@pytest.mark.parametrize(
    ("batches", "missing", "extra"),
    [
        ([[(1, 30, 6), (2, 15, 7)]], 0, 0),
        ([[(1, 10, 4)], [(2, 15, 7)], [(1, 30, 6)]], 0, 0),
        ([[(1, 10, 4)], [(1, 20, 5)], [(2, 15, 7)]], 1, 0),  # not its newest
        ([[(1, 30, 6)]], 1, 0),  # nothing of key 2
        ([[(1, 30, 6)], [(1, 20, 5)], [(2, 15, 7)]], 0, 1),  # older than the one before
        ([[(1, 30, 6)], [(1, 30, 6), (2, 15, 7)]], 0, 1),  # twice
        ([[(1, 30, 9), (2, 15, 7)]], 0, 1),  # nobody's value
    ],
)
def test_updates_come_in_order_and_the_newest_in_the_end(batches, missing, extra):
    assert UPDATES.compare(batches) == (missing, extra)
