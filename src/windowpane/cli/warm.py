"""`windowpane warm`: compile kernels and load Spark's classes before the first run needs them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 60


def warm(
    spark: Annotated[bool, typer.Option(help="Also keep the classes of Spark's JVM (200 MB).")] = True,
) -> None:
    """Compile what queries need, so that no first run and no Spark worker waits for it.

    It takes about two minutes, once for each machine or image. Kernels are kept beside the package, or in the
    folder that NUMBA_CACHE_DIR names; the classes that Spark's JVM loads below ~/.cache, or XDG_CACHE_HOME.
    """
    began = time.perf_counter()
    runs = list(_runs()) if _have_numba() else []
    with Progress(transient=True) as progress:
        for run in progress.track(runs, description="compiling"):
            run()
        if spark:
            progress.add_task("running Spark once", total=None)
            _keep_classes()
    typer.echo(f"ready after {time.perf_counter() - began:.0f} s")


def _have_numba() -> bool:
    from windowpane.core.jit import HAVE_NUMBA

    if not HAVE_NUMBA:
        typer.echo("Numba is not installed, so there is nothing to compile.")
    return HAVE_NUMBA


def _keep_classes() -> None:
    from windowpane.spark.classes import NotKept, write_archive

    try:
        write_archive()
    except NotKept as error:
        typer.echo(f"no classes were kept: {error}", err=True)
        raise typer.Exit(1) from None


def _runs() -> Iterator[Callable[[], object]]:
    """Queries of all kinds over a handful of rows: in this process, within a budget, as Spark runs them."""
    import windowpane as wp

    plain = (wp.count(), wp.sum("i"), wp.sum("x"), wp.mean("x"), wp.min("x"), wp.max("i"), wp.stddev("x"))
    values = (wp.median("x"), wp.distinct("i"), wp.top_k("k", 2), wp.first("x"), wp.collect("i"))
    timed = (wp.tumbling("10 us"), wp.sliding("20 us", "5 us"))
    gap, landmark, each = wp.session("4 us"), wp.landmark("10 us"), wp.per_row("10 us")
    for rows in (_rows(nulls=True), _rows(nulls=False)):
        for keys in ((), ("n",), ("k",), ("k", "n")):
            query = wp.stream(rows, time="t", keys=keys, delay="8 us").window(*timed).agg(*plain)
            yield partial(_as_on_spark, query, rows)
            yield query.run
        stream = partial(wp.stream, rows, time="t", keys="k", delay="8 us")
        for windows in (timed, (gap,), (landmark,), (wp.rows(4, 2),), (each,)):
            yield stream().window(*windows).agg(*plain, *values).run
        yield partial(_as_on_spark, stream().window(gap).agg(*plain), rows)
        for windows in (timed, (each,), (each.per(),)):
            yield partial(stream().window(*windows).agg(*plain).run, memory="4 MB")
        for windows in (timed, (each,)):
            kept = (wp.median("x"), wp.distinct("i"), wp.top_k("i", 2))
            yield partial(stream().window(*windows).agg(*kept).run, memory="4 MB")
        yield partial(_queue, rows)


def _rows(*, nulls: bool) -> pa.Table:
    """Rows as they come from files and from Spark: in memory that cannot be written."""
    import pyarrow as pa

    numbers = range(_ROWS)
    columns: dict[str, Any] = {
        "t": pa.array([at ^ 3 for at in numbers], pa.timestamp("us", "UTC")),
        "k": [None if nulls and at % 11 == 0 else "ab"[at % 2] for at in numbers],
        "n": pa.array(numbers, pa.int32()),
        "i": [None if nulls and at % 7 == 0 else at * 7 % 11 for at in numbers],
        "x": [None if nulls and at % 13 == 0 else at * 0.1 for at in numbers],
    }
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def _queue(rows: pa.Table) -> None:
    """An update queue fills, is served, and tells how stale its keys are."""
    import windowpane as wp

    for schema in (None, rows.schema):
        queue = wp.UpdateQueue("k", schema=schema)
        queue.put_batch(rows)
        queue.get_batch(2)
        queue.staleness()


def _as_on_spark(query: Any, rows: pa.Table) -> None:
    """What tasks and buckets do, without Spark between them."""
    from windowpane.spark.bucket import Bucket, Work
    from windowpane.spark.pack import Packer
    from windowpane.spark.parts import parts_of
    from windowpane.spark.received import Received
    from windowpane.spark.seen import watch_of

    parts = parts_of(query.plan)
    packer = Packer(parts, (0,), watch_of(query.plan.stream))
    bucket = Bucket(Work(query.plan.stream, parts, parts[0]))
    for half in (rows.slice(0, _ROWS // 2), rows.slice(_ROWS // 2)):
        received = Received()
        for sent in packer(half.to_batches()):
            received.add(sent["part"].to_pylist(), sent["payload"].to_pylist())
        bucket.step(received)
        bucket.blocks()
    bucket.step(Received(), end=True)
