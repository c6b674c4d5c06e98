"""Quantiles, distinct and frequent values over ranges of value counts, without merging runs per range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.arrays import Floats, Ints, Values
from windowpane.core.columns import is_text
from windowpane.core.kernels.value_counts import walk_distinct, walk_frequent, walk_quantiles
from windowpane.core.lowering import Take, from_codes, lists, numbers_of
from windowpane.core.partials.base import Ranged
from windowpane.core.partials.runs import ragged, rank


@dataclass(frozen=True)
class _Walk:
    """Ranges of runs, in an order that changes few runs from one range to the next."""

    distinct: Ints
    ranks: Ints
    weights: Ints
    begin: Ints
    end: Ints
    order: Ints


def _prepare(ranged: Ranged) -> _Walk:
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
    w = _prepare(ranged)
    found = walk_distinct(w.ranks, w.weights, w.begin, w.end, w.order, max(1, len(w.distinct)))
    return pa.array(found, pa.int64())


def quantiles(ranged: Ranged, shares: tuple[float, ...], type_: pa.DataType) -> tuple[Floats, Values]:
    """One row of quantiles for each range, and where there are none."""
    w = _prepare(ranged)
    wanted = np.array(shares, np.float64)
    lower, upper, part = walk_quantiles(
        w.ranks, w.weights, w.begin, w.end, w.order, max(1, len(w.distinct)), wanted
    )
    values = numbers_of(w.distinct, type_).astype(np.float64)
    absent = lower[:, 0] < 0
    if len(values) == 0:
        return np.full(lower.shape, np.nan), absent
    a, b = values[lower], values[upper]
    with np.errstate(invalid="ignore", over="ignore"):
        between = a + (b - a) * part
    # Without this, infinity minus itself would spoil a quantile that needs no interpolation.
    return np.where((part == 0) | (a == b), a, between), absent


def frequent(
    ranged: Ranged, column: str, type_: pa.DataType, most: int | None, share: float, take: Take
) -> pa.Array:
    """Lists of (value, count), most frequent first, ties by value."""
    w = _prepare(ranged)
    values = take(column, w.distinct).cast(type_) if is_text(type_) else from_codes(w.distinct, type_)
    ranks = w.ranks
    if is_text(type_):
        # Ids come in the order of arrival; ties want the order of text.
        by_text = pc.sort_indices(_sortable(values))
        place = np.empty(len(values), np.int64)
        place[by_text.to_numpy()] = np.arange(len(values))
        ranks, values = place[ranks], values.take(by_text)
    n_ranks = max(1, len(values))
    limit = n_ranks if most is None else min(most, n_ranks)
    heads, sizes, found, counts = walk_frequent(
        ranks, w.weights, w.begin, w.end, w.order, n_ranks, limit, share
    )
    at = np.arange(sizes.sum()) + np.repeat(heads - np.cumsum(sizes) + sizes, sizes)
    items = pa.StructArray.from_arrays(
        [values.take(pa.array(found[at])), pa.array(counts[at], pa.int64())], names=["value", "count"]
    )
    return lists(sizes, items, w.begin == w.end)


def _sortable(values: pa.Array) -> pa.Array:
    """Arrow does not sort views."""
    if pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pa.types.is_binary_view(values.type) else values
