"""`windowpane warm` compiles what a first run needs: afterwards queries find every kernel ready."""

import importlib
import pkgutil

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import windowpane as wp
from tests.spark.pump import Pump
from windowpane.cli.main import app
from windowpane.core import kernels
from windowpane.core.jit import HAVE_NUMBA

ROWS = pa.table(
    {
        "ts": pa.array([5, 1, 3, 12, 11, 30], pa.timestamp("us", "UTC")),
        "k": ["a", "b", "a", None, "b", "a"],
        "n": pa.array([1, 2, 3, 1, 2, 3], pa.int32()),
        "v": [1, 2, None, 4, 5, 6],
        "x": [0.5, None, 1.5, 2.5, 3.5, 4.5],
    }
)


def compiled():
    """The signatures that each kernel has been compiled for, or loaded from the cache, by this process."""
    found = {}
    for module in pkgutil.iter_modules(kernels.__path__, kernels.__name__ + "."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if hasattr(value, "signatures"):
                found[module.name, name] = set(value.signatures)
    return found


@pytest.mark.skipif(not HAVE_NUMBA, reason="without Numba nothing is compiled")
def test_after_it_nothing_is_left_to_compile():
    done = CliRunner().invoke(app, ["warm", "--no-spark"])
    assert done.exit_code == 0, done.output
    assert "ready after" in done.output
    before = compiled()
    assert sum(map(len, before.values())) > 30
    stream = wp.stream(schema=ROWS.schema, time="ts", keys="k", delay="5 us")
    plain = [wp.count(), wp.sum("v"), wp.mean("x"), wp.max("x")]
    for query in (
        stream.window(wp.tumbling("10 us")).agg(*plain),
        stream.window(wp.sliding("20 us", "5 us"), keys=("k", "n")).agg(*plain),
        stream.window(wp.session("4 us")).agg(*plain),
    ):
        Pump(query, restart=True).run(ROWS.to_batches(max_chunksize=3))
    new = {name: some - before[name] for name, some in compiled().items() if some - before[name]}
    assert new == {}
