"""When does a key update again? Learned online: a mean for each key, and one shape of the gaps for all keys.

The gap between two updates of a key is counted relative to the key's mean gap, in a histogram that all keys
share. From it follow, for a key that has been silent for some time, the chance that it updates now (`hazard`)
and how long it is expected to stay silent (`left`), both relative to its mean. For updates at random both are
1 however long the silence; after a burst silence means a longer silence; a regular key is due.
"""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Floats
from windowpane.core.jit import kernel

PIECES = 10
"""Silences, relative to the mean gap, are told apart below 2**-10, 2**-8, ..., 1/4, 1/2, 1, 2, 4; above."""
EDGES: Floats = np.array([*4.0 ** np.arange(-5.0, 0.0), 0.5, 1.0, 2.0, 4.0, np.inf])
"""Where each piece of a silence ends."""
COUNT, TOTAL, HAZARD, LEFT, ALL = 0, 1, 2, 3, 4
"""The rows of a table of habits: by piece, gaps counted, their sum, what follows; numbers of all pieces."""
SEEN, KIND, MEAN, PRICE, SERVES, AGAIN, BATCHED, LIKE, COMMON = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""The cells of that last row: how many gaps were counted; which kind they are; what services saved of late,
on average; the price of a service that keys are ranked by, 0 where they are ranked without one; how many
services there were, and from how many on all keys may be looked at again; how many of the gaps were from one
batch of updates at one time to the next; the mean gap of all keys is as good as how many gaps of one key, and
what it is."""
BURSTS, RANDOM, TIMED = 0.0, 1.0, 2.0
"""Kinds: more uneven than gaps at random (or not known yet), about as uneven, or more even."""
FORGET = 1.0 / 256.0
"""How much of a key's past gaps one more update forgets."""
_PRIOR = 32.0
_EVERY = 256.0
_MOST = 16_384.0
_UNLIKE = 0.12
_EVEN, _UNEVEN = 1.6, 2.2
"""Updates are timed where the mean square of gaps is below the first of these times the square of their mean,
in bursts from the second on: by a clock it is 1, at random 2, and between where some keys have a clock."""
_SURE, _SURE_IN_BURSTS = 4.0, 1_024.0
"""The largest hazards. Few gaps must not decide alone, but a key in a burst can wait until it is over."""
_AT_RANDOM: Floats = -np.diff([1.0, *np.exp(-EDGES)])
"""How many of the gaps between updates at random lie in each piece."""


def new_habits() -> Floats:
    """Nothing known: as if a few gaps of a key that updates at random were seen."""
    edges = np.array([0.0, *EDGES[:-1]])
    above, beyond = np.exp(-edges), (edges + 1.0) * np.exp(-edges)
    habits = np.ones((5, PIECES))
    habits[COUNT] = -_PRIOR * np.diff([*above, 0.0])
    habits[TOTAL] = -_PRIOR * np.diff([*beyond, 0.0])
    habits[ALL] = 0.0
    return habits


_LEAST: Floats = 1e-6 * new_habits()[: TOTAL + 1]
"""What stays of the first guess for ever: a piece in which no gap ever fell would be 0 / 0 in the end."""


@kernel
def piece_of(silence: float) -> int:
    """The piece that a silence, relative to the mean gap, lies in."""
    piece = 0
    while silence >= EDGES[piece]:
        piece += 1
    return piece


@kernel
def notice(habits: Floats, gap: float) -> None:
    """Count one gap, relative to the mean of its key; every now and then draw the conclusions."""
    piece = piece_of(gap)
    habits[COUNT, piece] += 1.0
    habits[TOTAL, piece] += gap
    habits[ALL, SEEN] += 1.0
    if habits[ALL, SEEN] % _EVERY == 0.0:
        _conclude(habits)
        if habits[ALL, SEEN] >= _MOST:
            habits[: TOTAL + 1] = np.maximum(0.5 * habits[: TOTAL + 1], _LEAST)
            habits[ALL, SEEN] *= 0.5
            habits[ALL, BATCHED] *= 0.5


@kernel
def _conclude(habits: Floats) -> None:
    """Hazard and expected rest of a silence in each piece, from the gaps counted."""
    mean = habits[TOTAL].sum() / habits[COUNT].sum()
    unlike = 0.5 * np.abs(habits[COUNT] / habits[COUNT].sum() - _AT_RANDOM).sum()
    spread = spread_of(habits)
    # A key that is in each batch with some chance has gaps more even than at random, but follows no clock.
    even = 1.0 + (_EVEN - 1.0) * (1.0 - habits[ALL, BATCHED] / habits[ALL, SEEN])
    habits[ALL, KIND] = RANDOM
    if unlike >= _UNLIKE and not even <= spread < _UNEVEN:
        habits[ALL, KIND] = TIMED if spread < even else BURSTS
    most = _SURE_IN_BURSTS if habits[ALL, KIND] == BURSTS else _SURE
    longer, time = 0.0, 0.0
    for piece in range(PIECES - 1, -1, -1):
        begin = EDGES[piece - 1] if piece > 0 else 0.0
        spent = habits[TOTAL, piece] - habits[COUNT, piece] * begin
        if piece < PIECES - 1:
            spent += longer * (EDGES[piece] - begin)
        longer += habits[COUNT, piece]
        time += habits[TOTAL, piece]
        habits[LEFT, piece] = (time / longer - begin) / mean
        habits[HAZARD, piece] = min(max(mean * habits[COUNT, piece] / spent, 0.125), most)


@kernel
def spread_of(habits: Floats) -> float:
    """The mean square of gaps, relative to the squared mean, as far as the histogram tells."""
    mean = habits[TOTAL].sum() / habits[COUNT].sum()
    spread: float = (habits[TOTAL] ** 2 / habits[COUNT]).sum() / habits[TOTAL].sum() / mean
    return spread
