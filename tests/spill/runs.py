"""Small runs over a store, and disks that fail, for the fault tests."""

import errno
import os

import numpy as np
import pyarrow as pa

import windowpane as wp
from windowpane.values.sizes import Budget

SCHEMA = pa.schema({"t": pa.int64(), "k": pa.int64(), "v": pa.float64()})
SMALL = Budget(10**7, block_bytes=1024, blocks=2)
WINDOW = 2_000


def query(window=WINDOW):
    stream = wp.stream(schema=SCHEMA, time="t", keys="k")
    return stream.window(wp.per_row(window).per()).agg(total=wp.sum("v"), most=wp.max("v"), n=wp.count())


def rows(first, n=500):
    t = np.arange(first, first + n)
    return pa.table({"t": t, "k": t % 7, "v": (t * 37 % 1_001) / 8}, schema=SCHEMA)


def answers(batches):
    """What a run in memory says, push by push."""
    runner = query().start()
    return [runner.answers(runner.push(batch)).sort_by("window").to_pylist() for batch in batches]


def running(tmp_path, pushes=8, budget=SMALL):
    runner = query().start(memory=budget, spill_dir=tmp_path / "run")
    for i in range(pushes):
        runner.push(rows(500 * i))
    return runner


def pushed(runner, batches, found):
    """Push batches and note the answers of each, as far as it goes."""
    for batch in batches:
        table = runner.answers(runner.push(batch))
        found += [table.sort_by("window").to_pylist()]


def blocks_of(runner):
    return runner.folder.path / "blocks-0"


def go_on(runner, pushes=8):
    """Push on until every block that is on disk was read; the answers, or the error."""
    for i in range(8, 8 + pushes):
        runner.push(rows(500 * i))


def failing(runner, code, after):
    """From now on the disk fails at its n-th write."""
    medium, left = runner._media[0], [after]
    write = medium._pwrite

    def pwrite(view, at):
        if left[0] <= 0:
            raise OSError(code, os.strerror(code))
        left[0] -= 1
        return write(view, at)

    medium._pwrite = pwrite
    return write


def keyed(first, n=500):
    """Rows with a key each."""
    t = np.arange(first, first + n)
    return pa.table({"t": t, "k": t, "v": t / 2}, schema=SCHEMA)


def full(runner):
    """From now on the disk takes nothing, neither blocks nor reservations; how to end that."""
    medium = runner._media[0]
    write, allocate = medium._pwrite, medium._allocate

    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def mend():
        medium._pwrite, medium._allocate = write, allocate

    medium._pwrite = medium._allocate = refuse
    return mend
