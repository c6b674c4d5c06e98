"""Crash safety on Spark: killed processes, damaged checkpoints, changed queries, other parallelism."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

import windowpane as wp
from tests.spark.harness import events, rows, streaming, write_files
from windowpane.bench.recovery import OFFSET, PUBLISHED, Scale, recover
from windowpane.spark.session import ERRORS, reason

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

FILES = 4
CHANGELOGS = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
SLIDING, SESSION = wp.sliding("10 s", "3 s"), wp.session("300 ms")


class Stopped(NamedTuple):
    """A run that stopped with one file left to read: what it should give, and two kinds of checkpoints."""

    input: Path
    expected: list
    changelogs: Path
    snapshots: Path


def test_a_run_that_is_killed_and_loses_a_worker_gives_each_answer_once(tmp_path):
    outcome = recover(tmp_path, Scale((OFFSET, PUBLISHED)), lambda *_: None)
    assert (outcome.kills, outcome.missing, outcome.extra, outcome.differing) == (2, 0, 0, 0)
    assert [life.surplus for life in outcome.lives] == [0, 0, 0]
    assert any(life.torn for life in outcome.lives)
    last = outcome.lives[-1]
    assert 1 <= last.lost_tasks <= last.lost_workers, "more tasks ran again than lost their worker"


def query_of(
    source,
    windows=(SLIDING, SESSION),
    keys="k",
    aggregates=None,
    emit="final",
    cast=None,
    where=None,
    **options,
):
    """Slices and sessions by key; everything can be changed."""
    source = source if cast is None else source.withColumn("v", source.v.cast(cast))
    how = {"schema": events(n=2).schema} if source is None else {}
    stream = wp.stream(source, time="ts", keys=keys, **{"delay": "2 s", **how, **options})
    stream = stream if where is None else stream.where(where)
    return stream.window(*windows).agg(*(aggregates or (wp.count(), wp.sum("v"))), emit=emit)


def resumed(frame, checkpoint, found=None):
    """Run over what is available; the rows of each micro-batch by its number."""
    found = {} if found is None else found
    writer = frame.writeStream.foreachBatch(lambda batch, n: found.update({n: rows(batch.toArrow())}))
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return found


@pytest.fixture(scope="module")
def stopped(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    parts = write_files(folder / "all", events(), files=FILES)
    runner = query_of(None).start()
    expected = [rows(runner.push(part).tables["query"]) for part in parts]
    (folder / "in").mkdir()
    for i in range(FILES - 1):
        shutil.copy2(folder / "all" / f"{i:02d}.parquet", folder / "in")
    made = Stopped(folder / "in", expected, folder / "changelogs", folder / "snapshots")
    for checkpoint, changelogs in ((made.changelogs, "true"), (made.snapshots, "false")):
        spark.conf.set(CHANGELOGS, changelogs)
        found = resumed(query_of(streaming(spark, made.input)).to_spark(buckets=2), checkpoint)
        assert found == dict(enumerate(expected[:-1]))
    spark.conf.set(CHANGELOGS, "true")
    shutil.copy2(folder / "all" / f"{FILES - 1:02d}.parquet", folder / "in")
    return made


def flip(file, at=0.5):
    data = bytearray(file.read_bytes())
    data[int(len(data) * at)] ^= 0x10
    file.write_bytes(bytes(data))


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file):
    file.write_bytes(b"")


def remove(file):
    file.unlink()


def newest(folder, suffix=""):
    """The file of the newest version; of several, the largest."""
    files = [f for f in folder.rglob(f"*{suffix}") if re.fullmatch(rf"\d+(_[\w-]+)?{suffix}", f.name)]
    return max(files, key=lambda f: (int(re.match(r"\d+", f.name)[0]), f.stat().st_size))


def unguarded(file):
    """The file without the checksums that Hadoop and Spark keep beside it."""
    for guard in file.parent.glob(f"*{file.name}*crc"):
        guard.unlink()
    return file


def tables(checkpoint):
    """RocksDB's own files, which snapshots share: the newest of each partition."""
    return [max(folder.glob("*.sst"), key=lambda f: f.name) for folder in checkpoint.glob("state/0/*/SSTs")]


LOGS, STORE = "changelogs", "snapshots"
STATE = r"CANNOT_LOAD_STATE_STORE|BadState"
DAMAGES = {
    "changelog flipped": (LOGS, lambda c: flip(newest(c / "state", ".changelog")), STATE),
    "changelog flipped, no checksums": (
        LOGS,
        lambda c: flip(unguarded(newest(c / "state", ".changelog"))),
        STATE,
    ),
    "changelog cut": (LOGS, lambda c: cut(unguarded(newest(c / "state", ".changelog"))), STATE),
    "changelog missing": (LOGS, lambda c: remove(unguarded(newest(c / "state", ".changelog"))), STATE),
    "snapshot flipped": (STORE, lambda c: flip(unguarded(newest(c / "state", ".zip"))), STATE),
    "snapshot missing": (STORE, lambda c: remove(unguarded(newest(c / "state", ".zip"))), STATE),
    "table of a snapshot flipped": (
        STORE,
        lambda c: [flip(unguarded(f), 0.3) for f in tables(c)],
        "checksum mismatch",
    ),
    "offsets empty": (LOGS, lambda c: empty(unguarded(newest(c / "offsets"))), "offsets/2"),
    "offsets missing": (
        LOGS,
        lambda c: remove(unguarded(newest(c / "offsets"))),
        "CONCURRENT_STREAM_LOG_UPDATE",
    ),
    "commit missing": (LOGS, lambda c: remove(unguarded(newest(c / "commits"))), None),
    "metadata missing": (LOGS, lambda c: remove(unguarded(c / "metadata")), "MISSING_METADATA_FILE"),
    "list of files missing": (
        LOGS,
        lambda c: remove(unguarded(newest(c / "sources" / "0"))),
        "batch 2 doesn't exist",
    ),
}
"""What is damaged in which checkpoint, and what the error says; None: the run goes on."""


