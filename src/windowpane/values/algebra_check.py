"""Find a counterexample to an aggregate's declared algebra, by trying it on a sample.

A pass is no proof: it says that some hundred regroupings of this sample gave equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from windowpane.values.aggregates import Algebra
from windowpane.values.errors import BadAggregate
from windowpane.values.user_aggregates import State, UserAggregate, need_associative

Ints = npt.NDArray[np.int64]
Results = Sequence[Any]
_SIZES = (1, 2, 4)
"""Tuples in each part that is combined; counterexamples with few tuples are sought first."""


@dataclass(frozen=True)
class Subject:
    """An aggregate over a sample, reduced to what its laws speak of. States are opaque here."""

    name: str
    algebra: Algebra
    rows: list[tuple[Any, ...]]
    """The sample, to show in messages."""
    state: Any
    """The partials of the single tuples."""
    take: Callable[[Any, Ints], Any]
    combine: Callable[[Any, Any], Any]
    lower: Callable[[Any], Results]
    identity: Callable[[int], Any]
    invert: Callable[[Any, Any], Any] | None = None
    tolerance: float = 1e-9


@dataclass(frozen=True)
class _Trial:
    """Three parts of the sample in order of time, many times over."""

    subject: Subject
    positions: tuple[Ints, Ints, Ints]
    parts: tuple[Any, Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(_grow(self.subject, at) for at in self.positions))

    def expect_equal(self, law: str, left: Any, right: Any, remedy: str) -> None:
        """Raise for the first entry whose results differ."""
        got, wanted = self.subject.lower(left), self.subject.lower(right)
        for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
            if not _same(a, b, self.subject.tolerance):
                x, y, z = ([self.subject.rows[j] for j in at[i]] for at in self.positions)
                raise BadAggregate(
                    f"{self.subject.name} breaks the law {law}: with x = {_shown(x)}, y = {_shown(y)}, "
                    f"z = {_shown(z)} the left side is {a!r}, the right side {b!r}. {remedy}"
                )


def check_algebra(
    aggregate: UserAggregate, *sample_columns: Any, tries: int = 200, seed: int = 0, tolerance: float = 1e-9
) -> None:
    """Raise `BadAggregate` if the sample shows that the aggregate's declared algebra is wrong.

    `sample_columns` are arrays parallel to `aggregate.columns`; give values as odd as your data has.
    """
    need_associative(aggregate)
    arrays = [np.asarray(column) for column in sample_columns]
    if (
        len(arrays) != len(aggregate.columns)
        or len({len(array) for array in arrays}) != 1
        or not len(arrays[0])
    ):
        raise BadAggregate(
            f"{aggregate.function} reads the columns {', '.join(aggregate.columns)}, but the sample has "
            f"{len(arrays)} columns of lengths {[len(array) for array in arrays]}. "
            "Give as many arrays, all of one length above 0."
        )
    rows = list(zip(*(array.tolist() for array in arrays), strict=True))
    subject = Subject(
        aggregate.function, aggregate.algebra, rows, aggregate.lifted(*arrays), _take,
        aggregate.combine, lambda state: np.asarray(aggregate.lower(state)).tolist(),
        aggregate.identities,
        aggregate.invert if aggregate.can_invert else None, tolerance,
    )  # fmt: skip
    check_laws(subject, tries=tries, seed=seed)


def check_laws(subject: Subject, *, tries: int = 200, seed: int = 0) -> None:
    """Try every declared law on random parts of the sample."""
    random = np.random.default_rng(seed)
    for size in _SIZES:
        at = random.integers(0, len(subject.rows), (tries, 3 * size))
        at.sort(axis=1)  # parts come in the order of time, as a law for slices demands
        with np.errstate(all="ignore"):
            _check(_Trial(subject, (at[:, :size], at[:, size : 2 * size], at[:, 2 * size :])))


def _check(trial: _Trial) -> None:
    subject, (x, y, z) = trial.subject, trial.parts
    add = subject.combine
    trial.expect_equal(
        "(x + y) + z = x + (y + z), associative", add(add(x, y), z), add(x, add(y, z)),
        "Keep more in the partial, as a mean keeps sum and count: slices are combined in any grouping.",
    )  # fmt: skip
    nothing = subject.identity(len(trial.positions[0]))
    fix = "Let identity() give the partial of no tuples, such as 0 for a sum or infinity for a minimum."
    trial.expect_equal("identity + x = x", add(nothing, x), x, fix)
    trial.expect_equal("x + identity = x", add(x, nothing), x, fix)
    if subject.algebra.commutative:
        fix = "Declare Algebra(..., commutative=False), or make combine() symmetric."
        trial.expect_equal("x + y = y + x, commutative", add(x, y), add(y, x), fix)
        trial.expect_equal(
            "(x + y) + z = (y + x) + z, commutative", add(add(x, y), z), add(add(y, x), z), fix
        )
    if subject.algebra.invertible and subject.invert is not None:
        fix = "Declare Algebra(..., invertible=False), or let invert(a, b) take all of b out of a."
        trial.expect_equal("(x + y) - y = x, invertible", subject.invert(add(x, y), y), x, fix)
        without = add(subject.invert(add(x, y), y), z)
        trial.expect_equal("((x + y) - y) + z = x + z, invertible", without, add(x, z), fix)


def _grow(subject: Subject, at: Ints) -> Any:
    """The partial of each row of positions, combined from left to right."""
    state = subject.take(subject.state, at[:, 0])
    for step in range(1, at.shape[1]):
        state = subject.combine(state, subject.take(subject.state, at[:, step]))
    return state


def _take(state: State, at: Ints) -> State:
    return tuple(np.asarray(part)[at] for part in state)


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if isfinite(a) and isfinite(b):
            return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))
        return a == b or (isnan(a) and isnan(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key], tolerance) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _shown(rows: list[tuple[Any, ...]]) -> str:
    """The values of one column without the tuples around them."""
    return repr([row[0] if len(row) == 1 else row for row in rows])
