"""A kinetic tournament: which waiting key ranks highest now, without looking at all of them.

The rank of a waiting key is a parabola in time, renewed when the key has been silent for long enough. A tree
holds at every node the winner of its two children and the time until which all winners below it are sure to
stand (the next crossing of two parabolas that met there, or the renewal of one). Time never goes back, so
asking for the winner only repairs what has run out. With fixed ranks nothing ever does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.habits import (
    AGAIN,
    ALL,
    BURSTS,
    EDGES,
    HAZARD,
    KIND,
    LEFT,
    MEAN,
    PIECES,
    PRICE,
    SERVES,
    TIMED,
    piece_of,
)

NOBODY = -1
RECENT = 512.0
"""How many services the mean of what they saved goes back."""
PART = 0.85
"""The price of a service, as a part of that mean: found by trial (docs/decisions/0015)."""
STEP = 1.25
"""The price in use is changed when it is off by more than this factor, as that ranks all keys anew."""
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


class Tournament(NamedTuple):
    """A binary tree in arrays: node n has the children 2n and 2n + 1; the leaves are the second half."""

    winner: Ints
    until: Floats
    stack: Ints
    looked: Ints
    """How many keys were looked at so far (one number)."""
    stamps: Ints
    """The last batch in which each key was touched; at the end, how many batches there were."""


def tournament(keys: int) -> Tournament:
    """An empty tree with room for at least this many keys."""
    leaves = 1 << max(keys - 1, 1).bit_length()
    return Tournament(
        np.full(2 * leaves, NOBODY, np.int64),
        np.full(2 * leaves, np.inf),
        np.zeros(4 * (leaves.bit_length() + 1), np.int64),
        np.zeros(1, np.int64),
        np.zeros(leaves + 1, np.int64),
    )


@kernel
def rank(ranks: Ranks, key: int, now: float) -> float:
    """The value of a key's parabola."""
    w = now - ranks.since[key]
    value: float = ranks.constant[key] + w * (ranks.linear[key] + w * ranks.square[key])
    return value


@kernel
def renew(ranks: Ranks, habits: Floats, key: int, now: float) -> float:
    """Rank a key by what its service saves, given how long it has been silent; until when that stands.

    Where a service has a price the rank is another one: see `_overdue` and `_timed`.

    A key that is served after a wait of w and stays fresh for another g on average has, over a cycle, the
    staleness w * w / 2 in the time w + g. The rank is the price of a service at which serving now and serving
    a moment later cost the same: w * w * (1 / h - 1 / 2) + w * g / h, where h is the hazard of an update,
    relative to the mean; a key that updates several times during one service has a hazard of 1 whatever its
    habits. For updates at random this is w * w / 2 + w / rate.
    """
    gap = ranks.gap[key]
    if gap <= 0.0:
        return np.inf
    if habits[ALL, PRICE] > 0.0 and habits[ALL, KIND] != TIMED:
        return _overdue(ranks, key, habits[ALL, PRICE])
    piece = piece_of((now - ranks.silent[key]) / gap)
    until: float = ranks.silent[key] + gap * EDGES[piece]
    while until <= now:  # rounding
        piece += 1
        until = ranks.silent[key] + gap * EDGES[piece]
    if habits[ALL, PRICE] > 0.0:
        piece = max(piece, _SHORT)
        until = ranks.silent[key] + gap * EDGES[piece]
        return min(until, _timed(ranks, habits, key, piece, now))
    ranks.constant[key] = 0.0
    # Habits do not matter to a key that updates several times during one service or while it waits.
    price, hazard, wait = ranks.price[key], habits[HAZARD, piece], (now - ranks.since[key]) / gap
    if hazard < 1.0:
        wait = (wait / 4.0) ** 2
    share = price / (1.0 + (hazard - 1.0) / (1.0 + 1.0 / (price * gap) + wait))
    # The mean counts the silence so far, too: (gap * seen + silence) / seen.
    each = share * habits[LEFT, piece] / ranks.seen[key]
    ranks.linear[key] = each * max(gap * ranks.seen[key] - (ranks.silent[key] - ranks.since[key]), 0.0)
    ranks.square[key] = each + max(share - 0.5 * price, 0.0)
    return until


