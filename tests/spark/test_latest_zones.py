"""Update queues in a session that has another time zone after a restart."""

import pyarrow as pa
import pytest

from tests.spark.block_store import BlockStore
from windowpane.spark import fresh
from windowpane.spark.envelope import write_batch
from windowpane.spark.fresh import Fresh
from windowpane.spark.queue_spec import QueueSpec

THEN, NOW = "America/New_York", "Asia/Kolkata"


def columns(zone):
    instant = pa.timestamp("us", zone)
    inner = pa.struct([("at", instant), ("many", pa.list_(instant)), ("by", pa.map_(pa.string(), instant))])
    return pa.schema([("ts", instant), ("k", pa.string()), ("inner", inner), ("local", pa.timestamp("us"))])


def payload(zone, time, *keys):
    inner = {"at": time, "many": [time, None], "by": [("a", time)]}
    rows = [{"ts": time, "k": key, "inner": inner, "local": time} for key in keys]
    return write_batch(pa.Table.from_pylist(rows, columns(zone)))


def queue_in(zone, given):
    def function(frame):
        given.append(frame)
        return frame

    answer = columns("UTC")
    spec = QueueSpec("q", ("k",), "ts", "freshest", 1e-9, function, answer, zone=zone)
    return Fresh(spec, tuple(zip(answer.names, answer.types, strict=True)))


def reopened(queue, zone, given):
    store = BlockStore()
    store.take(queue)
    return store.give(queue_in(zone, given))


@pytest.mark.parametrize("before", [False, True])
def test_rows_that_wait_go_on_in_a_session_of_another_time_zone(monkeypatch, before):
    given, clock = [], iter(range(10))
    with monkeypatch.context() as version:
        if before:  # a version that kept rows in the zone in which they came
            version.setattr(fresh, "in_zone", lambda rows, _: rows)
        queue = queue_in(THEN, given)
        first, _ = queue.step([payload(THEN, 1_000_000, *"abc")], lambda: next(clock))
        queue = reopened(queue, NOW, given)
    second, notes = queue.step([payload(NOW, 2_000_000, *"cd")], lambda: next(clock), drain=True)
    assert notes.waiting == 0
    newest = {row["k"]: row for row in pa.concat_tables([*first["q"], *second["q"]]).to_pylist()}
    assert [newest[key] for key in "abcd"] == [
        *read(payload("UTC", 1_000_000, *"ab")),
        *read(payload("UTC", 2_000_000, *"cd")),
    ]
    assert [str(frame["ts"].dtype.tz) for frame in given] == [THEN, *[NOW] * (len(given) - 1)]
    assert all(str(value["at"].tzinfo) == NOW for frame in given[1:] for value in frame["inner"])


def read(data):
    return pa.ipc.open_stream(data).read_all().to_pylist()
