"""From Kafka to Kafka against a real broker, three partitions: killed in the middle, every answer comes out.

A key's records are in one partition, and partitions are read in no common order: each has its own bound.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import windowpane as wp
from tests.jobs.published import Program, published
from tests.spark.harness import events, rows

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
SCRIPT = Path(__file__).parents[2] / "scripts" / "kafka.py"
UNAVAILABLE = 3

JOB = """\
source:
  format: kafka
  schema: ts timestamp, k string, v bigint
  options:
    kafka.bootstrap.servers: "{server}"
    subscribe: rows
    startingOffsets: earliest
    maxOffsetsPerTrigger: 601
stream:
  {{time: ts, keys: k, null_keys: keep, punctuation: "melded(partition, delay(2 s), sources=[0, 1, 2])"}}
queries:
  - name: to_kafka
    window: tumbling(7 s)
    aggregates: ["count()", "total = sum(v)"]
    sink: {{format: kafka, options: {{kafka.bootstrap.servers: "{server}", topic: answers}}}}
  - name: to_files
    window: tumbling(7 s)
    aggregates: ["count()", "total = sum(v)"]
    sink: {{format: parquet, path: out}}
trigger: {trigger}
checkpoint: state
spark: {{spark.jars: "{jars}"}}
"""


def kafka(*arguments, **how):
    """Run the project's script; where it says that Kafka is not to be had, so does the test."""
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    if done.returncode == UNAVAILABLE:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def broker(tmp_path):
    server = kafka("start", tmp_path / "broker")
    yield server
    kafka("stop", tmp_path / "broker")


def produce(server, table):
    """The rows as JSON texts; a null time and a text that is no JSON go with them."""
    lines = [
        f"{row['k']}|" + json.dumps({"ts": row["ts"].isoformat(), "k": row["k"], "v": row["v"]})
        for row in table.to_pylist()
    ]
    kafka("produce", server, "rows", input="\n".join([*lines, 'a|{"k": "a"}', "a|no JSON"]) + "\n")


def consume(server):
    """The answers in the topic, as texts."""
    lines = kafka("consume", server, "answers").splitlines()
    return [repr({**row, "window": window_of(row["window"])}) for row in map(json.loads, lines)]


def window_of(window):
    return {name: moment.replace(".000Z", "+00:00") for name, moment in window.items()}


def test_a_job_between_topics_that_is_killed_gives_every_answer(tmp_path, broker):
    table = events(n=2400).select(["ts", "k", "v"])
    stream = wp.stream(schema=table.schema, time="ts", keys="k", delay="2 s")
    runner = stream.window(wp.tumbling("7 s")).agg(wp.count(), total=wp.sum("v")).start()
    expected = sorted([*rows(runner.push(table).tables["query"]), *rows(runner.close().tables["query"])])
    job, jars = tmp_path / "job.yaml", kafka("connector")

    def write(trigger, more=""):
        job.write_text(JOB.format(server=broker, jars=jars, trigger=trigger) + more, "utf-8")

    def batches():
        return len(list((tmp_path / "state" / "to_files" / "commits").glob("[0-9]*")))

    produce(broker, table.slice(0, 1200))
    write("{processing_time: 10 ms}")
    with Program(job) as program:
        program.wait_for(lambda: batches() >= 1)
        program.kill()  # the next micro-batch is under way
    produce(broker, table.slice(1200))
    write("drain", "rejects: {format: json, path: rejects}\n")  # the topic is now written in batches
    with Program(job) as program:
        assert program.end() == 0, program.log.read_text()

    answers = consume(broker)
    assert sorted(set(answers)) == expected  # the topic may hold twice the micro-batch that was cut off
    assert rows(published(tmp_path / "out")) == expected
    assert re.search("late=0  bad=[24] ", program.log.read_text())  # no JSON, no time; in a half or in both
    for name in ("to_kafka", "to_files"):
        rejects = published(tmp_path / "rejects" / name, "json").to_pylist()
        found = {(row["_record"], row["reason"]) for row in rejects}
        assert found == {('{"k": "a"}', "null time"), ("no JSON", "null time")}
