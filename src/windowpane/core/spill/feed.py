"""From tuples to what is added and taken out of sums, and from sums back to the state of partials.

Only partials with an exact way to take a tuple out again can live here: counts and integer sums; sums of
floats, products, logarithms and squares, which are kept without rounding (`kernels/exact.py`); least and
largest values, by the queue of rows that may still become the extreme; and counts of values (`multisets.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windowpane.core.arrays import Bools, Columns, Floats, Ints, Ragged, Tuples
from windowpane.core.kernels.exact import sum_runs
from windowpane.core.kernels.ordering import encode
from windowpane.core.partials.base import Partial, Ranged
from windowpane.core.partials.counts import RowCount, ValidCount
from windowpane.core.partials.extremes import Max, Min
from windowpane.core.partials.moments import Moments
from windowpane.core.partials.reading import all_valid, filled, floats
from windowpane.core.partials.runs import ValueCounts
from windowpane.core.partials.sums import FloatSum, IntSum, LogSum, WeightedSum
from windowpane.core.replay import Replay, Replayed
from windowpane.core.rows import Layout
from windowpane.core.spill.multisets import Coded

LOW = np.int64(0xFFFFFFFF)
LEAST, LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
ROLLED = (RowCount, ValidCount, IntSum, FloatSum, LogSum, WeightedSum, Moments, Min, Max, ValueCounts)
"""The partials that can be rolled."""
_SPLIT = 134217729.0


@dataclass(frozen=True)
class Lifted:
    """Rows as contributions: counts and two words for each sum, bits of floats, codes of values."""

    ints: Ints
    bits: Ints
    codes: Ints
    has: Bools
    values: tuple[Coded, ...] = ()

    def __len__(self) -> int:
        return int(self.ints.shape[1])

    def part(self, low: int, high: int) -> Lifted:
        """The rows `low .. high-1`; copied, because compiled kernels take strided arrays for another type."""
        if low == 0 and high == len(self):
            return self
        ints, bits, codes = (
            np.ascontiguousarray(array[:, low:high]) for array in (self.ints, self.bits, self.codes)
        )
        values = tuple((code[low:high], has if has is None else has[low:high]) for code, has in self.values)
        return Lifted(ints, bits, codes, np.ascontiguousarray(self.has[:, low:high]), values)

    def take(self, at: Ints) -> Lifted:
        """The rows at these positions."""
        ints, bits, codes = (np.take(array, at, axis=1) for array in (self.ints, self.bits, self.codes))
        values = tuple((code[at], has if has is None else has[at]) for code, has in self.values)
        return Lifted(ints, bits, codes, np.take(self.has, at, axis=1), values)


@dataclass(frozen=True)
class Answers:
    """The sums of answers: one column each; `floats[s]` is a nearest float and, if paired, what is left.

    `runs` are the values of each answer, where they are kept; `replays` give what is asked of them instead.
    """

    counts: Ints
    sums: Ints
    floats: Floats
    codes: Ints
    runs: tuple[Ragged, ...] = ()
    replays: tuple[Replay, ...] = ()


def can_roll(partial: Partial) -> bool:
    """Whether a partial can live here."""
    return isinstance(partial, ROLLED)


@dataclass(frozen=True)
class Feed:
    """What the partials of a layout need, each thing once."""

    layout: Layout

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        found: dict[str, None] = {}
        for partial in self.layout:
            match partial:
                case ValidCount(columns):
                    found |= dict.fromkeys(columns)
                case WeightedSum(value, weight):
                    found |= dict.fromkeys((value, weight))
                case IntSum() | FloatSum() | LogSum() | Moments() | Min() | Max() | ValueCounts():
                    found[partial.column] = None
        return tuple(found)

    @cached_property
    def counts(self) -> tuple[tuple[str, ...], ...]:
        """The columns that must be present for a tuple to count; none for the first, which counts all."""
        found: dict[tuple[str, ...], None] = {(): None}
        for partial in self.layout:
            match partial:
                case ValidCount(columns):
                    found[columns] = None
                case WeightedSum(value, weight):
                    found[value, weight] = None
                case Moments(column):
                    found[column,] = None
        return tuple(found)

    @cached_property
    def sums(self) -> tuple[str, ...]:
        """The columns of integers that are summed."""
        return tuple(dict.fromkeys(p.column for p in self.layout if isinstance(p, IntSum)))

    @cached_property
    def floats(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What floats are summed: of which kind and columns."""
        found: dict[tuple[str, tuple[str, ...]], None] = {}
        for partial in self.layout:
            match partial:
                case FloatSum(column):
                    found["value", (column,)] = None
                case LogSum(column):
                    found["log", (column,)] = None
                case WeightedSum(value, weight):
                    found["product", (value, weight)] = None
                    found["weight", (weight, value)] = None
                case Moments(column):
                    found["value", (column,)] = None
                    found["square", (column,)] = None
        return tuple(found)

    @cached_property
    def extremes(self) -> tuple[tuple[str, bool], ...]:
        """The columns whose least (False) or largest (True) value is wanted."""
        found = [(p.column, isinstance(p, Max)) for p in self.layout if isinstance(p, Min | Max)]
        return tuple(dict.fromkeys(found))

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The columns of which it is counted how often each value came."""
        return tuple(dict.fromkeys(p.column for p in self.layout if isinstance(p, ValueCounts)))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Those of `values` that are text: their values are numbers of texts."""
        texts = [p.column for p in self.layout if isinstance(p, ValueCounts) and p.text]
        return tuple(dict.fromkeys(texts))

    @cached_property
    def largest(self) -> Bools:
        """Which extremes are largest values."""
        return np.array([largest for _, largest in self.extremes], np.bool_)

    @cached_property
    def paired(self) -> bool:
        """Whether answers need what is left of a sum beyond the nearest float."""
        return any(isinstance(partial, Moments) for partial in self.layout)

    @cached_property
    def target(self) -> Ints:
        """For each column of bits the sum that it goes to; a square comes in two parts."""
        return np.repeat(np.arange(len(self.floats)), [1 + (k == "square") for k, _ in self.floats])

    @property
    def n_ints(self) -> int:
        """Columns of counts and sums."""
        return len(self.counts) + 2 * len(self.sums)

    def lift(self, tuples: Tuples) -> Lifted:
        """Tuples as contributions; a null contributes nothing."""
        n = len(tuples)
        ints = np.empty((self.n_ints, n), np.int64)
        for j, columns in enumerate(self.counts):
            mask = all_valid(tuples, columns) if columns else None
            ints[j] = 1 if mask is None else mask
        for j, column in enumerate(self.sums):
            values = filled(tuples, column, 0)
            at = len(self.counts) + 2 * j
            np.right_shift(values, 32, out=ints[at])
            np.bitwise_and(values, LOW, out=ints[at + 1])
        parts = np.empty((len(self.target), n), np.float64)
        at = 0
        for kind, columns in self.floats:
            for values in _KINDS[kind](tuples, columns):
                parts[at] = values
                at += 1
        codes = np.empty((len(self.extremes), n), np.int64)
        has = np.empty((len(self.extremes), n), np.bool_)
        for j, (column, _) in enumerate(self.extremes):
            codes[j] = encode(tuples.columns[column].values)
            mask = all_valid(tuples, (column,))
            has[j] = True if mask is None else mask
        coded = tuple((encode(tuples.columns[c].values), all_valid(tuples, (c,))) for c in self.values)
        return Lifted(ints, parts.view(np.int64), codes, has, coded)

    def ranged(self, partial: Partial, answers: Answers) -> Ranged:
        """One partial in each answer, as what aggregates are lowered from."""
        place = np.arange(answers.counts.shape[1])
        if isinstance(partial, ValueCounts) and answers.replays:
            replay = answers.replays[self.values.index(partial.column)]
            return Replayed(partial, partial.identity(len(place)), place, place + 1, replay)
        cells = self.state(partial, answers)
        found = Ranged(partial, cells, place, place + 1)
        # every answer is one row, so that the combined state of each range is the row itself
        found.__dict__["value"] = cells
        return found

    def state(self, partial: Partial, answers: Answers) -> Columns:  # noqa: C901, PLR0911 - a line each
        """The state of one partial in each answer."""
        counts, values = answers.counts, answers.floats
        match partial:
            case RowCount():
                return (counts[0],)
            case ValidCount(columns):
                return (counts[self.counts.index(columns)],)
            case IntSum(column):
                high, low = answers.sums[self.sums.index(column)]
                return high, low
            case FloatSum(column):
                return (values[self._float("value", column)][0],)
            case LogSum(column):
                return (values[self._float("log", column)][0],)
            case WeightedSum(value, weight):
                n = counts[self.counts.index((value, weight))]
                total = values[self._float("product", value, weight)][0]
                return n, total, values[self._float("weight", weight, value)][0]
            case Moments(column):
                n = counts[self.counts.index((column,))]
                total, square = values[self._float("value", column)], values[self._float("square", column)]
                return (n, *moments(n, total, square))
            case Min(column):
                return (answers.codes[self.extremes.index((column, False))],)
            case Max(column):
                return (answers.codes[self.extremes.index((column, True))],)
            case ValueCounts(column):
                return (answers.runs[self.values.index(column)],)
        raise TypeError(f"{type(partial).__name__} cannot be rolled")

    def _float(self, kind: str, *columns: str) -> int:
        return self.floats.index((kind, columns))


