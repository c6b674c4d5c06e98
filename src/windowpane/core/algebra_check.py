"""The check of `values/algebra_check.py` for any aggregate: a user's own, or a built-in with its partials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windowpane.core.aggregates import BoundAggregate, bind
from windowpane.core.arrays import Columns, Ints, Tuples
from windowpane.core.columns import is_text, read_column
from windowpane.core.interner import Interner
from windowpane.core.partials.base import Ranged, length, take
from windowpane.values import algebra_check
from windowpane.values.aggregates import Aggregate
from windowpane.values.algebra_check import Subject, check_laws
from windowpane.values.errors import BadAggregate
from windowpane.values.user_aggregates import UserAggregate

States = tuple[Columns, ...]


def check_algebra(
    aggregate: Aggregate | UserAggregate,
    *sample_columns: Any,
    tries: int = 200,
    seed: int = 0,
    tolerance: float = 1e-9,
) -> None:
    """Raise `BadAggregate` if the sample shows that the aggregate's declared algebra is wrong.

    `sample_columns` are arrays parallel to `aggregate.columns`, in the order of time. A pass is no proof.
    """
    if isinstance(aggregate, UserAggregate):
        algebra_check.check_algebra(aggregate, *sample_columns, tries=tries, seed=seed, tolerance=tolerance)
        return
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in sample_columns]
    if not arrays or len({len(array) for array in arrays}) != 1 or len(arrays[0]) == 0:
        raise BadAggregate(
            f"{aggregate.function}: give at least one sample column, all of one length above 0."
        )
    check_laws(_subject(aggregate, arrays, tolerance), tries=tries, seed=seed)


def _subject(aggregate: Aggregate, arrays: list[pa.Array], tolerance: float) -> Subject:
    n = len(arrays[0])
    bound = bind(aggregate, dict(zip(aggregate.columns, (a.type for a in arrays), strict=False)))
    interners = {
        c: Interner(a.type) for c, a in zip(aggregate.columns, arrays, strict=False) if is_text(a.type)
    }
    columns = {
        c: read_column(a, c, interners.get(c)) for c, a in zip(aggregate.columns, arrays, strict=False)
    }
    tuples = Tuples(np.arange(n), np.zeros(n, np.int64), columns)
    return Subject(
        aggregate.function, aggregate.algebra, list(zip(*(a.to_pylist() for a in arrays), strict=True)),
        tuple(partial.fold(tuples, np.arange(n), n) for partial in bound.partials),
        lambda states, at: tuple(take(state, at) for state in states),
        lambda a, b: tuple(p.combine(x, y) for p, x, y in zip(bound.partials, a, b, strict=True)),
        lambda states: _lower(bound, states, interners),
        lambda size: tuple(partial.identity(size) for partial in bound.partials),
        tolerance=tolerance,
    )  # fmt: skip


def _lower(bound: BoundAggregate, states: States, interners: dict[str, Interner]) -> list[Any]:
    low: Ints = np.arange(length(states[0]))
    ranged = tuple(Ranged(p, state, low, low + 1) for p, state in zip(bound.partials, states, strict=True))
    results: list[Any] = bound.lower(ranged, lambda column, ids: interners[column].values(ids)).to_pylist()
    return results
