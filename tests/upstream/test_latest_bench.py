"""What the benchmark of update queues on Spark makes of what was delivered: all keys count always."""

import json

import numpy as np
import pytest

from windowpane.bench import latest
from windowpane.bench.latest import KEYS, Delivered, ages_of, backward, claims_of, own_thirds, rows_of
from windowpane.bench.report import Report


def delivered(seconds, lag, keys=KEYS, skip=0.0):
    """Every half second a result of each key, which is then as old as `lag` says; `skip`: keys left out."""
    at = np.repeat(np.arange(0.5, seconds, 0.5), keys)
    key = np.tile(np.arange(keys), len(at) // keys)
    served = key >= skip * keys
    at, key = at[served], key[served]
    made = at - lag(at)
    own = np.stack(
        [np.arange(1.0, seconds), np.full(int(seconds) - 1, 2.0), np.full(int(seconds) - 1, 1.0)], 1
    )
    return Delivered(seconds, key, np.round(made * 1e3).astype(np.int64), made, at, own)


def fresh(seconds=20.0, **options):
    return delivered(seconds, lambda at: np.full(len(at), 0.3), **options)


def ageing(seconds=20.0):
    return delivered(seconds, lambda at: 0.6 * at)


def failed(queue, plain):
    return [claim.name for claim in claims_of(queue, plain) if not claim.holds]


def test_a_side_that_keeps_up_and_one_that_falls_behind():
    assert failed(fresh(), ageing()) == []
    assert ages_of(ageing()).growth == pytest.approx(0.6, abs=0.05)
    assert len(failed(ageing(), fresh())) == 2


def test_keys_that_are_never_served_count():
    names = failed(fresh(skip=0.5), ageing())
    assert any("keys without a result" in name for name in names)
    assert any("mean age of all keys" in name for name in names)  # half of them grow older by the second
    ages = ages_of(fresh(skip=0.1))
    assert ages.never[-1] == KEYS // 10
    assert ages.worst[-1] == pytest.approx(ages.moment[-1])


def test_a_side_without_results_is_no_good_and_a_third_without_them_is_no_error():
    nothing = Delivered(20.0)
    names = failed(nothing, ageing())
    assert len(names) == 4
    assert ages_of(nothing).growth == pytest.approx(1.0)
    rows = list(rows_of("queue", nothing, ages_of(nothing)))
    assert [row["results"] for row in rows] == [0, 0, 0]
    report = Report("latest", {}, rows, claims_of(nothing, nothing))
    json.loads(json.dumps(report.document(), allow_nan=False))
    stopped = fresh()
    early = stopped.done < 4.0
    for name in ("key", "number", "made", "done"):
        setattr(stopped, name, getattr(stopped, name)[early])
    assert [row["results"] > 0 for row in rows_of("queue", stopped, ages_of(stopped))] == [True, False, False]
    assert any("mean age" in name for name in failed(stopped, ageing()))


def test_the_queues_own_figures_are_taken_apart_and_judged():
    seconds = np.arange(0.0, 31.0)
    area = np.interp(seconds, [0, 10, 20, 30], [0, 10, 40, 60])
    own = np.stack([seconds, area / np.maximum(seconds, 1e-9), np.zeros(31)], 1)
    assert own_thirds(own) == pytest.approx([1.0, 3.0, 2.0])
    growing = fresh()
    growing.own = growing.own.copy()
    growing.own[:, 1] = growing.own[:, 0]
    growing.own[:, 2] = growing.own[:, 0]
    assert len(failed(growing, ageing())) == 2


def test_a_result_that_goes_back_is_found():
    given = Delivered(9.0, np.array([1, 2, 1, 2]), np.array([5, 9, 4, 9]), np.zeros(4), np.arange(4.0))
    assert backward(given) == 1


def test_the_load_is_five_times_the_budget_and_twice_what_two_tasks_can_do():
    assert pytest.approx(5 * 2 * latest.BUDGET / latest.COST) == latest.RATE
    assert pytest.approx(2 * 2 / latest.COST) == latest.RATE
