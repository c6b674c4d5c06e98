"""Provisional rows in a database: windows that later rows move are refused, and no others."""

import random

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.jobs import BadJob, load
from windowpane.jobs.provisional import steady

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("s", pa.string()), ("m", pa.bool_())])
STEADY = [
    wp.sliding(6, 2),
    wp.landmark(4, start=3),
    wp.cumulative(2, 6),
    wp.rows(3, 2).per(),
    wp.rows(3, 2).per("s", "k"),
    wp.rows(3, 2, order="arrival"),
    wp.per_row(5),
    wp.per_row(5, every=2, order="arrival"),
]
MOVING = [
    wp.session(3),
    wp.delimited(start="m"),
    wp.delimited(end="m"),
    wp.last_rows(2, 4).per(),
    wp.rows(3, 2),
    wp.rows(3, 2).per("s"),
    wp.per_row(5, every=2).per(),
]


def left_over(window, seed):
    """The provisional rows that stand in a table after the end of a random stream."""
    rng = random.Random(seed)
    stream = wp.stream(schema=SCHEMA, time="t", keys="k", delay=8, lateness=rng.choice([0, 6]))
    runner = stream.window(window).agg(wp.count(), emit="update").start()
    steps = []
    for base in range(0, 24, 4):
        some = range(rng.randint(1, 4))
        columns = {
            "t": [max(0, base + rng.randint(-8, 4)) for _ in some],
            "k": [rng.choice("ab") for _ in some],
            "s": [rng.choice("xy") for _ in some],
            "m": [rng.random() < 0.3 for _ in some],
        }
        steps.append(runner.push(pa.table(columns, SCHEMA)))
    rows = [row for step in (*steps, runner.close()) for row in step.tables["query"].to_pylist()]
    standing = {(row["k"], row.get("s"), *row["window"].values()): row for row in rows}
    return [row for row in standing.values() if not row["final"]]


def is_steady(window):
    stream = wp.stream(schema=SCHEMA, time="t", keys="k")
    return steady(window, stream.window(window).agg(wp.count()).node)


@pytest.mark.parametrize("window", STEADY, ids=str)
def test_a_steady_window_leaves_no_provisional_row(window):
    assert is_steady(window)
    assert [left_over(window, seed) for seed in range(10)] == [[]] * 10


@pytest.mark.parametrize("window", MOVING, ids=str)
def test_a_window_that_moves_may_leave_provisional_rows(window):
    assert not is_steady(window)
    assert any(left_over(window, seed) for seed in range(30))


JOB = """\
source: {format: parquet, path: in}
stream: {time: t, keys: [k]}
query:
  window: session(5 s)
  aggregates: count()
  emit: update
sink: {format: sqlite, path: a.db}
checkpoint: state
"""


def loaded(tmp_path, text=JOB):
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "job.yaml").write_text(text, "utf-8")
    return load(tmp_path / "job.yaml")


def test_a_database_takes_no_provisional_rows_of_sessions(tmp_path):
    """A table kept the rows of sessions that had grown meanwhile beside the final one."""
    with pytest.raises(BadJob) as raised:
        loaded(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path}/job.yaml:6: query.emit: rows that come later move the windows of session, and sqlite "
        "would keep the provisional rows of windows that are no more. Write emit: final, or have the answers "
        "in files."
    )


@pytest.mark.parametrize(
    ("window", "told"),
    [
        ("rows(10)", "windows of rows,.* emit: final, count for each key by .per.., or have"),
        ("['tumbling(1 s)', 'per_row(5 s, every=2)']", "windows of per_row,.* take every row .every=1., or"),
        ("last_rows(3, 1 s)", "windows of last_rows, and sqlite"),
        ("delimited(start=m)", "windows of delimited, and sqlite"),
    ],
)
def test_the_window_that_moves_is_named_with_a_remedy(tmp_path, window, told):
    with pytest.raises(BadJob, match=told):
        loaded(tmp_path, JOB.replace("session(5 s)", window))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("emit: update", "emit: final"),
        ("session(5 s)", "tumbling(5 s)"),
        ("session(5 s)", "rows(10).per(k)"),
        ("session(5 s)", "rows(10).per()"),
        ("session(5 s)", "rows(10)\n  keys: []"),
        ("{format: sqlite, path: a.db}", "{format: parquet, path: out}"),
        ("checkpoint: state", "trigger: batch"),
    ],
)
def test_other_jobs_are_not_refused(tmp_path, old, new):
    assert loaded(tmp_path, JOB.replace(old, new)).queries
