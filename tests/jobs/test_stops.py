"""A job that is interrupted, killed and started twice goes on exactly; its files are right all along."""

import random
import signal
import time

import pytest

import windowpane as wp
from tests.jobs.published import Program, published
from tests.spark.harness import build, events, rows, write_files

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

JOB = """\
source: {format: parquet, path: in, options: {maxFilesPerTrigger: 1}}
stream: {time: ts, keys: k, null_keys: keep, delay: 2 s}
query:
  window: sliding(3 s, 1 s)
  aggregates: ["count()", "total = sum(v)"]
sink: {format: parquet, path: out}
trigger: {processing_time: 10 ms}
checkpoint: state
"""


def test_a_job_that_is_stopped_in_every_way_gives_each_answer_once(tmp_path):
    parts = write_files(tmp_path / "in", events(n=6000), files=16)
    runner = build(None, wp.sliding("3 s", "1 s"), (wp.count(), wp.sum("v").named("total"))).start()
    expected = sorted(row for part in parts for row in rows(runner.push(part).tables["query"]))
    job, out, random_ = tmp_path / "job.yaml", tmp_path / "out", random.Random(7)
    job.write_text(JOB, "utf-8")

    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        before = len(list(out.glob("batch=*")))
        with Program(job) as program:
            program.wait_for(lambda before=before: len(list(out.glob("batch=*"))) >= before + 2)
            if how == signal.SIGTERM:
                with Program(job) as second:
                    asked = time.monotonic()
                    assert second.end() == 1
                    assert time.monotonic() - asked < 10
            time.sleep(random_.random())
            if how == signal.SIGINT:
                program.lose_a_worker()
                seen = len(list(out.glob("batch=*")))
                program.wait_for(lambda seen=seen: len(list(out.glob("batch=*"))) > seen)
            if how == signal.SIGKILL:
                program.kill()
            else:
                code, seconds = program.stop(how)
                assert code == 130
                assert seconds < 10
        seen = rows(published(out))
        assert len(seen) == len(set(seen))
        assert set(seen) < set(expected)

    log = (tmp_path / "log.txt").read_text()
    assert "is in use by process" in log
    assert "Traceback" not in log
    job.write_text(JOB.replace("{processing_time: 10 ms}", "available_now"), "utf-8")
    with Program(job) as program:
        assert program.end() == 0
    assert rows(published(out)) == expected
    assert list((tmp_path / ".out.staging").iterdir()) == []