@kernel
def _overdue(ranks: Ranks, key: int, price: float) -> float:
    """Rank a key that updates at random by how long its service is overdue; that stands while it waits.

    A service is due when what it saves for each unit of cost, w * w / 2 + w / rate, reaches the price.
    Serving another key first costs the wait beyond that for as long as it takes, so the key with the most of
    it for each unit of its own cost goes first.
    """
    # 1 / rate counts the silence so far, too: (gap * seen + silence) / seen.
    each = 1.0 / ranks.seen[key]
    linear = max(ranks.gap[key] - each * (ranks.silent[key] - ranks.since[key]), 0.0)
    worth = price / ranks.price[key]
    due = 2.0 * worth / (linear + np.sqrt(linear * linear + (2.0 + 4.0 * each) * worth))
    ranks.constant[key] = -due * ranks.price[key]
    ranks.linear[key] = ranks.price[key]
    ranks.square[key] = 0.0
    return np.inf


@kernel
def _timed(ranks: Ranks, habits: Floats, key: int, piece: int, now: float) -> float:
    """Rank a key whose updates are more even than at random by how overdue its service is; until when.

    To serve it later costs staleness now, and puts off the time from when it needs the next service: by a
    mean gap if it waits for its next update, by a part of that if it waits for a moment in which an update
    may come. At the price of a service it pays to wait where each unit of that time costs less than `due`, so
    the rank is how much more than that it costs, by the cheaper of the two ways.
    """
    gap, cost, wait = ranks.gap[key], 1.0 / ranks.price[key], now - ranks.since[key]
    worth = habits[ALL, PRICE] * cost
    due = 2.0 * worth / (gap + np.sqrt(gap * gap + 2.0 * worth))
    # A key that updates several times during one service may update at any moment, whatever its habits.
    rise, bend = 1.0 / (1.0 + (habits[HAZARD, piece] - 1.0) / (1.0 + cost / gap)), 0.0
    value = wait * rise
    other, rising, bending, stands = _next(habits, piece, gap, cost, wait, now - ranks.silent[key])
    if other < value or (other == value and rising < rise):
        other, value, rising, rise, bending, bend = value, other, rise, rising, bend, bending
    stands = min(stands, _falls(other - value, rising - rise, bending - bend))
    price = ranks.price[key]
    ranks.constant[key] = price * (value - due - wait * (rise - wait * bend))
    ranks.linear[key] = price * (rise - 2.0 * wait * bend)
    ranks.square[key] = price * bend
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
def _falls(lead: float, rise: float, bend: float) -> float:
    """When lead + rise * x + bend * x * x first falls below 0, for a lead of 0 or more."""
    after: float = np.inf
    inside = rise * rise - 4.0 * bend * lead
    if inside >= 0.0:
        below = np.sqrt(inside) - rise
        if below > 0.0:
            after = 2.0 * lead / below
    return after


@kernel
def _play(tree: Tournament, ranks: Ranks, node: int, now: float) -> None:
    """The winner of a node's children, and how long that stands."""
    left, right = 2 * node, 2 * node + 1
    a, b = tree.winner[left], tree.winner[right]
    until = min(tree.until[left], tree.until[right])
    if a < 0 or b < 0:
        tree.winner[node] = b if a < 0 else a
        tree.until[node] = until
        return
    tree.looked[0] += 2
    one, two = ranks[a], ranks[b]
    wa, wb = now - one.since, now - two.since
    va = one.constant + wa * (one.linear + wa * one.square)
    vb = two.constant + wb * (two.linear + wb * two.square)
    da, db = one.linear + 2.0 * wa * one.square, two.linear + 2.0 * wb * two.square
    bend = one.square - two.square
    # Equal now: the one that rises faster, so that the next crossing is not at once. Then the smaller key.
    if vb > va or (vb == va and db > da):
        a, va, vb, da, db, bend = b, vb, va, db, da, -bend
    tree.winner[node] = a
    tree.until[node] = min(until, now + _falls(va - vb, da - db, bend))


