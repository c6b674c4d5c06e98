"""Bind an aggregate to the types of its columns: which partials it keeps, its type, how it is lowered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windowpane.core.binding import numbers, picks, sets
from windowpane.core.binding.parts import Parts, Types
from windowpane.core.column_types import need_ordered, plain_type
from windowpane.core.lowering import Lower, Take, none_of, spread
from windowpane.core.partials.base import Partial, Ranged, take
from windowpane.core.partials.counts import ValidCount, plain
from windowpane.core.partials.lifted import Lifted
from windowpane.values.aggregates import Aggregate
from windowpane.values.errors import BadAggregate
from windowpane.values.user_aggregates import UserAggregate, need_associative

_BINDERS = {**numbers.BINDERS, **picks.BINDERS, **sets.BINDERS}


@dataclass(frozen=True)
class BoundAggregate:
    """An aggregate that knows its types."""

    name: str
    partials: tuple[Partial, ...]
    type: pa.DataType
    _lower: Lower

    def lower(self, ranged: tuple[Ranged, ...], interner_take: Take) -> pa.Array:
        """The results, one per range; `ranged` is parallel to `partials`."""
        return self._lower(ranged, interner_take)


def bind(aggregate: Aggregate | UserAggregate, types: Types) -> BoundAggregate:
    """Choose partials and lowering by the types; columns must be known, wrong types are an error here."""
    known = {column: plain_type(types[column]) for column in aggregate.columns}
    if isinstance(aggregate, UserAggregate):
        return BoundAggregate(aggregate.name, *_user(aggregate, known))
    if aggregate.function not in _BINDERS:
        there_are = ", ".join(sorted(_BINDERS))
        raise BadAggregate(f"there is no aggregate {aggregate.function!r}; there are {there_are}.")
    return BoundAggregate(aggregate.name, *_BINDERS[aggregate.function](aggregate, known))


def _user(aggregate: UserAggregate, types: Types) -> Parts:
    need_associative(aggregate)
    if not aggregate.columns:
        raise BadAggregate(f"{aggregate.function} has no columns. Name at least one that lift() reads.")
    for column, type_ in types.items():
        need_ordered(aggregate.function, column, type_)

    def lower(r: tuple[Ranged, ...], _: Take) -> pa.Array:
        absent = none_of(r[0])
        kept = take(r[1].value, np.nonzero(~absent)[0])
        results = aggregate.lower(tuple(plain(kept, i) for i in range(len(kept))))
        return spread(pa.array(results, aggregate.type), absent)

    partials = (ValidCount(aggregate.columns), Lifted(aggregate, aggregate.algebra.commutative))
    return partials, aggregate.type, lower
