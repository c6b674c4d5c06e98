"""Windows that EAGER has begun: serving looks only at those of the keys that it serves."""

import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.arrays import Ragged
from windowpane.core.kernels.update_windows import NONE
from windowpane.core.rows import Rows
from windowpane.core.upstream import window_operator
from windowpane.core.upstream.begun import Begun

UPDATES = wp.Updates("k", "t")


def rows(keys, v=1):
    return pa.table({"k": keys, "t": [0] * len(keys), "v": [v] * len(keys)})


@pytest.mark.parametrize("keys", [10, 1_000])
def test_what_serving_touches_does_not_grow_with_the_windows_that_are_begun(keys, monkeypatch):
    touched, merge = [], window_operator.merge

    def counted(layout, old, new):
        touched.append(len(old) + len(new))
        return merge(layout, old, new)

    fresh = UPDATES.window(3, commit="eager").agg(wp.sum("v"), wp.collect("v"))
    fresh.put(rows(range(keys)))
    fresh.get()
    assert fresh._operator.begun == keys
    monkeypatch.setattr(window_operator, "merge", counted)
    fresh.get(0)
    fresh.put(rows([3], 2))
    assert fresh.get().num_rows == 0
    fresh.put(rows([3], 5))
    assert fresh.get()["collect_v"].to_pylist() == [[1, 2, 5]]
    assert touched == [0, 2, 2]
    assert fresh._operator.begun == keys - 1


def test_what_is_begun_is_taken_once_and_may_change_its_type():
    begun, keys = Begun(), np.array([4, 1])
    assert begun.ends(keys).tolist() == [NONE, NONE]
    begun.put(Rows(np.array([9, 7]), keys, ((np.array([1, 2]),),)))
    begun = pickle.loads(pickle.dumps(begun))  # noqa: S301 - our own bytes
    found = begun.take(np.array([0, 1, 4, 4, 90]))
    assert (found.start.tolist(), found.key.tolist()) == ([7, 9], [1, 4])
    assert found.partials[0][0].tolist() == [2, 1]
    assert len(begun) == len(begun.take_all()) == 0
    begun.put(Rows(np.array([11]), np.array([1]), ((np.array([0.5]),),)))
    begun.put(Rows(np.array([8]), np.array([90]), ((np.array([3]),),)))
    begun.keep(np.arange(91) > 0)
    assert begun.take_all().partials[0][0].tolist() == [3.0, 0.5]


class Half(wp.UserAggregate):
    """Half of the sum, with fractions as soon as two rows are combined."""

    columns, algebra, type = ("v",), wp.Algebra("algebraic"), pa.float64()

    def identity(self):
        return (0,)

    def lift(self, v):
        return (v * 2,)

    def combine(self, a, b):
        return (a[0] + b[0] + 0.5,)

    def lower(self, partial):
        return partial[0] / 2


def test_a_users_aggregate_may_begin_with_whole_numbers_and_go_on_with_fractions():
    fresh = UPDATES.window(3, commit="eager").agg(Half())
    fresh.put(rows(["a", "b", "c"]))
    fresh.get()
    fresh.put(rows(["b", "c"], 2))
    fresh.get()
    fresh.put(rows(["a", "b", "c", "a"], 3))
    assert fresh.get().sort_by("k")["half_v"].to_pylist() == [7.5, 6.5, 6.5]


def ragged(lists):
    offsets = np.cumsum([0, *map(len, lists)])
    values = np.array([v for values in lists for v in values], np.float64)
    return Ragged(offsets, values, np.ones(len(values), np.int64))


def found_in(rows):
    sums, lists = rows.partials[0][0].tolist(), rows.partials[1][0]
    each = [lists.values[a:b].tolist() for a, b in pairwise(lists.offsets.tolist())]
    return {
        k: (e, s, v) for k, e, s, v in zip(rows.key.tolist(), rows.start.tolist(), sums, each, strict=True)
    }


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "take", "keep", "pickle"]), st.sets(st.integers(0, 12))),
    max_size=25,
)


@given(STEPS)
def test_what_is_begun_is_what_was_put_and_not_taken(steps):
    begun, model, came = Begun(), {}, 0
    for what, some in steps:
        keys = np.array(sorted(some, reverse=True), np.int64)
        if what == "put":
            new = {
                k: (100 * k % 7, came + k, [float(came)] * (k % 3)) for k in keys.tolist() if k not in model
            }
            columns = [list(column) for column in zip(*new.values(), strict=True)] or [[], [], []]
            key, end, summed = (np.array(column, np.int64) for column in (list(new), *columns[:2]))
            begun.put(Rows(end, key, ((summed,), (ragged(columns[2]),))))
            model |= new
            came += 1
        elif what == "take":
            taken = begun.take(keys)
            order = sorted((model[k][0], k) for k in some if k in model)
            assert list(zip(taken.start.tolist(), taken.key.tolist(), strict=True)) == order
            assert not order or found_in(taken) == {k: model[k] for _, k in order}
            model = {k: v for k, v in model.items() if k not in some}
        elif what == "keep":
            live = np.array([k not in some for k in range(13)])
            begun.keep(live)
            model = {int(live[:k].sum()): v for k, v in sorted(model.items()) if live[k]}
        else:
            begun = pickle.loads(pickle.dumps(begun))  # noqa: S301 - our own bytes
        assert len(begun) == len(model)
        ends = begun.ends(np.arange(13)).tolist()
        assert ends == [model[k][0] if k in model else NONE for k in range(13)]
    everything = begun.take_all()
    assert not model or found_in(everything) == model
