"""Queries come and go in a run within a budget, where the rows that it keeps serve them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.errors import BadQuery, OverBudget
from windowpane.values.sizes import Budget

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "v": pa.int64(), "u": pa.int64(), "s": pa.string()})
AGGREGATES = (wp.count(), wp.sum("v"), wp.max("v"))
WINDOWS = {
    "sliding": wp.sliding(30, 7),
    "longer": wp.sliding(90, 5),
    "tumbling": wp.tumbling(20),
    "by_tuple": wp.per_row(15),
    "by_tuple_of_key": wp.per_row(40).per(),
}
BUDGET = Budget(10**6, block_bytes=256, blocks=9, technique="1W")
STREAM = wp.stream(schema=SCHEMA, time="t", keys="k", delay=10)


VALUES = (wp.median("v"), wp.distinct("u"), wp.top_k("s", 2))


def asked(window, name, *more):
    return STREAM.window(WINDOWS[window]).agg(*AGGREGATES, *more, name=name)


def rows(seed, n=300):
    """Out of order by up to ten."""
    rng = np.random.default_rng(seed)
    time = np.sort(rng.integers(0, 2 * n, n))
    time = time[np.argsort(time + rng.integers(0, 10, n), kind="stable")]
    columns = {"t": time, "k": rng.integers(0, 3, n), "v": rng.integers(-9, 9, n), "u": time % 5}
    return pa.table(columns | {"s": [f"{v // 4}" for v in columns["v"]]}, schema=SCHEMA)


def noted(found, step):
    for name, table in step.tables.items():
        found.setdefault(name, []).extend(map(repr, table.to_pylist()))


def follow(runner, steps, table, again=None, more=()):
    """Push in pieces; before some of them queries come or go, or the run goes on in another process."""
    found, here = {}, {"first": asked("sliding", "first", *more)}
    for i, at in enumerate(range(0, len(table), 50)):
        for what, name in steps.get(i, ()):
            if what == "restart":
                if again is not None:
                    runner.checkpoint()
                    runner.discard()
                    runner = again(list(here.values()))
            elif what == "remove" and name in here and len(here) > 1:
                runner.remove(name)
                del here[name]
            elif what == "add" and name not in here:
                here[name] = asked(name, name, *more)
                runner.add(here[name])
        noted(found, runner.push(table.slice(at, 50)))
    noted(found, runner.close())
    return {name: sorted(answers) for name, answers in found.items()}


CHANGES = ["add", "add", "remove", "restart"]


changes = st.dictionaries(
    st.integers(0, 5),
    st.lists(st.tuples(st.sampled_from(CHANGES), st.sampled_from([*WINDOWS])), max_size=4),
    max_size=5,
)


@pytest.mark.parametrize("more", [(), VALUES], ids=["sums", "values"])
@given(steps=changes, seed=st.integers(0, 99))
def test_queries_come_and_go_as_in_memory(tmp_path_factory, more, steps, seed):
    folder = tmp_path_factory.mktemp("runs") / "run"
    table, first = rows(seed), asked("sliding", "first", *more)
    memory = follow(wp.start(first), steps, table, more=more)
    within = wp.start(first, memory=BUDGET, spill_dir=folder)
    assert follow(within, steps, table, lambda queries: wp.resume(folder, *queries), more) == memory


def test_windows_that_are_gone_need_no_rows():
    with wp.start(asked("sliding", "first"), memory=BUDGET) as runner:
        runner.push(rows(1).slice(0, 50))
        (lane,) = runner._spill.lanes
        runner.add(asked("longer", "long"))
        runner.add(asked("longer", "same"))
        assert len(lane.sliders) == len(lane.store.windows) == 2
        runner.remove("long")
        assert len(lane.sliders) == 2
        runner.remove("same")
        assert len(lane.sliders) == len(lane.store.windows) == 1


def test_what_the_rows_do_not_serve_is_refused_and_changes_nothing():
    table = rows(2)
    plain = follow(wp.start(asked("sliding", "first")), {}, table)
    with wp.start(asked("sliding", "first"), memory=BUDGET) as runner:
        found = {}
        noted(found, runner.push(table.slice(0, 100)))
        for query, message in (
            (asked("tumbling", "new", wp.sum("u")), "'new' .* keys or aggregates of its own"),
            (STREAM.window(wp.tumbling(5), keys=()).agg(wp.count(), name="all"), "keys or aggregates"),
            (STREAM.window(wp.session(5)).agg(wp.count(), name="visits"), "memory= serves sliding windows"),
        ):
            with pytest.raises(BadQuery, match=message):
                runner.add(query)
        with pytest.raises(BadQuery, match="'first' cannot be added or removed"):
            runner.remove("first")
        noted(found, runner.push(table.slice(100, 200)))
        noted(found, runner.close())
        assert {name: sorted(answers) for name, answers in found.items()} == plain
    with wp.start(asked("sliding", "first"), memory=Budget(10**6, technique="2LA")) as runner:
        runner.push(table.slice(0, 50))
        with pytest.raises(BadQuery, match="keeps slices"):
            runner.add(asked("tumbling", "new"))


def test_a_window_for_which_no_block_is_left_is_not_added():
    budget = Budget(40_000, block_bytes=1024, technique="1W")
    with wp.start(asked("sliding", "first"), memory=budget) as runner:
        runner.push(rows(3).slice(0, 20))
        with pytest.raises(OverBudget, match="Give at least"):
            crowd(runner)
        assert 1 <= len(runner.plan.queries) < 40
        assert len(runner._spill.queries) == len(runner.plan.queries) == len(runner._spill.lanes[0].sliders)


def crowd(runner):
    for i in range(40):
        runner.add(STREAM.window(wp.tumbling(5 + i)).agg(*AGGREGATES, name=f"n{i}"))
