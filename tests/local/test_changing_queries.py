"""Queries come and go while a stream runs; each answers as if it ran alone on the rows it may see."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windowpane as wp
from windowpane.values.errors import BadQuery

N, CUT = 3000, 1000
WINDOWS = (
    wp.sliding("7 s", "2 s"),
    wp.tumbling("5 s"),
    wp.landmark("10 s"),
    wp.cumulative("5 s", "20 s"),
    wp.session("200 ms"),
    wp.rows(50, 7),
    wp.rows(20, 3).per("k"),
    wp.rows(30, order="arrival"),
    wp.per_row("1 s").per("k"),
    wp.last_rows(10, "3 s"),
    wp.delimited(start="m"),
)


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(1)
    time = np.sort(rng.integers(0, 80_000_000, N))
    time = time[np.argsort(time + rng.integers(0, 2_000_000, N), kind="stable")]
    return pa.record_batch(
        {
            "ts": pa.array(time, pa.timestamp("us")),
            "k": pa.array(rng.integers(0, 5, N)),
            "v": pa.array(rng.integers(0, 100, N)),
            "m": pa.array(rng.random(N) < 0.05),
        }
    )


def stream(batch):
    return wp.stream(schema=batch.schema, time="ts", keys="k", delay="2 s")


def rows(tables):
    return sorted(map(repr, pa.concat_tables(tables).to_pylist()))


def alone(batch, window, aggregates):
    runner = stream(batch).window(window).agg(*aggregates).start()
    return rows([runner.push(batch).tables["query"], runner.close().tables["query"]])


def visible(batch):
    """The rows that a query added after CUT rows answers for: later ones above the largest time before."""
    time = batch.column("ts").cast(pa.int64()).to_numpy()
    return batch.filter(pa.array((np.arange(N) >= CUT) & (time > time[:CUT].max())))


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
@pytest.mark.parametrize(
    "aggregates", [(wp.count(), wp.max("v")), (wp.collect("v"),)], ids=["partials", "lists"]
)
def test_an_added_query_answers_as_if_started_on_the_rows_above_the_largest_time(batch, window, aggregates):
    source = stream(batch)
    runner = (
        source.window(wp.sliding("10 s", "3 s"), wp.session("100 ms")).agg(wp.sum("v"), name="old").start()
    )
    tables = {"old": [runner.push(batch.slice(0, CUT)).tables["old"]], "new": []}
    runner.add(source.window(window).agg(*aggregates, name="new"))
    steps = [runner.push(batch.slice(at, 250)) for at in range(CUT, N, 250)]
    for step in [*steps, runner.close()]:
        for name, table in step.tables.items():
            tables[name].append(table)
    assert rows(tables["new"]) == alone(visible(batch), window, aggregates)
    old = source.window(wp.sliding("10 s", "3 s"), wp.session("100 ms")).agg(wp.sum("v")).start()
    whole = [old.push(batch).tables["query"], old.close().tables["query"]]
    assert rows(tables["old"]) == rows(whole)


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_removing_a_query_changes_no_answer_of_the_others(batch, window):
    source = stream(batch)
    runner = wp.start(
        source.window(window).agg(wp.count(), name="stays"),
        source.window(window).agg(wp.min("v"), wp.median("v"), name="goes"),
    )
    tables = [runner.push(batch.slice(0, CUT)).tables["stays"]]
    runner.remove("goes")
    step = runner.push(batch.slice(CUT))
    assert set(step.tables) == {"stays"}
    tables += [step.tables["stays"], runner.close().tables["stays"]]
    assert rows(tables) == alone(batch, window, (wp.count(),))


def test_removing_a_query_gives_its_memory_back(batch):
    source = stream(batch)
    runner = wp.start(
        source.window(wp.tumbling("1 s")).agg(wp.count(), name="small"),
        source.window(wp.sliding("1 h", "1 s")).agg(wp.median("v"), name="large"),
    )
    runner.push(batch)
    before = runner.state_bytes
    runner.remove("large")
    runner.push(batch.slice(0, 0))
    assert runner.state_bytes < before / 2


def test_a_name_can_be_used_once_and_only_known_names_can_be_removed(batch):
    source = stream(batch)
    runner = source.window(wp.tumbling("1 s")).agg(wp.count(), name="one").start()
    with pytest.raises(BadQuery, match="two queries are named 'one'"):
        runner.add(source.window(wp.tumbling("2 s")).agg(wp.count(), name="one"))
    with pytest.raises(BadQuery, match="there is no query 'two'; there are one"):
        runner.remove("two")


def test_a_landmark_and_a_cumulative_window_share_a_lane(batch):
    whole = stream(batch).window(wp.landmark("10 s"), wp.cumulative("5 s", "20 s")).agg(wp.count()).start()
    tables = [whole.push(batch.slice(at, 100)).tables["query"] for at in range(0, N, 100)]
    tables.append(whole.close().tables["query"])
    for i, window in enumerate((wp.landmark("10 s"), wp.cumulative("5 s", "20 s"))):
        mine = pa.concat_tables(tables)
        mine = mine.filter(pc.equal(mine["definition"], i)).drop_columns(["definition"])
        assert rows([mine]) == alone(batch, window, (wp.count(),))
