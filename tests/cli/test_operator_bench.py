from dataclasses import replace

import pytest

from windowpane.bench import operator
from windowpane.bench.runner import measure

SMALL = 4_096
CASES = list(operator.cases(SMALL))


def test_every_case_is_there_at_both_rates():
    points = {(case.letter, case.variant, case.stream.rate) for case in CASES}
    assert len(points) == len(CASES)
    assert {letter for letter, _, _ in points} == set("abcdef")
    for letter in "abf":
        assert {(n, rate) for at, n, rate in points if at == letter} == {
            (n, rate) for n in (1, 20, 100, 1_000) for rate in (2_000, 100_000)
        }


def test_every_published_figure_has_its_case():
    assert set(operator.PUBLISHED) <= {(case.letter, case.variant) for case in CASES}


def test_lengths_are_spread_evenly_and_differ():
    assert operator.lengths(20).tolist() == [1_000 * n for n in range(1, 21)]
    assert len(set(operator.lengths(1_000).tolist())) == 1_000


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.variant <= 60 or case.letter == "e"], ids=lambda case: case.name
)
def test_a_case_runs(case):
    outcome = operator.measure_case(replace(case, history=min(case.history, 2)))
    assert outcome.tuples == SMALL
    assert outcome.results > 0
    assert outcome.tuples_per_second > 0


def test_claims_compare_with_the_published_figures():
    speeds = {(case.letter, case.variant, case.stream.rate): 20e6 for case in CASES}
    verdicts = {claim.name: claim.holds for claim in operator.claims(speeds)}
    assert verdicts["a 1,000 at 2,000/s: 40 x published"]
    assert not verdicts["a 1 at 2,000/s: 3 x published"]
    assert verdicts["b at 100,000/s: rate of 1,000 windows / of 1"]
    assert len(verdicts) == 2 * len(operator.PUBLISHED) + 2


class Fake:
    """A runner that keeps what it was given."""

    pushed: list = []  # noqa: RUF012 - shared on purpose, to see every pass
    state_bytes = 7

    def push(self, batch):
        self.pushed.append(batch)
        return self

    def close(self):
        return self

    tables: dict = {}  # noqa: RUF012 - as above


def test_history_is_pushed_before_the_batches_in_every_pass():
    (first, second) = operator.stream_batches(operator.StreamSpec(rows=20, batch_rows=10))
    outcome = measure(Fake, [second], history=[first], passes=2)
    assert Fake.pushed == [first, second] * 3
    assert (outcome.tuples, outcome.state_bytes) == (10, 7)
