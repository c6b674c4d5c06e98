"""Sketches of the datasketches library: one call per row that changed, never one per tuple.

A cell is the serialised sketch, or None where there is none: bytes cannot be changed by accident, and
state is stored as it is.
"""
# ruff: noqa: D102  (base.py says what the methods of a partial do)

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import datasketches
import numpy as np

from windowpane.core.arrays import Columns, Ints, Tuples, Values
from windowpane.core.kernels.folds import count
from windowpane.core.partials.base import Partial
from windowpane.core.partials.counts import plain
from windowpane.core.partials.reading import floats, group, order_of, present, present_values
from windowpane.core.partials.runs import fold_runs
from windowpane.core.partials.tree import combine_ranges

_FEW = 8
"""Mean length of ranges up to which one union per range beats a tree of unions."""


class _Sketch(Partial):
    """State: one column of bytes or None."""

    @abstractmethod
    def union(self, sketches: Iterable[bytes]) -> bytes:
        """One sketch for all of these; at least one is given."""

    def identity(self, n: int) -> Columns:
        return (np.full(n, None, np.object_),)

    def combine(self, a: Columns, b: Columns) -> Columns:
        pairs = zip(plain(a, 0), plain(b, 0), strict=True)
        return (_cells([y if x is None else x if y is None else self.union((x, y)) for x, y in pairs]),)

    def ranges(self, columns: Columns, low: Ints, high: Ints) -> Columns:
        if int((high - low).sum()) > _FEW * len(low):
            return combine_ranges(self.combine, columns, low, high)
        cells = plain(columns, 0)
        spans = ([x for x in cells[a:b] if x is not None] for a, b in zip(low, high, strict=True))
        return (_cells([self.union(span) if span else None for span in spans]),)


def _cells(sketches: list[bytes | None]) -> Values:
    out = np.empty(len(sketches), np.object_)
    out[:] = sketches
    return out


_SEED_HASH = struct.unpack_from("<H", datasketches.update_theta_sketch().compact().serialize(), 6)[0]
_FLAGS = 2 | 8 | 16  # read-only, compact, ordered
_MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def _hash(codes: Ints) -> Ints:
    """63 well-mixed bits (the finaliser of SplitMix64); never 0, which a theta sketch reserves."""
    x = codes.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in _MIXERS:
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    x = (x ^ (x >> np.uint64(31))) >> np.uint64(1)
    hashes: Ints = np.maximum(x, 1).view(np.int64)
    return hashes


@dataclass(frozen=True)
class Theta(_Sketch):
    """The 2**lg_k least hashes of the distinct values: a function of the set alone, in any grouping.

    The library updates a sketch value by value, so the sketch is written here in its own format
    (compact, ordered, version 3) and read, united and estimated by the library.
    """

    column: str
    lg_k: int = 12

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        kept, rows = present(tuples, rows, (self.column,))
        runs = fold_runs(_hash(np.ascontiguousarray(order_of(kept, self.column))), rows, n_rows)
        cells = np.full(n_rows, None, np.object_)
        for row in np.nonzero(runs.offsets[1:] > runs.offsets[:-1])[0]:
            cells[row] = self._write(runs.values[runs.offsets[row] : runs.offsets[row + 1]])
        return (cells,)

    def _write(self, hashes: Ints) -> bytes:
        """The sketch of sorted, distinct hashes: all that fit, and the first that does not as the bound."""
        room = 1 << self.lg_k
        words: list[int] = []
        if len(hashes) > 1:
            words.append(min(len(hashes), room))
        if len(hashes) > room:
            words.append(int(hashes[room]))
        head = struct.pack("<BBBBBBH", 1 + len(words), 3, 3, 0, 0, _FLAGS, _SEED_HASH)
        return head + struct.pack(f"<{len(words)}Q", *words) + hashes[:room].astype("<i8").tobytes()

    def union(self, sketches: Iterable[bytes]) -> bytes:
        union = datasketches.theta_union(self.lg_k)
        for sketch in sketches:
            union.update(datasketches.compact_theta_sketch.deserialize(sketch))
        result: bytes = union.get_result().serialize()
        return result


def estimate_distinct(cells: Values) -> Ints:
    """The estimate of each theta sketch; 0 where there is none."""
    read = datasketches.compact_theta_sketch.deserialize
    return np.array([0 if c is None else round(read(c).get_estimate()) for c in cells], np.int64)


@dataclass(frozen=True)
class Kll(_Sketch):
    """A KLL quantile sketch of the values that are numbers."""

    column: str
    k: int = 200

    def fold(self, tuples: Tuples, rows: Ints, n_rows: int) -> Columns:
        values, rows = present_values(tuples, rows, self.column)
        order = group(rows, n_rows)
        values = floats(values if order is None else values[order])
        ends = np.cumsum(count(rows, n_rows))
        cells = np.full(n_rows, None, np.object_)
        for row in np.nonzero(np.diff(ends, prepend=0))[0]:
            cells[row] = self._write(values[ends[row - 1] if row else 0 : ends[row]])
        return (cells,)

    def _write(self, values: Values) -> bytes:
        sketch = datasketches.kll_doubles_sketch(self.k)
        sketch.update(values if values.flags.writeable else values.copy())  # it takes no read-only arrays
        written: bytes = sketch.serialize()
        return written

    def union(self, sketches: Iterable[bytes]) -> bytes:
        result: Any = datasketches.kll_doubles_sketch(self.k)
        for sketch in sketches:
            result.merge(datasketches.kll_doubles_sketch.deserialize(sketch))
        written: bytes = result.serialize()
        return written


def estimate_quantiles(cells: Values, shares: tuple[float, ...]) -> Values:
    """One row of quantiles for each KLL sketch; NaN where there is none or it is empty."""
    out = np.full((len(cells), len(shares)), np.nan)
    for i, cell in enumerate(cells):
        sketch = None if cell is None else datasketches.kll_doubles_sketch.deserialize(cell)
        if sketch is not None and not sketch.is_empty():
            out[i] = sketch.get_quantiles(list(shares), True)  # noqa: FBT003 - the library takes no keyword
    return out