@kernel
def place(tree: Tournament, ranks: Ranks, habits: Floats, key: int, now: float) -> None:
    """Let a key in, or tell the tree that its rank is another."""
    node = len(tree.winner) // 2 + key
    tree.winner[node] = key
    tree.until[node] = renew(ranks, habits, key, now)
    tree.looked[0] += 1
    node //= 2
    while node > 0:
        winner, until = tree.winner[node], tree.until[node]
        _play(tree, ranks, node, now)
        # Another key won here before and still does, for as long: nothing changes above.
        if tree.winner[node] == winner and winner != key and tree.until[node] == until:
            return
        node //= 2


@kernel
def build(tree: Tournament, ranks: Ranks, habits: Floats, waiting: Bools, now: float) -> None:
    """Let in every key that waits, at once, into an empty tree."""
    leaves = len(tree.winner) // 2
    for key in range(len(waiting)):
        if waiting[key]:
            tree.winner[leaves + key] = key
    _renew_all(tree, ranks, habits, now)


@kernel
def _renew_all(tree: Tournament, ranks: Ranks, habits: Floats, now: float) -> None:
    """Rank every key that waits, and play every game."""
    leaves = len(tree.winner) // 2
    tree.looked[0] += leaves
    for key in range(leaves):
        if tree.winner[leaves + key] >= 0:
            tree.until[leaves + key] = renew(ranks, habits, key, now)
    for node in range(leaves - 1, 0, -1):
        _play(tree, ranks, node, now)


@kernel
def learn_price(tree: Tournament, ranks: Ranks, habits: Floats, key: int, now: float) -> None:
    """A key was served: what that saved, for each unit of cost, counts in the price of later services.

    Where the price in use is too far off, all keys are ranked anew, but not again before as many services as
    keys by eight (or, at first, as there were so far): spread over them, that is a few keys for each.
    """
    if ranks.gap[key] <= 0.0:
        return
    wait = now - ranks.since[key]
    gap = ranks.gap[key] + (now - ranks.silent[key]) / ranks.seen[key]
    known = habits[ALL]
    known[SERVES] += 1.0
    saved = wait * (gap + 0.5 * wait) * ranks.price[key]
    known[MEAN] += (saved - known[MEAN]) / min(known[SERVES], RECENT)
    price = PART * known[MEAN] if known[KIND] != BURSTS else 0.0
    if known[SERVES] >= known[AGAIN] and not known[PRICE] <= STEP * price <= STEP * STEP * known[PRICE]:
        known[PRICE] = price
        known[AGAIN] = known[SERVES] + min(known[SERVES], 0.125 * (ranks.seen > 0.0).sum())
        tree.looked[0] += len(ranks)
        _renew_all(tree, ranks, habits, now)


@kernel
def remove(tree: Tournament, ranks: Ranks, key: int, now: float) -> None:
    """Let a key go."""
    node = len(tree.winner) // 2 + key
    tree.winner[node] = NOBODY
    tree.until[node] = np.inf
    node //= 2
    while node > 0:
        _play(tree, ranks, node, now)
        node //= 2


@kernel
def best(tree: Tournament, ranks: Ranks, habits: Floats, now: float) -> int:
    """The key with the highest rank now, or NOBODY. `now` must not be before that of any earlier call."""
    if tree.until[1] <= now:
        leaves = len(tree.winner) // 2
        depth = 1
        tree.stack[0] = 1
        while depth > 0:
            node = tree.stack[depth - 1]
            if node < 0:  # its children are repaired
                depth -= 1
                _play(tree, ranks, -node, now)
                continue
            tree.stack[depth - 1] = -node
            for child in range(2 * node, 2 * node + 2):
                if tree.until[child] > now:
                    continue
                if child >= leaves:
                    tree.until[child] = renew(ranks, habits, child - leaves, now)
                    tree.looked[0] += 1
                else:
                    tree.stack[depth] = child
                    depth += 1
    winner: int = tree.winner[1]
    return winner