def _present(tuples: Tuples, columns: tuple[str, ...], values: Floats) -> Floats:
    mask = all_valid(tuples, columns)
    return values if mask is None else np.where(mask, values, 0.0)


def _value(tuples: Tuples, columns: tuple[str, ...]) -> tuple[Floats, ...]:
    return (floats(filled(tuples, columns[0], 0)),)


def _weight(tuples: Tuples, columns: tuple[str, ...]) -> tuple[Floats, ...]:
    return (_present(tuples, columns, floats(tuples.columns[columns[0]].values)),)


def _product(tuples: Tuples, columns: tuple[str, ...]) -> tuple[Floats, ...]:
    with np.errstate(all="ignore"):
        a, b = (floats(tuples.columns[column].values) for column in columns)
        return (_present(tuples, columns, a * b),)


def _log(tuples: Tuples, columns: tuple[str, ...]) -> tuple[Floats, ...]:
    with np.errstate(all="ignore"):
        return (_present(tuples, columns, np.log(floats(tuples.columns[columns[0]].values))),)


def _square(tuples: Tuples, columns: tuple[str, ...]) -> tuple[Floats, ...]:
    """The square and its rounding error, which together are exact (Dekker 1971)."""
    value = floats(filled(tuples, columns[0], 0))
    with np.errstate(all="ignore"):
        square, error = two_product(value, value)
    return square, np.where(np.isfinite(error), error, 0.0)


