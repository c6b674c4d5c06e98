"""Answers on the way, read from changes to counts of values, are those of a count made anew for each."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from tests.spill.test_values import coded, rows, shown, stream
from windowpane.core.spill import lane
from windowpane.core.spill.multisets import Multisets, Read
from windowpane.values.sizes import Budget

events = st.lists(
    st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(-3, 3)), st.integers(0, 2)),
    min_size=4,
    max_size=25,
)


def runs_of(held, key):
    return sorted((code, n) for (of, code), n in held.items() if of == key and n)


def by_count(runs):
    return sorted(runs, key=lambda run: (-run[1], run[0]))


@given(
    steps=st.lists(events, min_size=1, max_size=3),
    size=st.integers(1, 6),
    asked=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), min_size=3, max_size=20),
    most=st.integers(1, 4),
    share=st.sampled_from([0.0, 0.3, 0.5]),
)
def test_each_answer_is_that_of_a_new_count(steps, size, asked, most, share):
    """Steps of rows (key, value, pause); every point is read for some keys, some of which nothing changed."""
    sets, queue, now = Multisets(1), [], 0
    shares = np.array([0.0, 0.4, 0.5, 1.0])
    for step in steps:
        came, points = [], []
        for key, code, pause in step:
            now += pause
            came.append((now, key, code))
            points.append(now)
        high = np.unique(np.array(points, np.int64)) + 1
        low = high - size
        every = queue + came
        edge = int(low[-1]) if len(low) else -100
        queue, gone = [row for row in every if row[0] >= edge], [row for row in every if row[0] < edge]
        reads = sorted((at % len(high), key) for key, at in asked if len(high))
        point, of = (np.array([read[i] for read in reads], np.int64) for i in (0, 1))
        (replay,) = sets.follow(moved(came), moved(gone), 4, Read(high, low, point, of.astype(np.int32)))
        kinds, (lower, upper, part) = replay.distinct(), replay.quantiles(shares)
        heads, sizes, found, counts, empty = replay.frequent(most, share)
        for i, (at, key) in enumerate(reads):
            held = Counter(
                (of, code) for t, of, code in every if low[at] <= t < high[at] and code is not None
            )
            runs = runs_of(held, key)
            values = [code for code, n in runs for _ in range(n)]
            assert kinds[i] == len(runs)
            assert empty[i] == (not values)
            frequent = [run for run in by_count(runs) if run[1] >= share * len(values)][:most]
            places = slice(heads[i], heads[i] + sizes[i])
            of_it = zip(replay.codes[found[places]].tolist(), counts[places].tolist(), strict=True)
            assert list(of_it) == frequent
            if not values:
                assert lower[i].tolist() == [-1] * 4
                continue
            position = shares * (len(values) - 1)
            whole = position.astype(int)
            assert replay.codes[lower[i]].tolist() == [values[k] for k in whole]
            above = [values[k + (p > k)] for k, p in zip(whole, position, strict=True)]
            assert replay.codes[upper[i]].tolist() == above
            assert part[i].tolist() == (position - whole).tolist()
        for key in range(4):
            (left,) = sets.of(np.array([key], np.int32))
            held = Counter((of, code) for _, of, code in queue if code is not None)
            assert list(zip(left.values, left.weights, strict=True)) == runs_of(held, key)


def moved(came):
    found = coded([(key, code) for _, key, code in came])
    return type(found)(np.array([t for t, _, _ in came], np.int64), found.key, found.values)


def asked_of(streamed):
    """Windows by tuple of several sizes, beside one with a slide and one of sums only."""
    both = {"middle": wp.median("v"), "kinds": wp.distinct("v"), "top": wp.top_k("v", 2)}
    return [
        streamed.window(wp.per_row(50).per(), wp.per_row(7).per()).agg(**both, name="own"),
        streamed.window(wp.per_row(120)).agg(**both, heavy=wp.heavy_hitters("v", 0.1), name="keys"),
        streamed.window(wp.per_row(50).per()).agg(total=wp.sum("v"), name="sums"),
        streamed.window(wp.per_row(90), keys=()).agg(tenths=wp.quantile("v", [0.1, 0.9]), name="all"),
        streamed.window(wp.sliding(80, 20)).agg(middle=wp.median("v"), name="slide"),
    ]


@pytest.mark.parametrize("ties", [1, 9, 60])
@pytest.mark.parametrize("at_once", [1, 7, 1 << 14])
def test_windows_by_tuple_and_by_time_share_a_store(at_once, ties, monkeypatch):
    """Whatever is slid over at once, also while it grows with the values that are held."""
    for name in ("_FEW_ARRIVALS", "_MOST_ARRIVALS", "_MOST_EXPIRED"):
        monkeypatch.setattr(lane, name, at_once)
    monkeypatch.setattr(lane, "_VALUES_PER_ROW", 2)
    table, found = rows(0, 600, kinds=40), []
    table = table.set_column(0, "t", [table["t"].to_numpy() // ties])
    for memory in (None, Budget(10**6, block_bytes=512, blocks=8)):
        with wp.start(*asked_of(stream()), memory=memory) as runner:
            steps = [runner.push(table.slice(at, 130)) for at in range(0, 600, 130)] + [runner.close()]
            names = [query.name for query in runner.plan.queries]
            found.append({n: shown(pa.concat_tables(s.tables[n] for s in steps)) for n in names})
            if memory is not None:
                for slider in runner._spill.lanes[0].sliders:
                    kept = any(sums.values is not None for sums in slider.sums.values())
                    assert kept == (slider.span.values or slider.span.slide > 0)
                assert sum(not slider.span.values for slider in runner._spill.lanes[0].sliders) == 2
    assert found[0] == found[1]


def test_a_key_without_values_left_answers_null():
    table = pa.table(
        {"t": [0, 1, 2, 30, 31], "k": [1, 1, 2, 1, 2], "v": [1.0, 2.0, None, None, 5.0], "s": ["x"] * 5},
        schema=rows(0, 0).schema,
    )
    query = stream().window(wp.per_row(10)).agg(middle=wp.median("v"), top=wp.top_k("v", 1), n=wp.count())
    with query.start(memory="1 MB") as runner:
        found = runner.answers(runner.push(table)).to_pylist() + runner.answers(runner.close()).to_pylist()
    got = [(row["k"], row["window"]["end"], row["middle"], row["top"], row["n"]) for row in found]
    assert sorted(got, key=lambda row: (row[1], row[0])) == [
        (1, 0, 1.0, [{"value": 1.0, "count": 1}], 1),
        (1, 1, 1.5, [{"value": 1.0, "count": 1}], 2),
        (1, 2, 1.5, [{"value": 1.0, "count": 1}], 2),
        (2, 2, None, None, 1),
        (1, 30, None, None, 1),
        (1, 31, None, None, 1),
        (2, 31, 5.0, [{"value": 5.0, "count": 1}], 1),
    ]


def test_values_by_tuple_count_for_the_budget():
    """Sixteen bytes for each distinct value in the window, as for windows with a slide."""
    query = stream().window(wp.per_row(2_000).per()).agg(middle=wp.median("v"))
    with query.start(memory=Budget(10**7, block_bytes=1024, blocks=2)) as runner:
        runner.push(rows(0, 4_000, kinds=8))
        few = runner.state_bytes
        runner.push(rows(4_000, 4_000, kinds=10**9))
        assert 16 * 1_900 < runner.state_bytes - few < 16 * 2_100
        assert runner.choice.technique == "1W"
