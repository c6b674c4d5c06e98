"""Kernels in Spark's Python workers: from the cache on disk, started many at once, and without any cache."""

import json
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATS = """
import json, sys, time
def stats():
    modules = [m for name, m in sys.modules.items() if name.startswith("windowpane.core")]
    found = {id(k): k.stats for m in modules for k in vars(m).values() if hasattr(k, "stats")}
    hits, misses = (
        sum(sum(getattr(each, name).values()) for each in found.values())
        for name in ("cache_hits", "cache_misses")
    )
    return {"hits": hits, "misses": misses}
def cpu():
    return time.process_time()
"""
WORKER = """
import sys, warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import windowpane as wp
from tests.spark.pump import Pump
import pyarrow as pa
rows = {"ts": [5, 1, 3, 12, 11, 30], "k": ["a", "b", "a", "b", None, "a"], "v": [1, 2, None, 4, 5, 6]}
stream = wp.stream(schema=pa.table(rows).schema, time="ts", keys="k", delay=10)
aggregates = (wp.count(), wp.sum("v"), wp.first("k"))
pump = Pump(
    stream.window(wp.sliding(10, 5)).agg(*aggregates[:2], name="slices"),
    stream.window(wp.session(4)).agg(*aggregates, name="sessions"),
    stream.window(wp.rows(2, 1)).agg(wp.collect("v"), name="positions"),
)
pump.run([pa.table(rows).slice(0, 4), pa.table(rows).slice(4)])
answers = sorted(repr(row) for name in pump.found for row in pump.table(name).to_pylist())
warned = [str(w.message).split(",")[0] for w in told if "Numba" in str(w.message)]
"""
FEW = """
import sys, time
from pathlib import Path
import numpy as np
from windowpane.core.kernels.clock import scan
from windowpane.core.kernels.ranges import first_at_least
Path(sys.argv[1]).touch()
while not Path(sys.argv[2]).exists():
    time.sleep(0.01)
answers = [int(x) for x in (*scan(np.array([3, 1, 2])), first_at_least(np.arange(10), 0, 10, 7))]
"""


def start(program, *arguments, **environment):
    """A process of its own, which prints its answers and what the kernels' cache did."""
    lines = (
        "print(json.dumps({'answers': answers, 'warned': globals().get('warned'), 'cpu': cpu(), **stats()}))"
    )
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **environment}
    command = [sys.executable, "-c", STATS + program + lines, *map(str, arguments)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process):
    """What a process printed."""
    out, error = process.communicate(timeout=500)
    assert process.returncode == 0, error
    return json.loads(out)


@pytest.fixture(scope="module")
def warm():
    """A worker's answers; the cache has its kernels after it."""
    return end(start(WORKER))


def test_a_second_worker_compiles_nothing_and_is_ready_within_ten_seconds(warm):
    found = end(start(WORKER))
    assert found["misses"] == 0
    assert found["cpu"] < 10  # of its own CPU, to the last answer, with all that it imported
    assert found["hits"] >= 5
    assert found["answers"] == warm["answers"]
    assert found["warned"] == []


def test_many_workers_start_at_once_on_an_empty_cache(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    go = tmp_path / "go"
    ready = [tmp_path / f"ready{i}" for i in range(6)]
    workers = [start(FEW, file, go, NUMBA_CACHE_DIR=str(cache)) for file in ready]
    while not all(file.exists() for file in ready):
        assert all(worker.poll() is None for worker in workers), "a worker ended before it began"
        time.sleep(0.1)
    go.touch()
    found = [end(worker) for worker in workers]
    assert sum(each["misses"] for each in found) >= 2, "the cache was not empty"
    assert all(each["answers"] == [1, 3, 0, 7] for each in found)
    again = end(start(FEW, ready[0], go, NUMBA_CACHE_DIR=str(cache)))
    assert again["answers"] == [1, 3, 0, 7]
    assert (again["misses"], again["hits"] >= 2) == (0, True)
    left = [file.name for file in cache.rglob("*") if file.is_file() and file.suffix not in (".nbi", ".nbc")]
    assert left == []


def test_a_change_to_any_kernel_has_all_compiled_anew_since_each_holds_those_it_calls(tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "go").touch()
    few = partial(start, FEW, tmp_path / "ready", tmp_path / "go", PYTHONPATH=str(tmp_path / "src"))
    assert [end(few())["misses"] > 0, end(few())["misses"]] == [True, 0]
    with (tmp_path / "src/windowpane/core/kernels/habits.py").open(
        "a"
    ) as file:  # which neither of them calls
        file.write("# another version\n")
    assert [end(few())["misses"] > 0, end(few())["misses"]] == [True, 0]


def test_where_no_folder_can_be_written_kernels_are_compiled_anew_with_a_warning(tmp_path):
    (tmp_path / "go").touch()
    told = "import warnings\nwarnings.simplefilter('error')\nimport windowpane\n"
    nowhere = {"NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"}
    process = start(told, **nowhere)
    _, error = process.communicate(timeout=500)
    assert "RuntimeWarning: Numba finds no folder to keep compiled kernels in" in error
    found = end(start(FEW, tmp_path / "ready", tmp_path / "go", **nowhere))
    assert found["hits"] == 0
    assert found["answers"] == [1, 3, 0, 7]


def test_tasks_and_buckets_of_spark_work_without_numba_and_warn_once(warm):
    found = end(start('import sys\nsys.modules["numba"] = None\n' + WORKER))
    assert found["answers"] == warm["answers"]
    assert found["warned"] == ["Numba is not installed"]
    assert (found["hits"], found["misses"]) == (0, 0)
