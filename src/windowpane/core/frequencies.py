"""Quantiles, distinct and frequent values over ranges of value counts, without merging runs per range."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.arrays import Bools, Floats, Ints, Values
from windowpane.core.columns import is_text
from windowpane.core.kernels.value_counts import walk_distinct, walk_frequent, walk_quantiles
from windowpane.core.lowering import Take, from_codes, lists, numbers_of
from windowpane.core.partials.base import Ranged
from windowpane.core.partials.runs import ragged, rank
from windowpane.core.replay import Replay, Replayed


@dataclass(frozen=True)
class _Walk:
    """Ranges of runs, in an order that changes few runs from one range to the next."""

    codes: Ints
    ranks: Ints
    weights: Ints
    begin: Ints
    end: Ints
    order: Ints

    def reordered(self, ranks: Ints) -> _Walk:
        return replace(self, codes=self.codes[np.argsort(ranks)], ranks=ranks[self.ranks])

    def distinct(self) -> Ints:
        return walk_distinct(self.ranks, self.weights, self.begin, self.end, self.order, self._n_ranks)

    def quantiles(self, shares: Floats) -> tuple[Ints, Ints, Floats]:
        return walk_quantiles(
            self.ranks, self.weights, self.begin, self.end, self.order, self._n_ranks, shares
        )

    def frequent(self, most: int, share: float) -> tuple[Ints, Ints, Ints, Ints, Bools]:
        found = walk_frequent(
            self.ranks, self.weights, self.begin, self.end, self.order, self._n_ranks, most, share
        )
        return *found, self.begin == self.end

    @property
    def _n_ranks(self) -> int:
        return max(1, len(self.codes))


def _prepare(ranged: Ranged) -> _Walk | Replay:
    return ranged.replay if isinstance(ranged, Replayed) else _walk(ranged)


def _walk(ranged: Ranged) -> _Walk:
    ranged = ranged.narrowed()
    cells = ragged(ranged.columns)
    begin, end = cells.offsets[ranged.low], cells.offsets[ranged.high]
    first, last = int(begin.min(initial=len(cells.values))), int(end.max(initial=0))
    last = max(first, last)
    distinct, ranks = rank(cells.values[first:last])
    begin, end = begin - first, end - first
    return _Walk(distinct, ranks, cells.weights[first:last], begin, end, _best_order(begin, end))


def _best_order(begin: Ints, end: Ints) -> Ints:
    """The cheapest of: as given, by end (windows that end together), by length (one sliding window)."""
    orders = (np.arange(len(begin)), np.lexsort((-begin, end)), np.lexsort((begin, end - begin)))
    return min(orders, key=lambda order: _cost(begin[order], end[order]))


def _cost(begin: Ints, end: Ints) -> int:
    overlap = np.minimum(end[1:], end[:-1]) - np.maximum(begin[1:], begin[:-1])
    sizes = end - begin
    return int((sizes[1:] + sizes[:-1] - 2 * np.maximum(overlap, 0)).sum())


def count_distinct(ranged: Ranged) -> pa.Array:
    """The number of distinct values of each range."""
    return pa.array(_prepare(ranged).distinct(), pa.int64())


def quantiles(ranged: Ranged, shares: tuple[float, ...], type_: pa.DataType) -> tuple[Floats, Values]:
    """One row of quantiles for each range, and where there are none."""
    w = _prepare(ranged)
    lower, upper, part = w.quantiles(np.array(shares, np.float64))
    absent = lower[:, 0] < 0
    if len(w.codes) == 0:
        return np.full(lower.shape, np.nan), absent
    a, b = (numbers_of(w.codes[at], type_).astype(np.float64) for at in (lower, upper))
    with np.errstate(invalid="ignore", over="ignore"):
        between = a + (b - a) * part
    # Without this, infinity minus itself would spoil a quantile that needs no interpolation.
    return np.where((part == 0) | (a == b), a, between), absent


def frequent(
    ranged: Ranged, column: str, type_: pa.DataType, most: int | None, share: float, take: Take
) -> pa.Array:
    """Lists of (value, count), most frequent first, ties by value."""
    w = _prepare(ranged)
    if is_text(type_):
        w = w.reordered(_order(w.codes, column, take))
    n = max(1, len(w.codes))
    heads, sizes, found, counts, empty = w.frequent(n if most is None else min(most, n), share)
    at = np.arange(sizes.sum()) + np.repeat(heads - np.cumsum(sizes) + sizes, sizes)
    codes = w.codes[found[at]]
    values = take(column, codes).cast(type_) if is_text(type_) else from_codes(codes, type_)
    items = pa.StructArray.from_arrays([values, pa.array(counts[at], pa.int64())], names=["value", "count"])
    return lists(sizes, items, empty)


def _order(ids: Ints, column: str, take: Take) -> Ints:
    """The ranks of texts by their ids, which come in the order of arrival; ties want the order of text."""
    known, at = np.unique(ids, return_inverse=True)
    by_text = pc.sort_indices(_sortable(take(column, known))).to_numpy()
    ranks = np.empty(len(known), np.int64)
    ranks[by_text] = np.arange(len(known))
    return ranks[at]


def _sortable(values: pa.Array) -> pa.Array:
    """Arrow does not sort views."""
    if pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pa.types.is_binary_view(values.type) else values
