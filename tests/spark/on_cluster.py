"""A program for test_cluster: three queries on a cluster of two executor processes; prints their answers.

    python -m tests.spark.on_cluster FOLDER

FOLDER/in holds the files of `harness.events`; what was found is printed as one line of JSON.
"""

import json
import os
import sys
import time
from pathlib import Path

import pyarrow as pa

import windowpane as wp
from tests.spark.harness import run, streaming
from windowpane.spark.session import open_session


def queries(source, **how):
    """One aggregate, one session and one chained query over a source."""

    def stream():
        return wp.stream(source, time="ts", keys="k", delay="2 s", **how)

    counts = stream().window(wp.tumbling("1 s")).agg(n=wp.count(), name="counts")
    again = wp.stream(counts, time="window_end", keys="k")
    return {
        "aggregate": stream().window(wp.sliding("10 s", "3 s")).agg(wp.count(), wp.sum("v"), wp.median("x")),
        "session": stream().window(wp.session("300 ms")).agg(wp.count(), wp.first("k")),
        "chained": again.window(wp.sliding("20 s", "10 s")).agg(most=wp.max("n")),
    }


def whereabouts(batches):
    """The process of this task's worker and the one that it was started by: one for each executor."""
    for _ in batches:
        time.sleep(1)
        yield pa.record_batch([[os.getpid()], [os.getppid()]], names=["worker", "daemon"])


def main(folder):
    """Run the queries over what is there."""
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.memory": "1g",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
    }
    session = open_session("cluster", "local-cluster[2,1,1536]", settings, "ERROR")
    where = (
        session.range(4, numPartitions=4).mapInArrow(whereabouts, "worker bigint, daemon bigint").toArrow()
    )
    found = {"executors": len(set(where["daemon"].to_pylist()))}
    for name, query in queries(streaming(session, folder / "in")).items():
        found[name] = run(query.to_spark(), folder / f"{name}-checkpoint")
    session.stop()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
