"""Parts: queries whose rows are shared out over the buckets alike. Each part has an operator in every bucket.

Queries over slices are one part for each grouping, and tasks fold their rows before they are sent. Other
queries are one part for each set of columns that decides the bucket, and their rows are sent as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import NEVER, Ints
from windowpane.core.edges import Edges
from windowpane.core.hashing import hash_columns
from windowpane.core.operator import Operator
from windowpane.core.partials.counts import RowCount
from windowpane.core.rows import Layout
from windowpane.core.slice_lane import SliceLane
from windowpane.plan.nodes import Plan, WindowQuery
from windowpane.planner.compile import compile_plan
from windowpane.planner.spill import need_spillable
from windowpane.values.windows import LastRows, PerRow, Rows

CELLS = 16
"""Slices are cut at this many cells per `max_ahead`: rows of one cell are never far ahead of each other."""


@dataclass(frozen=True)
class Slicing:
    """How rows are folded: the lane's layout with a row count, and its edges cut at cells of time too."""

    layout: Layout
    edges: Edges
    grouping: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """Some queries of a plan, and the columns by which their rows are shared out (none: one bucket)."""

    plan: Plan
    keys: tuple[str, ...]
    folded: bool

    def operator(self) -> Operator:
        """An operator that has seen nothing."""
        return compile_plan(self.plan)[0]

    @cached_property
    def slicing(self) -> Slicing:
        """How tasks fold the rows of this part."""
        try:
            return _remembered(self.plan)
        except TypeError:  # a user's aggregate that cannot be hashed
            return _slicing(self.plan)

    def cutoff(self, bound: int) -> int:
        """Rows below this time are late; of folded rows, those whose whole slice is below the bound."""
        if bound == NEVER:
            return int(NEVER)
        settled = bound - self.plan.stream.lateness
        return int(self.slicing.edges.floor(np.array([settled]))[0]) if self.folded else settled

    def bucket_of(self, columns: Mapping[str, pa.Array], buckets: int) -> Ints:
        """The number of each row's bucket."""
        hashes = hash_columns([columns[name] for name in self.keys])[0]
        return (hashes % np.uint64(buckets)).astype(np.int64)


def _slicing(plan: Plan) -> Slicing:
    entry = compile_plan(plan)[0].lanes[0]
    assert isinstance(entry.lane, SliceLane)
    edges, ahead = entry.lane.spec.fold_edges, plan.stream.max_ahead
    if ahead is not None:
        width = max(ahead // CELLS, 1)
        edges = replace(edges, phase=np.append(edges.phase, 0), period=np.append(edges.period, width))
    return Slicing((*entry.lane.spec.layout, RowCount()), edges, entry.grouping, entry.columns)


# A worker serves many tasks of one query, each of which gets the plan anew.
_remembered = lru_cache(maxsize=64)(_slicing)


def parts_of(plan: Plan) -> tuple[Part, ...]:
    """The plan's queries, sorted into parts; each part's stream has the columns that it reads."""
    found: dict[tuple[bool, tuple[str, ...]], list[WindowQuery]] = {}
    for query in plan.queries:
        folded = _foldable(replace(plan, queries=(query,)))
        share = query.grouping if folded else bucket_columns([query])
        found.setdefault((folded, share), []).append(query)
    return tuple(
        Part(_pruned(replace(plan, queries=tuple(queries))), tuple(sorted(share)), folded)
        for (folded, share), queries in found.items()
    )


def one_part(plan: Plan) -> Part:
    """The whole plan as one part over rows, for a run within a memory budget."""
    need_spillable(plan)
    return Part(_pruned(plan), bucket_columns(plan.queries), folded=False)


def columns_of(parts: Sequence[Part]) -> tuple[str, ...]:
    """The columns that any part reads."""
    return tuple(dict.fromkeys(name for part in parts for name in part.plan.stream.columns))


def bucket_columns(queries: Iterable[WindowQuery]) -> tuple[str, ...]:
    """The columns by which rows can be shared out so that no window is torn; none: one bucket takes all.

    A window that counts positions needs all rows of its partition; any other needs all rows of a key.
    """
    common: list[str] | None = None
    for query in queries:
        for window in query.windows:
            counts = isinstance(window, Rows | PerRow | LastRows)
            needs = query.partition(window) if counts else query.keys
            common = list(needs) if common is None else [c for c in common if c in needs]
    return tuple(sorted(common or ()))


def _foldable(plan: Plan) -> bool:
    """Whether tasks can fold the rows of a plan to slices: no order, no sessions, no texts, no duplicates."""
    if plan.stream.ids:
        return False
    lanes = compile_plan(plan)[0].lanes
    if len(lanes) != 1 or not isinstance(lanes[0].lane, SliceLane):
        return False
    spec = lanes[0].lane.spec
    return not spec.sessions and not any(partial.id_columns() for partial in spec.layout)


def _pruned(plan: Plan) -> Plan:
    """The plan with only the columns that are read, so that Catalyst reads no others."""
    operator, stream = compile_plan(plan)[0], plan.stream
    wanted = {stream.time, *stream.policy_columns(), *stream.required, *stream.ids, *operator.columns}
    # where the order of equal times counts and no column says it, their whole content does
    wanted |= {stream.ties} if stream.ties else set(operator.tie or ())
    wanted |= {c for query in plan.queries for c in query.grouping}
    types = tuple((name, kind) for name, kind in stream.types if name in wanted)
    return replace(plan, stream=replace(stream, types=types))
