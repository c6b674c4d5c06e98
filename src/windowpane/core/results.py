"""Results: emissions lowered to Arrow tables, one row per window and key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.core.aggregates import BoundAggregate
from windowpane.core.arrays import NEVER, Bools, Ints
from windowpane.core.emission import Emission
from windowpane.core.keys import KeyIndex
from windowpane.core.partials.base import Partial, Ranged

TakeValues = Callable[[str, Ints], pa.Array]


@dataclass(frozen=True)
class Lowering:
    """What a query's result table holds."""

    definitions: tuple[int, ...]
    aggregates: tuple[BoundAggregate, ...]
    point: pa.DataType
    many: bool
    early: bool

    def schema(self, keys: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
        """The columns of the result."""
        fields = [pa.field(name, kind) for name, kind in keys]
        fields.append(pa.field("window", window_type(self.point)))
        fields += [pa.field("definition", pa.int32())] if self.many else []
        fields += [pa.field(a.name, a.type) for a in self.aggregates]
        fields.append(pa.field("revision", pa.int32()))
        return pa.schema(fields + ([pa.field("final", pa.bool_())] if self.early else []))


def window_type(point: pa.DataType) -> pa.DataType:
    """The type of the window column, as Spark's own `window()` gives it."""
    return pa.struct([pa.field("start", point), pa.field("end", point)])


def flat_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a result with `window_start` and `window_end` in the place of `window`."""
    fields: list[pa.Field] = []
    for f in schema:
        parts = ("start", "end") if f.name == "window" else ()
        fields += [pa.field(f"window_{part}", f.type.field(part).type) for part in parts] or [f]
    return pa.schema(fields)


def flattened(table: pa.Table) -> pa.Table:
    """A result with `window_start` and `window_end` in the place of `window`."""
    columns: list[pa.ChunkedArray] = []
    for name in table.schema.names:
        window = table[name].combine_chunks() if name == "window" else None
        columns += [table[name]] if window is None else [window.field("start"), window.field("end")]
    return pa.Table.from_arrays(columns, schema=flat_schema(table.schema))


def result_table(
    lowering: Lowering, emission: Emission, index: KeyIndex, grouping: tuple[str, ...], take: TakeValues
) -> pa.Table | None:
    """The rows of one query in an emission; None if it has none."""
    at = emission.of(lowering.definitions[0], lowering.definitions[-1])
    if len(at) == 0:
        return None
    windows = emission.windows if len(at) == len(emission) else emission.windows.take(at)
    keys = dict(zip(index.names, index.values(windows.key), strict=True))
    columns: list[pa.Array] = [keys[name] for name in grouping]
    columns.append(window_column(windows.start, windows.end, lowering.point))
    if lowering.many:
        place = np.searchsorted(np.array(lowering.definitions), windows.definition)
        columns.append(pa.array(place, pa.int32()))
    columns += _values(lowering.aggregates, emission, at, take)
    columns.append(pa.array(emission.revision[at], pa.int32()))
    if lowering.early:
        columns.append(pa.array(np.full(len(at), emission.final)))
    kinds = [(name, keys[name].type) for name in grouping]
    return pa.Table.from_arrays(columns, schema=lowering.schema(kinds))


def _values(
    aggregates: tuple[BoundAggregate, ...], emission: Emission, at: Ints, take: TakeValues
) -> list[pa.Array]:
    gone = emission.high[at] <= emission.low[at]
    if bool(gone.all()):
        return [pa.nulls(len(at), a.type) for a in aggregates]
    low, high = emission.low[at], emission.high[at]
    place = {partial: i for i, partial in enumerate(emission.layout)}
    ranged: dict[Partial, Ranged] = {}
    for aggregate in aggregates:
        for partial in aggregate.partials:
            if partial not in ranged:
                ranged[partial] = Ranged(partial, emission.table.partials[place[partial]], low, high)
    return [a.lower(tuple(ranged[p] for p in a.partials), take) for a in aggregates]


def window_column(start: Ints, end: Ints, point: pa.DataType) -> pa.Array:
    """Starts and ends as the column of windows; a start that never was is null."""
    absent: Bools = start == NEVER
    begins = (
        pa.array(np.where(absent, 0, start), pa.int64(), mask=absent)
        if bool(absent.any())
        else pa.array(start)
    )
    ends = pa.array(end)
    return pa.StructArray.from_arrays([begins.view(point), ends.view(point)], fields=list(window_type(point)))