@pytest.mark.parametrize("damage", DAMAGES, ids=str)
def test_a_damaged_checkpoint_is_an_error_or_made_good_and_never_a_wrong_answer(
    spark, stopped, tmp_path, damage
):
    kind, harm, told = DAMAGES[damage]
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(getattr(stopped, kind), checkpoint)
    harm(checkpoint)
    found, failed = {}, None
    try:
        resumed(query_of(streaming(spark, stopped.input)).to_spark(buckets=2), checkpoint, found)
    except ERRORS as error:
        failed = str(error)
    if told is None:
        assert failed is None
        assert FILES - 1 in found
    else:
        assert failed is not None
        assert re.search(told, failed)
        assert FILES - 1 not in found
    assert found == {n: stopped.expected[n] for n in found}


ANOTHER = "the snapshot was written by another plan: "
CHANGES = {
    "slide": ({"windows": (wp.sliding("10 s", "5 s"), SESSION)}, "window of query 'query' was"),
    "key": ({"keys": "m"}, "keys of query 'query' was ('k'), is now ('m')"),
    "aggregate": ({"aggregates": (wp.count(), wp.max("v"))}, "aggregates of query 'query' was"),
    "column": ({"aggregates": (wp.count(), wp.sum("x"))}, "type of column 'x' of the stream was absent"),
    "lateness": ({"lateness": "1 s"}, "lateness of the stream was 0, is now 1000000"),
    "delay": ({"delay": "3 s"}, "punctuation of the stream was"),
    "max_ahead": ({"max_ahead": "2 days"}, "max_ahead of the stream was"),
    "emit": ({"emit": "update"}, "emit of query 'query' was final, is now update"),
    "condition": ({"where": "v > 3"}, "where of the stream was absent, is now v > 3"),
    "required": ({"required": "v"}, "required of the stream was absent, is now ('v')"),
    "type": ({"cast": "double"}, "type of column 'v' of the stream was int64, is now double"),
}


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_restart_with_a_changed_query_is_refused_and_says_what_changed(spark, stopped, tmp_path, change):
    from pyspark.errors import StreamingQueryException

    options, told = CHANGES[change]
    shutil.copytree(stopped.changelogs, tmp_path / "checkpoint")
    frame = query_of(streaming(spark, stopped.input), **options).to_spark(buckets=2)
    with pytest.raises(StreamingQueryException, match=r"errors\.BadState: ") as error:
        resumed(frame, tmp_path / "checkpoint")
    line = reason(error.value)
    assert line.startswith(ANOTHER)
    assert told in line


@pytest.fixture
def partitions(spark):
    """A function that sets the number of shuffle partitions; the number of before is set again."""
    before = spark.conf.get(PARTITIONS)
    yield lambda n: spark.conf.set(PARTITIONS, n)
    spark.conf.set(PARTITIONS, before)


def test_with_the_same_buckets_a_restart_may_have_other_partitions(spark, tmp_path, partitions):
    parts = write_files(tmp_path / "all", events(), files=3)
    runner = query_of(None).start()
    (tmp_path / "in").mkdir()
    for i, n in enumerate((1, 2, 8)):
        shutil.copy2(tmp_path / "all" / f"{i:02d}.parquet", tmp_path / "in")
        partitions(n)
        frame = query_of(streaming(spark, tmp_path / "in")).to_spark(buckets=2)
        assert resumed(frame, tmp_path / "checkpoint") == {i: rows(runner.push(parts[i]).tables["query"])}


def test_with_buckets_by_partitions_other_partitions_are_refused_and_harm_nothing(
    spark, stopped, tmp_path, partitions
):
    from pyspark.errors import StreamingQueryException

    shutil.copytree(stopped.changelogs, tmp_path / "checkpoint")
    for n in (1, 8):
        partitions(n)
        with pytest.raises(StreamingQueryException) as error:
            resumed(query_of(streaming(spark, stopped.input)).to_spark(), tmp_path / "checkpoint")
        assert f"over 2 buckets by k, but now over {n} buckets" in reason(error.value)
    partitions(2)
    found = resumed(query_of(streaming(spark, stopped.input)).to_spark(), tmp_path / "checkpoint")
    assert found == {FILES - 1: stopped.expected[-1]}
