"""The least average staleness that any policy can have behind an overloaded consumer, for a few keys.

Time is cut into slots, of which a service takes several. The age of a key is the number of slots since its
first update that was not served. With few keys that is a decision process of few enough states to solve, by
value iteration: over all policies that know the rates and the ages, also those that let the consumer pause.
Time and memory grow with (slots in all) ** keys.

Howard: Dynamic Programming and Markov Processes, 1960; for actions that last, Schweitzer 1971.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windowpane.core.arrays import Floats

_DAMPING = 0.9
"""Below 1, so that the values of states do not swing."""
_CLOSE = 1e-5


def optimum(
    rates: Sequence[float] | Floats, cost: float, *, application: bool, slots: int = 4, services: int = 10
) -> float:
    """The least average over time and keys of their application (else queue) staleness.

    The keys update at random, `rates` times a unit of time each, and a service takes `cost`. It is solved for
    `slots` and for twice as many slots in a service, and the error of slots is taken off, which halves.
    Ages of more than `services` services count as that: too small a number makes the result too small.
    """
    known = np.asarray(rates, np.float64)
    coarse, fine = (_Process(known, cost, n, n * services, application).least() for n in (slots, 2 * slots))
    return 2.0 * fine - coarse


class _Process:
    """A state is the ages of all keys, 0 if fresh: an array of values has an axis for each key."""

    def __init__(self, rates: Floats, cost: float, slots: int, oldest: int, application: bool) -> None:  # noqa: FBT001 - within this file
        self._slots, self._slot, self._oldest = slots, cost / slots, oldest
        self._odds = 1.0 - np.exp(-rates * self._slot)
        self._keys = range(len(rates))
        self._fresh = [self._along(key, np.arange(oldest + 1) == 0) for key in self._keys]
        waiting = [self._along(key, self._staleness(key, slots)) for key in self._keys]
        # the queue is rid of a tuple when its service begins, the application of the old state when it ends
        rest = [0.0 if application else wait.flat[0] - wait for wait in waiting]
        self._serving = [sum(waiting) + rest[key] for key in self._keys]
        self._pausing = sum(self._along(key, self._staleness(key, 1)) for key in self._keys)

    def least(self) -> float:
        """The average staleness of the best policy: what the values of all states grow by in a slot."""
        values = np.zeros((self._oldest + 1,) * len(self._keys))
        while True:
            better = self._improved(values)
            change = better - values
            low, high = float(change.min()), float(change.max())
            if high - low <= _CLOSE * high:
                return (low + high) / 2.0 * self._slot / len(self._keys)
            values = better - better.flat[0]

    def _improved(self, values: Floats) -> Floats:
        """A round: the value of the best choice in each state, for each slot that it takes."""
        later = values
        for key in self._keys:
            later = self._aged(later, key, 1)
        best = self._pausing + _DAMPING * (later - values)
        for key, fresh in enumerate(self._fresh):
            later = np.expand_dims(self._from_fresh(values, key, self._slots), key)
            for other in self._keys:
                later = later if other == key else self._aged(later, other, self._slots)
            served = (self._serving[key] + _DAMPING * (later - values)) / self._slots
            best = np.where(fresh, best, np.minimum(best, served))
        return values + best

    def _staleness(self, key: int, slots: int) -> Floats:
        """The staleness of a key that is not served, summed over some slots, by its age before them."""
        ages = np.arange(self._oldest + 1.0)
        summed = slots * ages + slots * (slots - 1) / 2.0
        left = np.arange(slots)[::-1]  # slots after that of the first update, of which a sixth counts
        summed[0] = self._first(key, slots) @ (1.0 / 6.0 + left * (left + 1.0) / 2.0)
        return summed

    def _first(self, key: int, slots: int) -> Floats:
        """How likely it is that the first update of a key comes in each of some slots."""
        odds: Floats = (1.0 - self._odds[key]) ** np.arange(slots) * self._odds[key]
        return odds

    def _aged(self, values: Floats, key: int, slots: int) -> Floats:
        """What is expected of values some slots later, as far as one key goes, by its age before."""
        later = values.take(np.minimum(np.arange(self._oldest + 1) + slots, self._oldest), axis=key)
        np.moveaxis(later, key, 0)[0] = self._from_fresh(values, key, slots)
        return later

    def _from_fresh(self, values: Floats, key: int, slots: int) -> Floats:
        """The same for a key that is fresh before: without its axis."""
        first = self._first(key, slots)
        odds = np.concatenate([[1.0 - first.sum()], first[::-1]])
        expected: Floats = np.tensordot(odds, values.take(np.arange(slots + 1), axis=key), (0, key))
        return expected

    def _along(self, key: int, of_ages: Floats) -> Floats:
        """An array by the age of one key, in the place of its axis."""
        return of_ages.reshape([-1 if key == other else 1 for other in self._keys])
