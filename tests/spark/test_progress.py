"""Every policy on Spark: however rows are split into tasks, the bound is the clock's after the same rows."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windowpane as wp
from windowpane.core.arrays import ALWAYS, NEVER
from windowpane.core.clock import Clock
from windowpane.errors import BadQuery
from windowpane.spark.control import _teller, by_hand, finish, punctuate
from windowpane.spark.progress import Progress
from windowpane.spark.seen import Seen, watch_of
from windowpane.values.punctuation import LONGEST

POLICIES = {
    "delay": wp.delay(7),
    "ordered": wp.ordered(),
    "slack": wp.slack(3),
    "external": wp.external("m"),
    "manual": wp.manual(),
    "melded": wp.melded("s", wp.delay(2)),
    "listed slack": wp.melded("s", wp.slack(2), sources=["a", "b", "c"]),
    "melded external": wp.melded("s", wp.external("m")),
    "listed": wp.melded("s", wp.delay(1), sources=["a", "b", "c"]),
    "heartbeat": wp.heartbeat(50, delay=5),
    "melded heartbeat": wp.melded("s", wp.heartbeat(50, delay=5)),
}
row = st.tuples(st.integers(-100, 300), st.sampled_from("abc"), st.booleans())
batches_of_rows = st.lists(
    st.tuples(st.lists(row, max_size=12), st.one_of(st.none(), st.integers(0, 400))), min_size=1, max_size=5
)


def stream_of(policy, max_ahead=None):
    schema = pa.schema([("t", pa.int64()), ("s", pa.string()), ("m", pa.bool_())])
    return wp.stream(schema=schema, time="t", punctuation=policy, max_ahead=max_ahead).node


def seen_by_tasks(stream, rows, tasks):
    found = []
    for i in range(tasks):
        seen, mine = Seen(), rows[i::tasks]
        if mine:
            columns = [pa.array(list(c)) for c in zip(*mine, strict=True)]
            watch_of(stream).split(pa.record_batch(columns, names=["t", "s", "m"]), seen)
        found.append(Seen.from_bytes(seen.to_bytes()))
    return Seen.merged(found)


@pytest.mark.parametrize("name", POLICIES)
@given(batches=batches_of_rows, tasks=st.integers(1, 3), lateness=st.sampled_from([0, 20]))
def test_the_bound_is_that_of_the_clock_after_rows_in_order_of_time(name, batches, tasks, lateness):
    """Of those that are not late by the bound that the micro-batches before left."""
    stream = replace(stream_of(POLICIES[name]), lateness=lateness)
    progress, clock = Progress(stream), Clock(stream.policy, None, LONGEST)
    external, ids = "external" in name, {"a": 0, "b": 1, "c": 2}
    known = ids if "listed" in name else {}
    now = 0
    for rows, pause in batches:
        seen = seen_by_tasks(stream, rows, tasks)
        cutoff = clock.bound - lateness if clock.bound > NEVER else NEVER
        data = sorted(r for r in rows if not (external and r[2]) and r[0] >= cutoff)
        marks = sorted(r for r in rows if external and r[2])
        for some, marker in ((data, False), (marks, True)):
            if some:
                source = np.array([known.setdefault(s, len(known)) for _, s, _ in some])
                flag = np.full(len(some), marker) if marker else None
                clock.admit(
                    np.array([t for t, _, _ in some]),
                    flag,
                    source if "s" in repr(stream.policy_columns()) else None,
                )
        if pause is not None:
            now += pause
            seen.now = now
            clock.tick(now)
        progress.take(seen)
        assert (progress.bound, progress.high) == (clock.bound, clock.high)
        stored, progress = progress.to_json(), Progress(stream)
        progress.restore(stored)


@given(batches=batches_of_rows, tasks=st.integers(1, 3), ahead=st.integers(0, 60))
def test_rows_too_far_ahead_are_those_that_no_chain_of_rows_reaches(batches, tasks, ahead):
    stream = stream_of(wp.delay(7), max_ahead=ahead)
    progress, reach = Progress(stream), None
    for rows, _ in batches:
        limit = progress.take(seen_by_tasks(stream, rows, tasks))
        times = sorted(t for t, _, _ in rows)
        if not times:
            continue
        if reach is None:
            runs = np.split(times, np.nonzero(np.diff(times) > ahead)[0] + 1)
            middle = (len(times) + 1) // 2 - 1
            # the run that holds the middle row is where the stream begins
            reach = next(r for r in runs if r[0] <= times[middle] <= r[-1])[0]
        for t in times:
            if t > reach + ahead:
                break
            reach = max(reach, t)
        assert [t for t in times if t >= limit] == [t for t in times if t > reach]


def test_a_source_that_is_not_listed_is_an_error():
    stream = stream_of(wp.melded("s", wp.delay(1), sources=["a"]))
    with pytest.raises(BadQuery, match="'z' is not among the listed sources a"):
        Progress(stream).take(seen_by_tasks(stream, [(1, "z", False)], 1))


def test_a_large_slack_is_refused():
    with pytest.raises(BadQuery, match="slack of 20000 rows is too much on Spark"):
        watch_of(stream_of(wp.slack(20_000)))


def test_a_control_message_reaches_every_bucket_once():
    told = list(_teller("bound", (4, 9))([pa.record_batch([pa.array([5, None, 7])], names=["bound"])]))
    assert [batch["bucket"].to_pylist() for batch in told] == [[4, 9]]
    assert {Seen.from_bytes(payload.as_py()).bound for payload in told[0]["payload"]} == {7}
    progress = Progress(stream_of(wp.manual()))
    progress.take(Seen(bound=7))
    assert progress.bound == 7
    progress.take(Seen(bound=int(ALWAYS)))
    assert progress.bound == ALWAYS


@pytest.mark.parametrize("micros", [253_402_300_799_999_999, -62_135_596_799_999_999, -1])
def test_a_moment_is_told_to_the_microsecond(tmp_path, micros):
    """A float of seconds has too few digits for the microseconds of far moments: regression."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    for i, told in enumerate((moment, moment.replace(tzinfo=None))):
        punctuate(tmp_path / str(i), told)
        (file,) = (tmp_path / str(i)).iterdir()
        assert json.loads(file.read_text()) == {"bound": micros}


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_control_folder_may_be_a_uri(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)  # where a path that is none would be made
    punctuate(form.format(tmp_path / "control"), 5)
    (file,) = (tmp_path / "control").iterdir()
    assert json.loads(file.read_text()) == {"bound": 5}
    assert [path.name for path in tmp_path.iterdir()] == ["control"]


def test_a_control_folder_elsewhere_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for tell in (finish, lambda folder: by_hand(None, folder, (0,))):
        with pytest.raises(BadQuery, match="'s3://bucket/control' is in another file system"):
            tell("s3://bucket/control")
    assert not list(tmp_path.iterdir())
