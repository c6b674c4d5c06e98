"""A spec becomes Arrow batches: vectorised, and pure in the spec."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.simulate.spec import SECOND, StreamSpec

Ints = npt.NDArray[np.int64]

SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("key", pa.int64()), ("value", pa.int64())])


def generate(spec: StreamSpec) -> Iterator[pa.RecordBatch]:
    """The stream's batches in arrival order."""
    times, order = arrivals(spec)
    keys = zipf_keys(spec)[order]
    values = _rng(spec, "values").integers(0, spec.distinct, spec.rows)[order]
    columns = [pa.array(times).cast(SCHEMA.field("ts").type), pa.array(keys), pa.array(values)]
    whole = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    for at in range(0, spec.rows, spec.batch_rows):
        yield whole.slice(at, spec.batch_rows)


def event_times(spec: StreamSpec) -> Ints:
    """The event times in event-time order."""
    even = np.arange(spec.rows, dtype=np.int64) * SECOND // spec.rate
    if not spec.gaps_per_minute:
        return spec.start + even
    busy = spec.cycle - spec.gap
    cycle, within = np.divmod(even, spec.cycle)
    within = within * busy // spec.cycle  # the tuples of a cycle move together to make room for its gap
    cycles = int(cycle[-1]) + 1 if spec.rows else 0
    silence = _rng(spec, "gaps").integers(0, busy, cycles)
    return spec.start + cycle * spec.cycle + within + np.where(within >= silence[cycle], spec.gap, 0)


def arrivals(spec: StreamSpec) -> tuple[Ints, Ints]:
    """Event times in arrival order, and the event-time ordinal of each tuple.

    Some tuples are held back for a while; the rest keep their order. Ties arrive in event-time order.
    """
    times = event_times(spec)
    if not spec.disorder:
        return times, np.arange(spec.rows, dtype=np.int64)
    rng = _rng(spec, "disorder")
    late = rng.random(spec.rows) < spec.disorder
    arrival = times + np.where(late, rng.integers(1, spec.max_delay + 1, spec.rows), 0)
    order = np.argsort(arrival, kind="stable")
    return times[order], order


def zipf_keys(spec: StreamSpec) -> Ints:
    """A key for each tuple: rank k has weight 1 / (k + 1) ** skew."""
    rng = _rng(spec, "keys")
    if not spec.skew:
        return rng.integers(0, spec.keys, spec.rows)
    share = np.cumsum(1.0 / np.arange(1, spec.keys + 1) ** spec.skew)
    ranks: Ints = np.searchsorted(share, rng.random(spec.rows) * share[-1], side="right").astype(np.int64)
    return ranks


def _rng(spec: StreamSpec, purpose: str) -> np.random.Generator:
    """One generator for each purpose, so that changing the disorder does not change the values."""
    return np.random.default_rng([spec.seed, *purpose.encode()])
