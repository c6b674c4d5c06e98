"""What rows of a store are: tuples (one window, 1W) or slices (two-level aggregation, 2LA).

Both turn tuples into columns of a block, and columns of a block, fresh or read back years later, into the
same contributions; so that what is taken out of a sum is exactly what was added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windowpane.core.arrays import NEVER, Bools, Column, Ints, Tuples, Values
from windowpane.core.columns import is_integral, is_text, scale_of
from windowpane.core.spill.codec import BlockLayout, block_layout
from windowpane.core.spill.feed import LARGEST, LEAST, Answers, Feed, Lifted, fold_slices
from windowpane.core.spill.rolling import Flow
from windowpane.core.spill.store import Columns
from windowpane.core.spill.waiting import Kind, Piece
from windowpane.values.errors import BadQuery, wrong_type

TIME, VALID = "$time", "$valid"
_MOST_COLUMNS = 64
_NARROW: dict[pa.DataType, npt.DTypeLike] = {
    pa.bool_(): np.uint8,
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.uint8(): np.uint8,
    pa.uint16(): np.uint16,
    pa.uint32(): np.uint32,
    pa.float16(): np.float32,
    pa.float32(): np.float32,
}
"""Types on disk narrower than the int64 or float64 that a column is read as; each holds all its values."""


def key_column(grouping: int) -> str:
    """The column with the keys of a grouping, by its number."""
    return f"$key{grouping}"


def stored_type(name: str, kind: pa.DataType) -> npt.DTypeLike:
    """The type on disk of a column, which must give back every value that `read_column` reads."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return stored_type(name, kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return stored_type(name, kind.storage_type)
    if kind in _NARROW:
        return _NARROW[kind]
    if pa.types.is_floating(kind):
        return np.float64
    if is_integral(kind) or scale_of(kind) is not None:
        return np.int64
    raise wrong_type(name, kind, "a number or a time", "Cast the column, or leave memory= out.")


