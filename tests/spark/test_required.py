"""Columns that must not be null (row 36 of the fault matrix): rejects with their reason, in both runtimes."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import windowpane as wp
from tests.spark.harness import rows
from tests.spark.pump import STRAYS, Pump
from windowpane.errors import BadQuery, BadState, UnknownColumn
from windowpane.jobs import load
from windowpane.spark.bucket import Counts

SCHEMA = pa.schema(
    [("t", pa.int64()), ("user", pa.string()), ("v", pa.int64()), ("x", pa.float64()), ("m", pa.bool_())]
)
ROWS = [
    (1, "a", 1, 0.5, False),
    (2, None, 1, 0.5, False),  # no user
    (3, "b", None, 0.5, False),  # no value
    (4, None, None, None, False),  # neither: the first of them is told
    (None, None, 1, 0.5, False),  # no time either, which is told first
    (5, "b", 2, None, False),  # what is not required may be null
    (10**9, None, 1, 0.5, False),  # a time that would be too far ahead
    (6, None, None, None, True),  # a marker needs nothing
    (7, "a", 3, float("nan"), False),
]


def table_of(found):
    return pa.table([list(column) for column in zip(*found, strict=True)], schema=SCHEMA)


def stream_of(source=None, required=("user", "v"), **options):
    how = {"schema": SCHEMA} if source is None else {}
    how |= {"time": "t", "punctuation": wp.external("m"), "max_ahead": 1000}
    return wp.stream(source, required=required, **{**how, **options})


WINDOWS = {"slices": wp.tumbling(5), "sessions": wp.session(2)}


def expected_rejects():
    reasons = {1: "null user", 2: "null v", 3: "null user", 4: "null time", 6: "null user"}
    table = table_of(ROWS).take(list(reasons))
    return rows(table.append_column("reason", [list(reasons.values())]))


@pytest.mark.parametrize("kind", WINDOWS)
def test_in_this_process(kind):
    result = stream_of(table_of(ROWS)).window(WINDOWS[kind]).agg(wp.count()).run()
    assert result.counts.rejects == {"null time": 1, "null user": 3, "null v": 1}
    assert (result.counts.kept, result.counts.markers, result.counts.input) == (3, 1, 9)
    assert rows(result.rejects) == expected_rejects()
    assert sum(result.table["count"].to_pylist()) == 3


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("tasks", [1, 3])
def test_on_spark(kind, tasks):
    """The columns are read though no query does, and rejected rows move no bound."""
    query = stream_of(keys=()).window(WINDOWS[kind]).agg(wp.count())
    pump = Pump(query, strays=STRAYS, tasks=tasks).run([table_of(ROWS)])
    assert pump.counts == Counts(kept=3, markers=1, null_time=1, null_required=4)
    assert rows(pump.table("rejects")) == expected_rejects()
    assert sum(pump.table()["count"].to_pylist()) == 3
    plain = Pump(query, tasks=tasks).run([table_of(ROWS)])
    assert plain.counts == pump.counts
    assert plain.bound == 6


value = st.one_of(st.none(), st.integers(0, 3))
row = st.tuples(
    st.one_of(st.none(), st.integers(0, 50)),
    st.sampled_from(["a", "b", None]),
    value,
    st.none(),
    st.booleans(),
)


# a lone row does not wait where markers are near it
@example(
    found=[(0, "a", None, None, False), *[(1, "a", None, None, True)] * 2],
    required=set(),
    kind="sessions",
    tasks=1,
)
@given(
    found=st.lists(row, min_size=1, max_size=25),
    required=st.sets(st.sampled_from(["user", "v"])),
    kind=st.sampled_from(sorted(WINDOWS)),
    tasks=st.integers(1, 3),
)
def test_both_runtimes_agree(found, required, kind, tasks):
    found = sorted(found, key=lambda r: -1 if r[0] is None else r[0])  # the order that Spark takes rows in
    query = stream_of(required=tuple(sorted(required)), keys="user").window(WINDOWS[kind]).agg(wp.sum("v"))
    runner, pump = query.start(), Pump(query, strays=STRAYS, tasks=tasks)
    steps = [runner.push(table_of(found)), runner.close()]
    pump.run([table_of(found)])
    here = pa.concat_tables([step.rejects for step in steps])
    there = pump.table("rejects")
    assert (rows(there) if there is not None else []) == rows(here)
    assert pump.counts.kept == runner.counts.kept
    lacking = sum(n for reason, n in runner.counts.rejects.items() if reason in ("null user", "null v"))
    assert pump.counts.null_required == lacking
    answers = pa.concat_tables([step.tables["query"] for step in steps])
    assert (rows(pump.table()) if pump.table() is not None else []) == rows(answers)


def test_a_stream_of_answers_may_require_too():
    means = stream_of(table_of(ROWS), required=(), keys="user").window(wp.tumbling(5)).agg(n=wp.mean("x"))
    answers = wp.stream(means, time="window_end", required="user")
    result = answers.window(wp.tumbling(10)).agg(wp.count()).run()
    assert result.counts.rejects == {"null user": 1}


def test_a_snapshot_goes_on_with_the_same_required_columns_only():
    query = stream_of().window(wp.tumbling(5)).agg(wp.count())
    runner = query.start()
    runner.push(table_of(ROWS[:4]))
    snapshot = runner.snapshot().to_bytes()
    again = query.resume(snapshot)
    again.push(table_of(ROWS[4:]))
    assert again.counts.rejects == {"null time": 1, "null user": 3, "null v": 1}
    other = stream_of(required="user").window(wp.tumbling(5)).agg(wp.count())
    with pytest.raises(BadState, match=r"required of the stream was \('user', 'v'\), is now \('user'\)"):
        other.resume(snapshot)


def test_what_is_required_must_be_there():
    with pytest.raises(UnknownColumn, match=r"stream has no column 'usr'.*Did you mean 'user'"):
        stream_of(required="usr")
    with pytest.raises(BadQuery, match="required names 'v' twice"):
        stream_of(required=["v", "v"])
    with pytest.raises(BadQuery, match="required is 3"):
        stream_of(required=3)


def test_a_job_may_require_columns(tmp_path):
    text = """\
source: {format: rate}
stream: {time: timestamp, required: [value]}
query: {window: tumbling(1 s), aggregates: count()}
sink: {format: console}
"""
    (tmp_path / "job.yaml").write_text(text, "utf-8")
    assert load(tmp_path / "job.yaml").stream["required"] == ("value",)
