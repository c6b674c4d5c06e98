"""On a cluster of separate executor processes the answers are those of this process."""

import json
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from tests.spark.harness import events, rows, write_files
from tests.spark.on_cluster import queries

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]


def test_an_aggregate_a_session_and_a_chained_query_on_two_executors(tmp_path):
    table = events()
    parts = write_files(tmp_path / "in", table, files=2)
    # executors know only what is installed, so they are told where this checkout is
    env = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }
    command = [sys.executable, "-m", "tests.spark.on_cluster", str(tmp_path)]
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=550, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["executors"] == 2
    for name in ("aggregate", "session"):
        runner = queries(None, schema=table.schema)[name].start()
        assert found[name] == [rows(runner.push(part).tables["query"]) for part in parts], name
        assert all(found[name])
    # the answers of the chain are those whose windows the same punctuation closes
    whole = queries(table)["chained"].run().table
    ends = whole["window"].combine_chunks().field("end").cast(pa.int64()).to_numpy()
    assert sorted(chain.from_iterable(found["chained"])) == rows(whole.filter(pa.array(ends <= runner.bound)))
    assert all(found["chained"])
