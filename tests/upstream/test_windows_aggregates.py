"""Whatever the load, a delivered result is the aggregate of exactly its window, out of all arrivals."""

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windowpane as wp
from tests.oracle.aggregates import Item, aggregate
from windowpane import errors
from windowpane.core.arrays import Column
from windowpane.core.upstream.memory import PagePool
from windowpane.core.upstream.window_operator import FreshWindows
from windowpane.core.upstream.windows import Commit, UpdateWindow
from windowpane.values.freshness import Policy
from windowpane.values.semantics import Tuple

TYPES = {"n": pa.int64(), "x": pa.float64()}
NUMBERS = [None, -3, 0, 1, 7]
FLOATS = [None, -1.5, 0.0, 0.25, 8.0]
AGGREGATES = [
    ("count", wp.count(), ()),
    ("count", wp.count("n"), ("n",)),
    ("sum", wp.sum("n"), ("n",)),
    ("min", wp.min("x"), ("x",)),
    ("max", wp.max("x"), ("x",)),
    ("mean", wp.mean("x"), ("x",)),
    ("first", wp.first("n"), ("n",)),
    ("last", wp.last("x"), ("x",)),
    ("median", wp.median("x"), ("x",)),
    ("distinct", wp.distinct("n"), ("n",)),
    ("collect", wp.collect("n"), ("n",)),
]
BATCH = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(NUMBERS), st.sampled_from(FLOATS), st.integers(1, 4)),
    min_size=1,
    max_size=15,
)
STEPS = st.lists(st.one_of(BATCH, st.integers(1, 8)), max_size=14)
WINDOWS = st.builds(
    UpdateWindow, st.integers(1, 6), st.integers(1, 7), st.sampled_from(Commit), st.booleans()
)


def column(values, kind):
    valid = np.array([value is not None for value in values])
    return Column(np.array([0 if value is None else value for value in values], kind), valid)


@given(window=WINDOWS, steps=STEPS, policy=st.sampled_from([Policy.IN_PLACE, Policy.FRESHEST]))
@settings(max_examples=80, deadline=None)
def test_a_result_is_that_of_its_window(window, steps, policy):
    fresh = FreshWindows(
        window,
        [wanted.named(f"a{i}") for i, (_, wanted, _) in enumerate(AGGREGATES)],
        TYPES,
        PagePool(60, 512),
        policy=policy,
    )
    arrived = defaultdict(list)
    clock, time, results = 0.0, -15, []
    for step in [*steps, 10_000]:
        clock += 1.0
        if isinstance(step, int):
            results += fresh.serve(clock, step).to_pylist()
            continue
        places = []
        for key, n, x, gap in step:
            time += gap
            place = time if window.timed else len(arrived[key])
            places.append(time)
            arrived[key].append(Item(Tuple(place, len(arrived[key])), {"n": n, "x": x}))
        fresh.push(
            np.array([key for key, *_ in step]),
            {"n": column([n for _, n, _, _ in step], np.int64), "x": column([x for *_, x, _ in step], float)},
            np.full(len(step), clock),
            np.array(places),
        )
    for row in results:
        start, end = row["window"]["start"], row["window"]["end"]
        items = [item for item in arrived[row["key"]] if start <= item.tuple.time < end]
        assert items
        assert end - start == window.size
        for i, (function, _, arguments) in enumerate(AGGREGATES):
            assert row[f"a{i}"] == aggregate(items, function, *arguments), function
    assert fresh.begun <= (4 if window.commit is Commit.EAGER else 0)


def test_text_is_refused_with_the_remedy():
    with pytest.raises(errors.WrongType, match="Cast the column, or give the ids"):
        FreshWindows(UpdateWindow(1, 1), [wp.first("t")], {"t": pa.string()}, PagePool(1))
