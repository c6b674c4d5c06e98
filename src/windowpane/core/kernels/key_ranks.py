"""What the service of a key is worth: its rank, a parabola in time that stands for a while.

Kernels take the record of one key: Numba counts references to arrays that are passed, which costs more than
the arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windowpane.core.arrays import Floats
from windowpane.core.jit import kernel
from windowpane.core.kernels.habits import ALL, EDGES, HAZARD, KIND, LEFT, PIECES, PRICE, TIMED, piece_of

_SHORT = piece_of(0.125)
"""Where updates are timed, silences below a quarter of the gap are not told apart: ranks stand longer."""
_SOON = 0.02
"""An update is not expected any sooner than in this part of the mean gap."""

RANKS = np.dtype(
    [
        ("since", np.float64),
        ("constant", np.float64),
        ("linear", np.float64),
        ("square", np.float64),
        ("silent", np.float64),  # since when the key has not updated
        ("gap", np.float64),  # the mean time between its updates
        ("seen", np.float64),  # how many updates that mean stands for
        ("price", np.float64),  # 1 / cost: savings are compared for each unit of the consumer's time
    ]
)
"""One parabola for each key: constant + w * (linear + w * square), where w is the time since `since`.

A key whose `gap` is above 0 is ranked by what its service saves: see `renew`. Others have fixed ranks.
"""
Ranks = np.recarray[Any, Any]
Rank = Any
"""The record of one key."""


@kernel
def renew(one: Rank, habits: Floats, now: float) -> float:
    """Rank a key by what its service saves, given how long it has been silent; until when that stands.

    Where a service has a price the rank is another one: see `_overdue` and `_timed`.

    A key that is served after a wait of w and stays fresh for another g on average has, over a cycle, the
    staleness w * w / 2 in the time w + g. The rank is the price of a service at which serving now and serving
    a moment later cost the same: w * w * (1 / h - 1 / 2) + w * g / h, where h is the hazard of an update,
    relative to the mean; a key that updates several times during one service has a hazard of 1 whatever its
    habits. For updates at random this is w * w / 2 + w / rate.
    """
    gap = one.gap
    if gap <= 0.0:
        return np.inf
    if habits[ALL, PRICE] > 0.0 and habits[ALL, KIND] != TIMED:
        return _overdue(one, habits[ALL, PRICE])
    piece = piece_of((now - one.silent) / gap)
    until: float = one.silent + gap * EDGES[piece]
    while until <= now:  # rounding
        piece += 1
        until = one.silent + gap * EDGES[piece]
    if habits[ALL, PRICE] > 0.0:
        piece = max(piece, _SHORT)
        until = one.silent + gap * EDGES[piece]
        return min(until, _timed(one, habits, piece, now))
    one.constant = 0.0
    # Habits do not matter to a key that updates several times during one service or while it waits.
    price, hazard, wait = one.price, habits[HAZARD, piece], (now - one.since) / gap
    if hazard < 1.0:
        wait = (wait / 4.0) ** 2
    share = price / (1.0 + (hazard - 1.0) / (1.0 + 1.0 / (price * gap) + wait))
    # The mean counts the silence so far, too: (gap * seen + silence) / seen.
    each = share * habits[LEFT, piece] / one.seen
    one.linear = each * max(gap * one.seen - (one.silent - one.since), 0.0)
    one.square = each + max(share - 0.5 * price, 0.0)
    return until


@kernel
def _overdue(one: Rank, price: float) -> float:
    """Rank a key that updates at random by how long its service is overdue; that stands while it waits.

    A service is due when what it saves for each unit of cost, w * w / 2 + w / rate, reaches the price.
    Serving another key first costs the wait beyond that for as long as it takes, so the key with the most of
    it for each unit of its own cost goes first.
    """
    # 1 / rate counts the silence so far, too: (gap * seen + silence) / seen.
    each = 1.0 / one.seen
    linear = max(one.gap - each * (one.silent - one.since), 0.0)
    worth = price / one.price
    due = 2.0 * worth / (linear + np.sqrt(linear * linear + (2.0 + 4.0 * each) * worth))
    one.constant = -due * one.price
    one.linear = one.price
    one.square = 0.0
    return np.inf


@kernel
def _timed(one: Rank, habits: Floats, piece: int, now: float) -> float:
    """Rank a key whose updates are more even than at random by how overdue its service is; until when.

    To serve it later costs staleness now, and puts off the time from when it needs the next service: by a
    mean gap if it waits for its next update, by a part of that if it waits for a moment in which an update
    may come. At the price of a service it pays to wait where each unit of that time costs less than `due`, so
    the rank is how much more than that it costs, by the cheaper of the two ways.
    """
    gap, cost, wait = one.gap, 1.0 / one.price, now - one.since
    worth = habits[ALL, PRICE] * cost
    due = 2.0 * worth / (gap + np.sqrt(gap * gap + 2.0 * worth))
    # A key that updates several times during one service may update at any moment, whatever its habits.
    rise, bend = 1.0 / (1.0 + (habits[HAZARD, piece] - 1.0) / (1.0 + cost / gap)), 0.0
    value = wait * rise
    other, rising, bending, stands = _next(habits, piece, gap, cost, wait, now - one.silent)
    if other < value or (other == value and rising < rise):
        other, value, rising, rise, bending, bend = value, other, rise, rising, bend, bending
    stands = min(stands, falls(other - value, rising - rise, bending - bend))
    price = one.price
    one.constant = price * (value - due - wait * (rise - wait * bend))
    one.linear = price * (rise - 2.0 * wait * bend)
    one.square = price * bend
    # Not less than a moment, lest rounding has the key ranked again and again.
    until: float = now + max(stands, 1e-9 * gap)
    return until


@kernel
def _next(
    habits: Floats, piece: int, gap: float, cost: float, wait: float, silence: float
) -> tuple[float, float, float, float]:
    """What it costs to wait for the next update, for each unit of time that this puts off; until when.

    That is a parabola: its value, rise and bend, and for how long it stands. It bends as the update comes
    nearer. A key cannot be served while another one is, so it waits as long as a service at least, in which
    several updates may come.
    """
    begin = EDGES[piece - 1] if piece > 0 else 0.0
    rest, stands = gap * (habits[LEFT, piece] + begin) - silence, np.inf
    nears = rest > _SOON * gap
    if nears:
        stands = rest - _SOON * gap
    else:
        rest = gap * max(habits[LEFT, min(piece + 1, PIECES - 1)], _SOON)
    if rest <= cost:
        came = 1.0 + np.floor((cost - rest) / gap)
        if nears:
            stands = min(stands, rest + came * gap - cost)
        slope = cost / (came * gap)
        return slope * (wait + 0.5 * cost), slope, 0.0, stands
    value = rest * (wait + 0.5 * rest) / gap
    if nears:
        return value, -wait / gap, -0.5 / gap, min(stands, rest - cost)
    return value, rest / gap, 0.0, stands


@kernel
def falls(lead: float, rise: float, bend: float) -> float:
    """When lead + rise * x + bend * x * x first falls below 0, for a lead of 0 or more."""
    after: float = np.inf
    inside = rise * rise - 4.0 * bend * lead
    if rise < 0.0 and inside >= 0.0:
        after = 2.0 * lead / (np.sqrt(inside) - rise)
    elif rise >= 0.0 and bend < 0.0:  # the same root, but no difference of numbers that are almost equal
        after = (np.sqrt(inside) + rise) / (-2.0 * bend)
    return after
