"""Batches with every kind of odd value, and what the tests of partials and aggregates do with them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import datasketches
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from windowpane.core.aggregates import bind
from windowpane.core.arrays import Column, Columns, Ragged, Tuples
from windowpane.core.columns import read_column
from windowpane.core.interner import Interner
from windowpane.core.partials.base import Ranged

LIMITS = [-(2**63), -(2**63) + 1, -(2**62), 2**62, 2**63 - 1]
INTS = [0, 1, -1, 2, 3, 100, 2**32, -(2**32) - 1]
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.25, 1000.0, np.nan, np.inf, -np.inf]
WORDS = ["", "a", "b", "ab", "é", "zz"]
TYPES = {"i": pa.int64(), "j": pa.int64(), "f": pa.float64(), "g": pa.float64(), "s": pa.string()}


@dataclass(frozen=True)
class Batch:
    """A batch of tuples, the same in Arrow, the row of each tuple, and the way back from ids to text."""

    tuples: Tuples
    table: dict[str, pa.Array]
    rows: np.ndarray
    n_rows: int
    take: Callable[[str, np.ndarray], pa.Array]

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, at: np.ndarray) -> "Batch":
        table = {name: array.take(pa.array(at)) for name, array in self.table.items()}
        return Batch(self.tuples.take(at), table, self.rows[at], self.n_rows, self.take)

    def fold(self, partial) -> Columns:
        return partial.fold(self.tuples, self.rows, self.n_rows)

    def lower(self, aggregate, low=None, high=None) -> list[Any]:
        low = np.arange(self.n_rows) if low is None else low
        high = low + 1 if high is None else high
        bound = bind(aggregate, TYPES)
        ranged = tuple(Ranged(p, self.fold(p), low, high) for p in bound.partials)
        results = bound.lower(ranged, self.take)
        results.validate(full=True)
        assert results.type == bound.type
        return results.to_pylist()


def make_batch(seed: int, n: int, n_rows: int, *, wide: bool = False, in_time: bool = True) -> Batch:
    """A batch drawn by a seed: hypothesis shrinks the sizes, numpy fills the columns quickly."""
    random = np.random.default_rng(seed)
    ints = INTS + LIMITS if wide else INTS
    drawn = {
        "i": [ints[k] for k in random.integers(0, len(ints), n)],
        "j": random.integers(0, 5, n).tolist(),
        "f": [FLOATS[k] for k in random.integers(0, len(FLOATS), n)],
        "g": np.round(random.normal(0, 100, n), 3).tolist(),
        "s": [WORDS[k] for k in random.integers(0, len(WORDS), n)],
    }
    nulls = {name: random.random(n) < random.choice([0, 0.2, 1], p=[0.5, 0.4, 0.1]) for name in drawn}
    table = {name: pa.array(values, TYPES[name], mask=nulls[name]) for name, values in drawn.items()}
    interner = Interner(pa.string())
    columns: dict[str, Column] = {name: read_column(array, name, interner) for name, array in table.items()}
    time = random.integers(0, n + 1, n)
    tuples = Tuples(np.sort(time) if in_time else time, np.zeros(n, np.int64), columns)
    rows = random.integers(0, n_rows, n)
    return Batch(tuples, table, rows, n_rows, lambda _, ids: interner.values(ids))


@st.composite
def batches(draw, most=60, rows=8, **options) -> Batch:
    sizes = draw(st.integers(0, most)), draw(st.integers(1, rows))
    return make_batch(draw(st.integers(0, 2**32)), *sizes, **options)


def copy(columns: Columns) -> Columns:
    return tuple(
        Ragged(c.offsets.copy(), c.values.copy(), c.weights.copy()) if isinstance(c, Ragged) else c.copy()
        for c in columns
    )


def assert_same(a: Columns, b: Columns) -> None:
    """Equal states: floats to rounding, KLL sketches by what they hold."""
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        if isinstance(x, Ragged):
            assert isinstance(y, Ragged)
            for field in ("offsets", "values", "weights"):
                np.testing.assert_array_equal(getattr(x, field), getattr(y, field))
        elif x.dtype == object:
            assert [sketch(c) for c in x] == [sketch(c) for c in y]
        elif x.dtype.kind == "f" or y.dtype.kind == "f":
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-6)
        else:
            np.testing.assert_array_equal(x, y)


def sketch(cell: Any) -> Any:
    if not isinstance(cell, bytes) or cell[2] == 3:  # the family byte: a theta sketch is canonical
        return cell
    kll = datasketches.kll_doubles_sketch.deserialize(cell)
    return kll.n, [] if kll.is_empty() else kll.get_quantiles([0.0, 0.25, 0.5, 1.0])
