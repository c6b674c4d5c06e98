"""How far the mean gap of a key is drawn towards that of all keys, where updates come in bursts.

Bursts are few, so a mean gap that was learned from them is noisy: keys that are alike would be ranked by
chance. How much the gaps of a key vary tells how far the rates of keys would differ by chance alone. What
they differ by beyond that is real, and the less there is of it, the more the common mean counts (empirical
Bayes).
"""

from __future__ import annotations

from typing import Any

from windowpane.core.arrays import Floats
from windowpane.core.jit import kernel
from windowpane.core.kernels.habits import AGAIN, ALL, BURSTS, COMMON, KIND, LIKE, SEEN, SERVES, spread_of

_NOISE = 2.0
"""Gaps vary by more than their histogram tells, as it knows only the mean of each piece, and short ones come
in runs: by this much, found by trial (docs/decisions/0020)."""
_ALIKE = 0.01
"""The rates of keys are taken to differ by this at least (their variance, relative to the squared mean)."""
_FIRST = 256.0
"""How many gaps are counted before rates are compared: it is not known before how updates come."""


@kernel
def gap_of(gaps: float, weight: float, habits: Floats) -> tuple[float, float]:
    """The mean of a key's gaps, which sum up to `gaps`, and for how many updates it stands."""
    if habits[ALL, KIND] != BURSTS:
        return gaps / weight, weight
    seen = weight + habits[ALL, LIKE]
    return (gaps + habits[ALL, LIKE] * habits[ALL, COMMON]) / seen, seen


@kernel
def learn_common(keys: Any, habits: Floats, now: float) -> int:
    """Compare the rates of all keys, if it is time to; how many keys were looked at.

    That is after an eighth as many services as there are keys (or, at first, as many as so far): spread over
    them, a few keys for each.
    """
    known = habits[ALL]
    if known[KIND] != BURSTS or known[SEEN] < _FIRST or known[SERVES] < known[AGAIN]:
        return 0
    count, rates, squares, noise = 0, 0.0, 0.0, 0.0
    for key in range(len(keys)):
        time = keys.gaps[key] + now - keys.arrived[key]  # that a key is silent counts, too
        if keys.weight[key] > 0.0 and time > 0.0:
            rate = keys.weight[key] / time
            count += 1
            rates += rate
            squares += rate * rate
            noise += rate * rate / keys.weight[key]
    known[AGAIN] = known[SERVES] + min(known[SERVES], 0.125 * count)
    if count > 1:
        noisy = _NOISE * max(spread_of(habits) - 1.0, 0.0)
        differ = (squares - noisy * noise) * count / (rates * rates) - 1.0
        known[LIKE] = noisy / max(differ, _ALIKE)
        known[COMMON] = count / rates
    return len(keys)
