"""The operator: lanes that share one pass over a stream's tuples. Both runtimes drive it.

It takes batches that were already admitted (no null, late or absurd times) together with the progress of
the stream, and gives the answers of every query as Arrow tables. All its state is in lanes, key indexes
and interners, so that it can be written to blocks at any point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windowpane.core.aggregates import BoundAggregate
from windowpane.core.arrays import NEVER, Column, Ints, Tuples
from windowpane.core.columns import is_text, read_column, read_ties
from windowpane.core.emission import Emission, Group, Moment
from windowpane.core.forgetting import (
    SPARE,
    AnyLane,
    live_keys,
    live_texts,
    most_keys,
    most_texts,
    rekeyed,
    retexted,
)
from windowpane.core.hashing import hash_columns
from windowpane.core.interner import Interner
from windowpane.core.keys import KeyIndex
from windowpane.core.lane_blocks import Blocks
from windowpane.core.pending import TIE
from windowpane.core.results import Lowering, result_table
from windowpane.core.rows import Rows, combined
from windowpane.core.slice_lane import SliceLane
from windowpane.core.snapshot import operator_blocks, restore_operator


@dataclass(frozen=True)
class LaneEntry:
    """A lane, the columns it groups by, counts positions within and reads, and the first time it looks at.

    `scope` is None where positions are not counted or count the whole stream.
    """

    name: str
    grouping: tuple[str, ...]
    scope: tuple[str, ...] | None
    columns: tuple[str, ...]
    since: int
    lane: AnyLane


@dataclass(frozen=True)
class QueryEntry:
    """How the answers of one query are turned into its result table."""

    name: str
    grouping: tuple[str, ...]
    definitions: tuple[int, ...]
    aggregates: tuple[BoundAggregate, ...]
    point: pa.DataType
    many: bool
    early: bool


class Operator:
    """Runs lanes over admitted batches."""

    def __init__(
        self,
        types: Mapping[str, pa.DataType],
        columns: Sequence[str],
        tie: tuple[str, ...] | None,
        ties_column: str | None,
    ) -> None:
        """`columns` are read for the aggregates; `tie` are hashed to order equal times, if a lane asks."""
        self.types = dict(types)
        self.columns = tuple(columns)
        self.tie = tie
        self.ties_column = ties_column
        self.lanes: list[LaneEntry] = []
        self.queries: list[QueryEntry] = []
        self.keys: dict[tuple[str, ...], KeyIndex] = {}
        self.scopes: dict[tuple[tuple[str, ...], tuple[str, ...]], Ints] = {}
        self._in_use: dict[tuple[str, ...] | str, int] = {}
        self.interners: dict[str, Interner] = {
            name: Interner(self.types[name]) for name in self.columns if is_text(self.types[name])
        }

    def step(
        self, batch: pa.RecordBatch, time: Ints, moment: Moment, *, rising: bool = False
    ) -> dict[str, list[pa.Table]]:
        """Fold an admitted batch in (`rising`: its times never fall); gives the answers of each query."""
        columns = self._read(batch)
        ids = self._encode(batch)
        emissions: list[tuple[LaneEntry, Emission]] = []
        for i, entry in enumerate(self.lanes):
            mine = {name: columns[name] for name in entry.columns}
            tuples = Tuples(time, ids[entry.grouping], mine, rising)
            if entry.since > NEVER and len(time):
                tuples = tuples.take(time >= entry.since)
            lane, answers = entry.lane.step(tuples, self._group(entry), moment)
            self.lanes[i] = replace(entry, lane=lane)
            emissions += [(entry, answer) for answer in answers]
        tables = self._lower(emissions)
        self._forget_keys()
        self._forget_texts()
        return tables

    def step_rows(self, keys: Sequence[pa.Array], rows: Rows, moment: Moment) -> dict[str, list[pa.Table]]:
        """As `step`, for the only lane's slices, folded elsewhere; `rows.key` points into `keys`.

        Rows may come in any order, repeat a slice and be cut finer than the lane's own.
        """
        (entry,) = self.lanes
        if not isinstance(entry.lane, SliceLane):
            raise TypeError("only slices can be folded elsewhere")
        ids = self._index(entry.grouping).encode(keys, int(rows.key.max(initial=-1)) + 1)
        start = entry.lane.spec.window_edges.floor(rows.start) if len(rows) else rows.start
        fresh = combined(entry.lane.spec.layout, Rows(start, ids[rows.key], rows.partials))
        lane, answers = entry.lane.step_rows(fresh, self._group(entry), moment)
        self.lanes[0] = replace(entry, lane=lane)
        tables = self._lower([(entry, answer) for answer in answers])
        self._forget_keys()
        return tables

    def _forget_keys(self) -> None:
        """Number keys anew where most are not needed; positions within a scope are context for ever."""
        scopes = {entry.scope for entry in self.lanes}
        for names, index in self.keys.items():
            known = len(index)
            mine = [i for i, entry in enumerate(self.lanes) if entry.grouping == names]
            most = min(self._in_use.get(names, 0), sum(most_keys(self.lanes[i].lane) for i in mine))
            if names in scopes or known <= 2 * most + SPARE:
                continue
            live = np.logical_or.reduce([live_keys(self.lanes[i].lane, known) for i in mine])
            self._in_use[names] = int(live.sum())
            if 2 * self._in_use[names] + SPARE >= known:
                continue
            place = index.compact(live)
            for i in mine:
                self.lanes[i] = replace(self.lanes[i], lane=rekeyed(self.lanes[i].lane, place))
            for pair in [pair for pair in self.scopes if pair[0] == names]:
                self.scopes[pair] = self.scopes[pair][live]

    def _forget_texts(self) -> None:
        """As `_forget_keys`, for the texts of value columns."""
        for name, interner in self.interners.items():
            known = len(interner)
            most = min(self._in_use.get(name, 0), sum(most_texts(entry.lane) for entry in self.lanes))
            if known <= 2 * most + SPARE:
                continue
            live = np.logical_or.reduce([live_texts(entry.lane, name, known) for entry in self.lanes])
            self._in_use[name] = int(live.sum())
            if 2 * self._in_use[name] + SPARE < known:
                place = interner.compact(live)
                self.lanes = [replace(e, lane=retexted(e.lane, name, place)) for e in self.lanes]

    def _read(self, batch: pa.RecordBatch) -> dict[str, Column]:
        columns = {
            name: read_column(batch.column(name), name, self.interners.get(name)) for name in self.columns
        }
        if self.tie is not None:
            columns[TIE] = Column(self._ties(batch))
        return columns

    def _ties(self, batch: pa.RecordBatch) -> Ints:
        if self.ties_column is not None:
            return read_ties(batch.column(self.ties_column), self.ties_column)
        if not self.tie or batch.num_rows == 0:
            return np.zeros(batch.num_rows, np.int64)
        return hash_columns([batch.column(name) for name in self.tie])[0].view(np.int64)

    def _encode(self, batch: pa.RecordBatch) -> dict[tuple[str, ...], Ints]:
        ids: dict[tuple[str, ...], Ints] = {}
        for entry in self.lanes:
            for names in (entry.grouping, *(() if entry.scope is None else (entry.scope,))):
                if names not in ids:
                    arrays = [batch.column(name) for name in names]
                    ids[names] = self._index(names).encode(arrays, batch.num_rows)
            if entry.scope is not None:
                self._note_scopes(entry.grouping, entry.scope, ids)
        return ids

    def _index(self, names: tuple[str, ...]) -> KeyIndex:
        if names not in self.keys:
            self.keys[names] = KeyIndex(names, [self.types[name] for name in names])
        return self.keys[names]

    def _note_scopes(
        self, grouping: tuple[str, ...], scope: tuple[str, ...], ids: dict[tuple[str, ...], Ints]
    ) -> None:
        known = self.scopes.get((grouping, scope), np.empty(0, np.int64))
        more = len(self.keys[grouping]) - len(known)
        if more > 0:
            known = np.concatenate([known, np.zeros(more, np.int64)])
            known[ids[grouping]] = ids[scope]
        self.scopes[grouping, scope] = known

    def _group(self, entry: LaneEntry) -> Group:
        scope = None if entry.scope is None else self.scopes[entry.grouping, entry.scope]
        return Group(len(self.keys[entry.grouping]), scope)

    def _lower(self, emissions: list[tuple[LaneEntry, Emission]]) -> dict[str, list[pa.Table]]:
        tables: dict[str, list[pa.Table]] = {}
        for query in self.queries:
            lowering = Lowering(
                query.definitions, query.aggregates, query.point, many=query.many, early=query.early
            )
            for entry, emission in emissions:
                if emission.final or query.early:
                    index = self.keys[entry.grouping]
                    table = result_table(lowering, emission, index, query.grouping, self._values)
                    if table is not None:
                        tables.setdefault(query.name, []).append(table)
        return tables

    def key_types(self, grouping: tuple[str, ...]) -> list[tuple[str, pa.DataType]]:
        """The names and types of a result's key columns."""
        return list(zip(grouping, self._index(grouping).types, strict=True))

    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of each query's answers."""
        found = {}
        for query in self.queries:
            lowering = Lowering((), query.aggregates, query.point, many=query.many, early=query.early)
            found[query.name] = lowering.schema(self.key_types(query.grouping))
        return found

    def _values(self, column: str, ids: Ints) -> pa.Array:
        return self.interners[column].values(ids)

    def blocks(self) -> Blocks:
        """All state as named blocks, between two steps."""
        return operator_blocks(self)

    def restore(self, blocks: Mapping[str, bytes]) -> None:
        """Go on from the blocks of an operator of the same plan; this one has seen nothing yet."""
        restore_operator(self, blocks)

    @property
    def nbytes(self) -> int:
        """Memory held by all state."""
        return (
            sum(entry.lane.nbytes for entry in self.lanes)
            + sum(index.nbytes for index in self.keys.values())
            + sum(interner.nbytes for interner in self.interners.values())
            + sum(scope.nbytes for scope in self.scopes.values())
        )