@dataclass(frozen=True)
class TupleShape:
    """Rows are tuples: a time, a key for each grouping, the values, and a bit for each that is not null."""

    feeds: tuple[Feed, ...]
    types: tuple[tuple[str, pa.DataType], ...]
    block_bytes: int

    def __post_init__(self) -> None:
        if len(self.columns) > _MOST_COLUMNS:
            raise BadQuery(
                f"the aggregates read {len(self.columns)} columns, but rows on disk hold {_MOST_COLUMNS}. "
                "Ask for less in one run, or leave memory= out."
            )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that some aggregate reads."""
        return tuple(dict.fromkeys(column for feed in self.feeds for column in feed.columns))

    @cached_property
    def _stored(self) -> dict[str, npt.DTypeLike]:
        """The columns whose values are kept, with their types on disk.

        A text is its number, where texts are told apart; elsewhere only nulls count.
        """
        types = dict(self.types)
        texts = {name for feed in self.feeds for name in feed.texts}
        return {
            name: np.int32 if name in texts else stored_type(name, types[name])
            for name in self.columns
            if name in texts or not is_text(types[name])
        }

    @cached_property
    def layout(self) -> BlockLayout:
        """The columns of a block."""
        keys = {key_column(g): np.int32 for g in range(len(self.feeds))}
        bits = next((kind for kind in ("<u1", "<u2", "<u4") if 8 * int(kind[2]) >= len(self.columns)), "<u8")
        valid = {VALID: np.dtype(bits)} if self.columns else {}
        return block_layout({TIME: np.int64, **keys, **self._stored, **valid}, self.block_bytes)

    @cached_property
    def _at(self) -> dict[str, int]:
        return {name: at for at, (name, _) in enumerate(self.layout.columns)}

    def target(self, grouping: int) -> Ints:
        """For each column of floats in a flow the sum that it goes to."""
        return self.feeds[grouping].target

    def take(self, tuples: Tuples, bound: int) -> tuple[Columns, OpenSlices]:  # noqa: ARG002 - a tuple never waits
        """The rows of tuples; nothing has to wait."""
        found = []
        for name, kind in self.layout.columns:
            if name == TIME:
                found.append(tuples.time)
            elif name == VALID:
                found.append(self._valid(tuples, kind))
            else:
                found.append(tuples.columns[name].values)
        return tuple(found), ()

    def keep(self, waiting: OpenSlices) -> None:
        """Nothing waits."""

    def _valid(self, tuples: Tuples, kind: str) -> Values:
        dtype = np.dtype(kind)
        bits = np.full(len(tuples), (1 << len(self.columns)) - 1, dtype)
        for i, name in enumerate(self.columns):
            mask = tuples.columns[name].valid
            if mask is not None:
                bits[~mask] &= dtype.type(((1 << 8 * dtype.itemsize) - 1) ^ (1 << i))
        return bits

    def keys(self, columns: Columns, grouping: int) -> Values:
        """The keys of rows in a grouping."""
        return columns[self._at[key_column(grouping)]]

    def flows(self, columns: Columns, groupings: Iterable[int]) -> dict[int, Flow]:
        """Rows as contributions to the sums of each grouping; lifted once where the feeds are the same."""
        n = len(columns[0])
        bits = columns[self._at[VALID]] if self.columns else None
        whole = bits is None or bool((bits == bits.dtype.type((1 << len(self.columns)) - 1)).all())
        time = np.ascontiguousarray(columns[self._at[TIME]])
        lifted: dict[Feed, Lifted] = {}
        found = {}
        for g in groupings:
            feed = self.feeds[g]
            if feed not in lifted:
                masks = {} if whole or bits is None else self._masks(bits, feed)
                read = {
                    name: Column(self._values(columns, name, n), masks.get(name)) for name in feed.columns
                }
                lifted[feed] = feed.lift(Tuples(time, time, read))
            key = np.ascontiguousarray(columns[self._at[key_column(g)]], np.int32)
            found[g] = Flow(time, key, lifted[feed])
        return found

    def _masks(self, bits: Values, feed: Feed) -> dict[str, Bools]:
        """Which values are present, by column."""
        kind = bits.dtype.type
        return {name: (bits >> kind(self.columns.index(name))) & kind(1) != 0 for name in feed.columns}

    def _values(self, columns: Columns, name: str, n: int) -> Values:
        if name not in self._stored:
            return np.zeros(n, np.int64)
        values = columns[self._at[name]]
        wide: Values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)
        return wide

    @property
    def nbytes(self) -> int:
        """Nothing is held besides the store."""
        return 0


@dataclass(frozen=True)
class Slices:
    """Slices by start and key: their sums."""

    start: Ints
    key: Ints
    answers: Answers

    def __len__(self) -> int:
        return len(self.start)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        a = self.answers
        arrays = (self.start, self.key, a.counts, a.sums, a.floats, a.codes)
        return sum(array.nbytes for array in arrays)


OpenSlices = tuple[Piece[Slices], ...]
"""Slices that the punctuation has not passed."""


class SliceShape:
    """Rows are slices of one grouping: of every pane and key the counts, sums and extremes.

    A slice is stored once the punctuation has passed its end; until then it waits in memory. A sum of floats
    is kept as two floats, the nearest and what is left, which is about twice a float's digits.
    """

    def __init__(self, feed: Feed, grouping: int, pane: int, origin: int, block_bytes: int) -> None:
        self.feeds = (feed,)
        self.feed, self.grouping, self.pane, self.origin = feed, grouping, pane, origin
        names = {f"count{j}": np.int64 for j in range(len(feed.counts))}
        names |= {f"sum{j}.{k}": np.int64 for j in range(len(feed.sums)) for k in (0, 1)}
        floats = {f"float{j}.{k}": np.float64 for j in range(len(feed.floats)) for k in (0, 1)}
        codes = {f"code{j}": np.int64 for j in range(len(feed.extremes))}
        self.layout = block_layout(
            {TIME: np.int64, **names, **floats, **codes, key_column(0): np.int32}, block_bytes
        )
        self.open: OpenSlices = ()
        self._kind = Kind(_part, _copied, self._merged)

    def target(self, grouping: int) -> Ints:  # noqa: ARG002 - there is one
        """Both floats of a pair go to the same sum."""
        return np.repeat(np.arange(len(self.feed.floats)), 2)

    def take(self, tuples: Tuples, bound: int) -> tuple[Columns, OpenSlices]:
        """The slices that end by `bound`; the others wait."""
        start = (tuples.time - self.origin) // self.pane * self.pane + self.origin
        fresh = self._fold(
            start, tuples.columns[key_column(self.grouping)].values, self.feed.lift(tuples), self.feed.target
        )
        held, passed = self._kind.add(self.open, fresh), max(bound, NEVER + self.pane) - self.pane
        gone, stays = self._kind.cut(
            held, lambda slices: int(np.searchsorted(slices.start, passed, side="right"))
        )
        settled = reduce(self._merged, gone) if gone else no_slices(self.feed)
        return self._columns(settled), stays

    def keep(self, waiting: OpenSlices) -> None:
        """Hold the slices that the punctuation has not passed."""
        self.open = waiting

    def _fold(self, start: Ints, key: Ints, lifted: Lifted, target: Ints) -> Slices:
        order = np.lexsort((key, start))
        start, key = start[order], key[order]
        rows = lifted.take(order)
        new = (start[1:] != start[:-1]) | (key[1:] != key[:-1])
        heads = np.flatnonzero(np.concatenate([[True], new])) if len(start) else np.empty(0, np.int64)
        return Slices(start[heads], key[heads], fold_slices(self.feed, rows, target, heads))

    def _merged(self, old: Slices, new: Slices) -> Slices:
        both = [self._columns(old), self._columns(new)]
        columns = tuple(np.concatenate(pair) for pair in zip(*both, strict=True))
        flow = self._flow(columns)
        return self._fold(flow.time, flow.key.astype(np.int64), flow.lifted, self.target(0))

    def _columns(self, slices: Slices) -> Columns:
        """In the order of the layout: all columns but the key are eight bytes wide."""
        a = slices.answers
        return (
            slices.start,
            *a.counts,
            *(word for pair in a.sums for word in pair),
            *(part for pair in a.floats for part in pair),
            *a.codes,
            slices.key,
        )

    def keys(self, columns: Columns, grouping: int) -> Values:  # noqa: ARG002 - there is one
        """The keys of slices."""
        return columns[-1]

    def flows(self, columns: Columns, groupings: Iterable[int]) -> dict[int, Flow]:
        """Slices as contributions to the sums of the one grouping."""
        return {g: self._flow(columns) for g in groupings}

    def _flow(self, columns: Columns) -> Flow:
        feed, at = self.feed, 1
        n_ints, n_floats, n_codes = feed.n_ints, 2 * len(feed.floats), len(feed.extremes)
        ints = _matrix(columns[at : at + n_ints], np.int64, len(columns[0]))
        at += n_ints
        floats = _matrix(columns[at : at + n_floats], np.float64, len(columns[0]))
        at += n_floats
        codes = _matrix(columns[at : at + n_codes], np.int64, len(columns[0]))
        none = np.where(feed.largest, LEAST, LARGEST)
        time = np.ascontiguousarray(columns[0])
        key = np.ascontiguousarray(columns[-1], np.int32)
        return Flow(time, key, Lifted(ints, floats.view(np.int64), codes, codes != none[:, None]))

    @property
    def nbytes(self) -> int:
        """Memory of the slices that wait."""
        return sum(piece.rows.nbytes for piece in self.open)


Shape = TupleShape | SliceShape
"""How tuples become rows of a store, and rows become contributions."""


def _matrix(columns: Sequence[Values], kind: npt.DTypeLike, n: int) -> Values:
    out = np.empty((len(columns), n), kind)
    for row, column in zip(out, columns, strict=True):
        row[:] = column
    return out


def _part(slices: Slices, low: int, high: int) -> Slices:
    a = slices.answers
    answers = replace(
        a,
        counts=a.counts[:, low:high],
        sums=a.sums[:, :, low:high],
        floats=a.floats[:, :, low:high],
        codes=a.codes[:, low:high],
    )
    return Slices(slices.start[low:high], slices.key[low:high], answers)


def _copied(slices: Slices) -> Slices:
    a = slices.answers
    answers = Answers(a.counts.copy(), a.sums.copy(), a.floats.copy(), a.codes.copy())
    return Slices(slices.start.copy(), slices.key.copy(), answers)


def no_slices(feed: Feed) -> Slices:
    """No slice at all."""
    none = np.empty(0, np.int64)
    answers = Answers(
        np.empty((len(feed.counts), 0), np.int64),
        np.empty((len(feed.sums), 2, 0), np.int64),
        np.empty((len(feed.floats), 2, 0), np.float64),
        np.empty((len(feed.extremes), 0), np.int64),
    )
    return Slices(none, none, answers)
