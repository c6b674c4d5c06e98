"""The least average staleness that any policy can have behind an overloaded consumer, for a few keys.

Time is cut into slots, of which a service takes one or several. The age of a key is the number of slots since
its first update that was not served, counting that of the update. With few keys that is a decision process of
few enough states to solve, by value iteration: over all policies that know the rates and the ages, also those
that let the consumer pause. Keys that update alike need no names, only sorted ages, so that ten keys in two
classes can be solved too. Time and memory grow with the product over classes of C(keys + oldest age, keys).

Howard: Dynamic Programming and Markov Processes, 1960; for actions that last, Schweitzer 1971.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windowpane.core.arrays import Floats, Ints
from windowpane.core.kernels.expectation import expect

_DAMPING = 0.9
"""Below 1, so that the values of states do not swing."""
_CLOSE = 1e-4
"""The relative error at which values are good enough."""


def optimum(
    rates: Sequence[float] | Floats, cost: float, *, application: bool, slots: int = 4, services: int = 10
) -> float:
    """The least average over time and keys of their application (else queue) staleness.

    The keys update at random, `rates` times a unit of time each, and a service takes `cost`. It is solved for
    `slots` and for twice as many slots in a service, and the error of slots is taken off as if it halved. It
    falls faster, so the result is rather too small, by 0.2% or so for four slots. Ages of more than
    `services` services count as that: too small a number makes the result too small.
    """
    coarse, fine = (
        in_slots(rates, cost, application=application, slots=n, services=services)[0]
        for n in (slots, 2 * slots)
    )
    return 2.0 * fine - coarse


def in_slots(
    rates: Sequence[float] | Floats,
    cost: float,
    *,
    application: bool,
    slots: int = 1,
    services: int = 10,
    prices: Iterable[float] = (),
) -> tuple[float, list[float]]:
    """The least staleness if the consumer looks at its queue at the ends of slots only.

    Then that of one policy at some `prices`: the key that is most overdue is served, by when a service is
    `due`.
    """
    known, counts = np.unique(np.asarray(rates, np.float64), return_counts=True)
    alike = [_Alike(rate * cost / slots, n, slots * services) for rate, n in zip(known, counts, strict=True)]
    process, scale = _Process(alike, slots, application), cost / slots
    least = process.solve()
    found = [process.solve(price / scale**2) for price in prices]
    each = scale / int(counts.sum())
    return least * each, [one * each for one in found]


def due(rates: Floats, price: float) -> Floats:
    """The wait w at which what a service saves, w * w / 2 + w / rate, reaches its price."""
    gaps = 1.0 / rates
    return np.asarray(2.0 * price / (gaps + np.sqrt(gaps * gaps + 2.0 * price)))


class _Chances(NamedTuple):
    """Where each state leads: entries from starts[i] to starts[i + 1], a state and its odds each."""

    starts: Ints
    columns: Ints
    odds: Floats


class _Alike:
    """Keys that update `rate` times a slot each. A state is their ages, sorted; 0 is fresh."""

    def __init__(self, rate: float, keys: int, oldest: int) -> None:
        self._rate, self._keys, self._most = rate, keys, oldest
        ages = list(combinations_with_replacement(range(oldest + 1), keys))
        self._ages: Ints = np.asarray(ages, np.int64).reshape(-1, keys)
        self.oldest: Ints = self._ages[:, -1]
        self._served = self._ages.copy()
        self._served[:, -1] = 0
        self._codes = self._code(self._ages)  # rising, as the states are in order
        # how long ago an update was, at the end of its slot
        self._young = 1.0 - 1.0 / rate + 1.0 / np.expm1(rate)

    def overdue(self, price: float) -> Floats:
        """How long the service of the oldest key is overdue; -inf where none waits."""
        late: Floats = self.oldest - 1.0 + self._young - due(np.asarray(self._rate), price)
        late[self.oldest == 0] = -np.inf
        return late

    def staleness(self, slots: int) -> Floats:
        """The staleness of all keys if none is served, summed over some slots."""
        summed: Floats = self._each(slots)[self._ages].sum(axis=1)
        return summed

    def saved(self, slots: int) -> Floats:
        """What is taken off that sum where the oldest key is fresh from the beginning."""
        each = self._each(slots)
        more: Floats = each[self.oldest] - each[0]
        return more

    def _each(self, slots: int) -> Floats:
        """The staleness of one key over some slots, by its age before them."""
        summed: Floats = slots * (np.arange(self._most + 1.0) - 1.0 + self._young) + slots * slots / 2.0
        span = self._rate * slots
        summed[0] = (span * span / 2.0 - span - np.expm1(-span)) / self._rate**2
        return summed

    def later(self, slots: int, *, served: bool = False) -> _Chances:
        """The states some slots later; `served`: the oldest key is fresh from the beginning."""
        ages = self._served if served else self._ages
        fresh = np.count_nonzero(ages == 0, axis=1)
        first = np.exp(-self._rate * np.arange(slots)) * -np.expm1(-self._rate)
        odds = np.concatenate([[1.0 - first.sum()], first[::-1]])  # of each age of a key that was fresh
        aged = np.where(ages > 0, np.minimum(ages + slots, self._most), 0)
        aged.sort(axis=1)  # those that were fresh come first
        found: list[tuple[Ints, Ints, Floats]] = []
        for n in range(self._keys + 1):
            states = np.flatnonzero(fresh == n)
            for young in combinations_with_replacement(range(slots + 1), n):
                after = aged[states]
                after[:, :n] = young
                after.sort(axis=1)
                columns = np.searchsorted(self._codes, self._code(after))
                found.append((states, columns, np.full(len(states), _ways(young) * odds[list(young)].prod())))
        rows, columns, chances = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(rows, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(ages)))])
        return _Chances(starts, columns[order], chances[order])

    def _code(self, ages: Ints) -> Ints:
        """A number for each state, in their order."""
        codes: Ints = ages @ (self._most + 1) ** np.arange(self._keys)[::-1]
        return codes


def _ways(drawn: Sequence[int]) -> int:
    """In how many orders some numbers can be drawn."""
    ways = factorial(len(drawn))
    for number in set(drawn):
        ways //= factorial(drawn.count(number))
    return ways


class _Process:
    """A state is that of every class of keys: an array of values has an axis for each."""

    def __init__(self, alike: list[_Alike], slots: int, application: bool) -> None:  # noqa: FBT001 - within this file
        self._alike, self._slots, self._kinds = alike, slots, range(len(alike))
        self._paused = [one.later(1) for one in alike]
        self._waited = [one.later(slots) for one in alike]
        self._served = [one.later(slots, served=True) for one in alike]
        self._fresh = [self._along(kind, one.oldest == 0) for kind, one in enumerate(alike)]
        self._pausing = sum(self._along(kind, one.staleness(1)) for kind, one in enumerate(alike))
        waiting = sum(self._along(kind, one.staleness(slots)) for kind, one in enumerate(alike))
        # the queue is rid of a tuple when its service begins, the application of the old state when it ends
        self._serving = [
            waiting - (0.0 if application else self._along(kind, one.saved(slots)))
            for kind, one in enumerate(alike)
        ]
        self._values = np.zeros([len(one.oldest) for one in alike])

    def solve(self, price: float | None = None) -> float:
        """The average staleness of all keys together: what the values of all states grow by in a slot.

        The values of the policy before are a good start for the next one.
        """
        choice = None if price is None else self._most_overdue(price)
        while True:
            change = self._change(self._values, choice)
            low, high = float(change.min()), float(change.max())
            if high - low <= _CLOSE * high:
                return (low + high) / 2.0
            self._values += change
            self._values -= self._values.flat[0]

    def _change(self, values: Floats, choice: NDArray[np.int8] | None) -> Floats:
        """A round: by how much the best choice in each state, or that of the policy, changes its value."""
        best = self._pausing + _DAMPING * (self._later(values, self._paused) - values)
        for kind, fresh in enumerate(self._fresh):
            chances = [*self._waited]
            chances[kind] = self._served[kind]
            served = self._serving[kind] + _DAMPING * (self._later(values, chances) - values)
            served /= self._slots
            if choice is None:
                best = np.where(fresh, best, np.minimum(best, served))
            else:
                best = np.where(choice == kind, served, best)
        return best

    def _later(self, values: Floats, chances: list[_Chances]) -> Floats:
        """What is expected of values after a step, of which the chances of each class are given."""
        for kind in self._kinds:
            shape = values.shape
            lined = values.reshape(int(np.prod(shape[:kind])), shape[kind], -1)
            out = np.empty_like(lined)
            expect(lined, *chances[kind], out)
            values = out.reshape(shape)
        return values

    def _most_overdue(self, price: float) -> NDArray[np.int8]:
        """The class whose oldest key is served; -1 where no key waits."""
        top, choice = np.full(self._values.shape, -np.inf), np.full(self._values.shape, np.int8(-1))
        for kind, one in enumerate(self._alike):
            overdue = self._along(kind, one.overdue(price))
            choice[overdue > top] = kind
            top = np.maximum(overdue, top)
        return choice

    def _along(self, kind: int, of_states: Floats) -> Floats:
        """An array by the state of one class, in the place of its axis."""
        return of_states.reshape([-1 if kind == other else 1 for other in self._kinds])
