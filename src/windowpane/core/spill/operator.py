"""The operator over stores: it does for sliding windows what `core/operator.py` does in memory.

Tuples wait until the punctuation settles them, go to the stores of the lanes in time order, and windows slide
over the stores. Taking rows in is all or nothing: what can fail for want of room happens before any sum
changes. A failure after that (a damaged block) ends the run, since sums and stores no longer agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.core.arrays import Bools, Column, Ints, Tuples
from windowpane.core.columns import flat, is_text, read_column, valid_mask
from windowpane.core.operator import QueryEntry
from windowpane.core.ordered_lane import tuple_bytes
from windowpane.core.results import Lowering, window_column
from windowpane.core.spill.keyslots import KeySlots
from windowpane.core.spill.lane import Answered, Appended, Lane, Span
from windowpane.core.spill.shapes import SliceShape, key_column
from windowpane.core.spill.waiting import Piece, settle


@dataclass(frozen=True)
class Wanted:
    """One window of a query: its number, what it is, and where its grouping and lane are."""

    number: int
    span: Span
    grouping: int
    lane: int


class SpillOperator:
    """Runs lanes over stores."""

    def __init__(
        self,
        types: Mapping[str, pa.DataType],
        columns: Sequence[str],
        groupings: Sequence[tuple[str, ...]],
        texts: Sequence[str] = (),
    ) -> None:
        """`columns` are those that aggregates read, `texts` those of them whose texts are told apart.

        `groupings` are the key columns of each grouping.
        """
        self.types, self.columns, self.groupings = dict(types), tuple(columns), tuple(groupings)
        self.keys = [KeySlots(names, [self.types[name] for name in names]) for names in groupings]
        self.texts = {name: KeySlots((name,), [self.types[name]]) for name in texts}
        self.lanes: list[Lane] = []
        self.wanted: list[Wanted] = []
        self.queries: list[QueryEntry] = []
        self.pending: tuple[Piece[Tuples], ...] = ()

    def take(
        self,
        batch: pa.RecordBatch,
        time: Ints,
        bound: int,
        *,
        rising: bool = False,
        before: int | None = None,
    ) -> list[Appended]:
        """Take an admitted batch in (`rising`: its times never fall): all of it, or nothing and an error.

        What is settled is in the stores then; `answer` must follow with what this gives. With `before`, where
        the punctuation was, a step that closes too many windows is refused here.
        """
        settled, waiting = settle(self.pending, self._tuples(batch, time, rising), bound)
        marks = [lane.store.mark() for lane in self.lanes]
        appended = []
        try:
            for lane in self.lanes:
                appended += [lane.append(settled, bound, before)]
        except BaseException:
            for lane, mark in zip(self.lanes[: len(appended)], marks, strict=False):
                lane.store.back_to(mark)
            raise
        self.pending = waiting
        return appended

    def answer(self, appended: list[Appended], before: int, bound: int) -> dict[str, list[pa.Table]]:
        """The answers of each query, now that the punctuation went from `before` to `bound`."""
        entries = {number: query for query in self.queries for number in query.definitions}
        found: dict[int, list[pa.Table]] = {}
        for i, (lane, rows) in enumerate(zip(self.lanes, appended, strict=True)):
            # each as it comes: answers may have all values of their windows with them
            for answered in lane.roll(rows, before, bound):
                self._lower(entries, i, answered, found)
        self._forget()
        tables: dict[str, list[pa.Table]] = {}
        for number in sorted(found):
            tables.setdefault(entries[number].name, []).extend(found[number])
        return tables

    def _tuples(self, batch: pa.RecordBatch, time: Ints, rising: bool) -> Tuples:  # noqa: FBT001 - as in Tuples
        columns = {}
        for name in self.columns:
            if is_text(self.types[name]):
                # of texts that are not told apart only nulls count
                array, numbers = flat(batch.column(name)), np.zeros(len(time), np.int64)
                if name in self.texts:
                    numbers = self.texts[name].encode([array], len(time)).astype(np.int64)
                columns[name] = Column(numbers, valid_mask(array))
            else:
                columns[name] = read_column(batch.column(name), name)
        for g, names in enumerate(self.groupings):
            slots = self.keys[g].encode([batch.column(name) for name in names], len(time))
            columns[key_column(g)] = Column(slots.astype(np.int64))
        return Tuples(time, time, columns, rising)

    def keep(self, names: Sequence[str]) -> None:
        """Forget all queries but these, and the windows that only others had."""
        self.queries = [query for query in self.queries if query.name in names]
        numbers = {number for query in self.queries for number in query.definitions}
        self.wanted = [wanted for wanted in self.wanted if wanted.number in numbers]
        for i, lane in enumerate(self.lanes):
            lane.keep({(wanted.span, self._local(wanted)) for wanted in self.wanted if wanted.lane == i})

    def _lower(
        self,
        entries: Mapping[int, QueryEntry],
        lane: int,
        answered: Answered,
        found: dict[int, list[pa.Table]],
    ) -> None:
        """Put the answers to `found`, for each window that they are of."""
        for wanted in self.wanted:
            where = (wanted.lane, wanted.span, self._local(wanted))
            if (lane, answered.span, answered.grouping) == where:
                query = entries[wanted.number]
                lowering = Lowering(
                    query.definitions, query.aggregates, query.point, many=query.many, early=False
                )
                table = self._table(query, lowering, wanted, answered)
                if table is not None:
                    found.setdefault(wanted.number, []).append(table)

    def _local(self, wanted: Wanted) -> int:
        """The grouping's number within its lane: a lane of slices has one."""
        return 0 if isinstance(self.lanes[wanted.lane].shape, SliceShape) else wanted.grouping

    def _table(
        self, query: QueryEntry, lowering: Lowering, wanted: Wanted, answered: Answered
    ) -> pa.Table | None:
        n = len(answered.key)
        if n == 0:
            return None
        slots = self.keys[wanted.grouping]
        feed = self.lanes[wanted.lane].shape.feeds[answered.grouping]
        key = slots.ids(answered.key)
        partials = dict.fromkeys(p for aggregate in query.aggregates for p in aggregate.partials)
        states = {partial: feed.ranged(partial, answered.answers) for partial in partials}
        keys = dict(zip(slots.index.names, slots.index.values(key), strict=True))
        columns = [keys[name] for name in query.grouping]
        columns.append(window_column(answered.start, answered.end, lowering.point))
        if lowering.many:
            columns.append(pa.array(np.full(n, lowering.definitions.index(wanted.number)), pa.int32()))
        columns += [a.lower(tuple(states[p] for p in a.partials), self._texts) for a in query.aggregates]
        columns.append(pa.array(np.zeros(n, np.int32)))
        kinds = [(name, keys[name].type) for name in query.grouping]
        return pa.Table.from_arrays(columns, schema=lowering.schema(kinds))

    def _forget(self) -> None:
        for name, slots in self.texts.items():
            held = [values for lane in self.lanes for values in lane.values_of(name)]
            if slots.crowded(sum(map(len, held)) + sum(map(len, self.pending))):
                held += [piece.rows.columns[name].values[piece.first :] for piece in self.pending]
                live = np.zeros(len(slots), np.bool_)
                for numbers in held:
                    live[numbers] = True
                slots.forget(live)
        for g, slots in enumerate(self.keys):
            if slots.crowded(self._most_live(g)):
                slots.forget(self._live(g))
                for lane in self.lanes:
                    for sums in lane.sums_of(g):
                        sums.shrink(len(slots))

    def _most_live(self, g: int) -> int:
        """No fewer than the keys that are in use."""
        sums = sum(sums.n_active for lane in self.lanes for sums in lane.sums_of(g))
        waiting: list[Sized] = [*self.pending]
        for lane in self.lanes:
            waiting += lane.open_slices
        return sums + sum(len(piece) for piece in waiting)

    def _live(self, g: int) -> Bools:
        live = np.zeros(len(self.keys[g]), np.bool_)
        for piece in self.pending:
            live[piece.rows.columns[key_column(g)].values[piece.first :]] = True
        for lane in self.lanes:
            if isinstance(lane.shape, SliceShape) and lane.shape.grouping == g:
                for open_slices in lane.open_slices:
                    live[open_slices.rows.key[open_slices.first :]] = True
            for sums in lane.sums_of(g):
                live |= sums.holds(len(live))
        return live

    def _texts(self, column: str, numbers: Ints) -> pa.Array:
        return self.texts[column].values(numbers)

    @property
    def sums_bytes(self) -> int:
        """Memory of sums, keys, texts and tuples that wait: everything but the blocks of the stores."""
        return (
            sum(lane.nbytes for lane in self.lanes)
            + sum(slots.nbytes for slots in (*self.keys, *self.texts.values()))
            + sum(tuple_bytes(piece.rows) for piece in self.pending)
        )

    @property
    def nbytes(self) -> int:
        """Memory held by all state."""
        return self.sums_bytes + sum(lane.store.memory_bytes for lane in self.lanes)