_KINDS: dict[str, Callable[[Tuples, tuple[str, ...]], tuple[Floats, ...]]] = {
    "value": _value,
    "weight": _weight,
    "product": _product,
    "log": _log,
    "square": _square,
}


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """A product and its rounding error."""
    product = a * b
    a_high = _SPLIT * a - (_SPLIT * a - a)
    b_high = _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def moments(n: Ints, total: Floats, square: Floats) -> tuple[Floats, Floats]:
    """Mean and sum of squared deviations from exact sums, each a pair of floats.

    The difference cancels the leading digits, so it is taken on pairs: twice the digits of a float.
    """
    with np.errstate(all="ignore"):
        size = np.maximum(n, 1).astype(np.float64)
        mean = total[0] / size
        # total**2 / n as a pair: the mean's own rounding error is corrected once
        product, error = two_product(mean, size)
        left = (total[0] - product - error + total[1]) / size
        high, low = two_product(mean, total[0])
        low = low + mean * total[1] + left * total[0]
        spread = (square[0] - high) - low + square[1]
        broken = ~np.isfinite(total[0]) | ~np.isfinite(square[0])
        return np.where(broken, np.nan, mean), np.where(broken, np.nan, np.maximum(spread, 0.0))


def fold_slices(feed: Feed, rows: Lifted, target: Ints, heads: Ints) -> Answers:
    """One row for each run of rows, whose floats go to the sums of `target`; exact."""
    n = len(feed.counts)
    ints = np.add.reduceat(rows.ints, heads, axis=1) if len(heads) else rows.ints[:, :0]
    high, low = ints[n::2], ints[n + 1 :: 2]
    sums = np.stack([high + (low >> 32), low & LOW], axis=1)
    first, second = sum_runs(rows.bits, heads, target, len(feed.floats))
    codes = np.empty((len(feed.extremes), len(heads)), np.int64)
    for j, (_, largest) in enumerate(feed.extremes):
        reduce, none = (np.maximum, LEAST) if largest else (np.minimum, LARGEST)
        if len(heads):
            codes[j] = reduce.reduceat(np.where(rows.has[j], rows.codes[j], none), heads)
    return Answers(ints[:n], sums, np.stack([first, second], axis=1), codes)
