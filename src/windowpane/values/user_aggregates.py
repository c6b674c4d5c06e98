"""A user's own aggregate: subclass `UserAggregate` and bring the arithmetic along."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from windowpane.values.aggregates import Algebra
from windowpane.values.errors import BadAggregate

if TYPE_CHECKING:
    import pyarrow as pa

Array = npt.NDArray[Any]
State = tuple[Array, ...]


class UserAggregate(ABC):
    """Lift tuples to partials, combine partials, lower them to results: whole arrays at a time.

    A partial is a tuple of arrays of one length, entry i belonging to tuple or slice i. Example, a mean:

        class Mean(UserAggregate):
            columns, algebra, type = ("price",), Algebra("algebraic"), pa.float64()

            def lift(self, price):
                return price.astype(float), np.ones(len(price))

            def combine(self, a, b):
                return a[0] + b[0], a[1] + b[1]

            def lower(self, partial):
                return partial[0] / partial[1]

            def identity(self):
                return 0.0, 0.0

    Tuples with a null in any of the columns are left out; a window without tuples gives null. Columns
    arrive as int64 (booleans; times, dates and durations in microseconds) or float64. Try `check_algebra`
    on a sample to find out whether the declared algebra is true.
    """

    columns: tuple[str, ...]
    algebra: Algebra
    type: pa.DataType
    """The Arrow type of the results."""
    output: str | None = None

    @property
    def function(self) -> str:
        """The name of the class in lower case."""
        return type(self).__name__.lower()

    @property
    def name(self) -> str:
        """The result column: class and columns, or what `named` said."""
        return self.output or "_".join((self.function, *self.columns))

    def named(self, output: str) -> Self:
        """The same aggregate with another name for its result column."""
        other = copy(self)
        object.__setattr__(other, "output", output)  # also where the subclass is a frozen dataclass
        return other

    @abstractmethod
    def lift(self, *arrays: Array) -> State:
        """The partial of each single tuple."""

    @abstractmethod
    def combine(self, a: State, b: State) -> State:
        """Entry by entry the partial of both; `a` comes first in time."""

    @abstractmethod
    def lower(self, partial: State) -> Array:
        """The results."""

    @abstractmethod
    def identity(self) -> tuple[Any, ...]:
        """The partial of no tuples, as scalars: neutral on both sides of `combine`."""

    def invert(self, a: State, b: State) -> State:
        """`a` without `b`, which is a part of it; needed only if the algebra says invertible."""
        raise NotImplementedError

    @property
    def can_invert(self) -> bool:
        """True if the subclass has an `invert`."""
        return type(self).invert is not UserAggregate.invert

    def identities(self, n: int) -> State:
        """The identity n times over. Text goes into object arrays: others would cut it to a fixed width."""
        parts = self.identity()
        return tuple(
            np.full(n, part, np.object_ if isinstance(part, str | bytes) else None) for part in parts
        )

    def lifted(self, *arrays: Array) -> State:
        """What `lift` gives, checked for its shape."""
        partial: object = self.lift(*arrays)
        wanted, size = len(self.identity()), len(arrays[0])
        if not isinstance(partial, tuple) or len(partial) != wanted:
            raise BadAggregate(
                f"{self.function}: identity() has {wanted} parts, but lift() gave {_shape(partial)}. "
                "Return a tuple with one array for each part."
            )
        for i, part in enumerate(partial):
            if np.shape(part) != (size,):
                raise BadAggregate(
                    f"{self.function}: lift() gave part {i} with shape {np.shape(part)} for {size} tuples. "
                    "Return one entry per tuple."
                )
        return tuple(part.astype(np.object_) if part.dtype.kind in "SU" else part for part in partial)


def _shape(partial: object) -> str:
    return f"{len(partial)}" if isinstance(partial, tuple) else f"a {type(partial).__name__}"


def need_associative(aggregate: UserAggregate) -> None:
    """Refuse an aggregate that says itself that partials cannot be shared."""
    if not aggregate.algebra.associative:
        raise BadAggregate(
            f"{aggregate.function} is declared as not associative. windowpane shares partials between "
            "windows, so the combine() of an aggregate must be associative. Keep more in the partial "
            "(a mean needs sum and count), or collect() the values and compute the result from the list."
        )
    if aggregate.algebra.invertible and not aggregate.can_invert:
        raise BadAggregate(
            f"{aggregate.function} is declared invertible but has no invert(). "
            "Add invert(a, b), or declare invertible=False."
        )
