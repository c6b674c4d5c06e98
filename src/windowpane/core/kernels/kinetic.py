"""A kinetic tournament: which waiting key ranks highest now, without looking at all of them.

The rank of a waiting key is a parabola in time, renewed when the key has been silent for long enough. A tree
holds at every node the winner of its two children and the time until which all winners below it are sure to
stand (the next crossing of two parabolas that met there, or the renewal of one). Time never goes back, so
asking for the winner only repairs what has run out. With fixed ranks nothing ever does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.habits import AGAIN, ALL, BURSTS, KIND, MEAN, PRICE, SERVES
from windowpane.core.kernels.key_ranks import Rank, Ranks, falls, renew

NOBODY = -1
RECENT = 512.0
"""How many services the mean of what they saved goes back."""
PART = 0.85
"""The price of a service, as a part of that mean: found by trial (docs/decisions/0015)."""
STEP = 1.25
"""The price in use is changed when it is off by more than this factor, as that ranks all keys anew."""


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
def _game(a: int, b: int, one: Rank, two: Rank, now: float) -> tuple[int, float]:
    """Which of two keys, NOBODY if none, ranks higher, and until when; `one` and `two` are their ranks."""
    if a < 0 or b < 0:
        return max(a, b), np.inf
    wa, wb = now - one.since, now - two.since
    va = one.constant + wa * (one.linear + wa * one.square)
    vb = two.constant + wb * (two.linear + wb * two.square)
    da, db = one.linear + 2.0 * wa * one.square, two.linear + 2.0 * wb * two.square
    bend = one.square - two.square
    # Equal now: the one that rises faster, so that the next crossing is not at once. Then the smaller key.
    if vb > va or (vb == va and (db > da or (db == da and bend < 0.0))):
        return b, now + falls(vb - va, db - da, -bend)
    return a, now + falls(va - vb, da - db, bend)


@kernel
def place(tree: Tournament, ranks: Ranks, habits: Floats, key: int, now: float) -> None:
    """Let a key in, or tell the tree that its rank is another."""
    leaf = len(tree.winner) // 2 + key
    tree.winner[leaf] = key
    tree.until[leaf] = renew(ranks[key], habits, now)
    tree.looked[0] += 1
    _climb(tree, ranks, key, now)


@kernel
def remove(tree: Tournament, ranks: Ranks, key: int, now: float) -> None:
    """Let a key go."""
    leaf = len(tree.winner) // 2 + key
    tree.winner[leaf] = NOBODY
    tree.until[leaf] = np.inf
    _climb(tree, ranks, key, now)


@kernel
def _climb(tree: Tournament, ranks: Ranks, key: int, now: float) -> None:
    """Play the games above a key whose leaf has changed."""
    winners, untils = tree.winner, tree.until
    looked = 0
    node = (len(winners) // 2 + key) // 2
    while node > 0:
        before, stood = winners[node], untils[node]
        a, b = winners[2 * node], winners[2 * node + 1]
        winners[node], until = _game(a, b, ranks[a], ranks[b], now)
        untils[node] = min(until, untils[2 * node], untils[2 * node + 1])
        looked += 2 * (min(a, b) >= 0)
        # Another key won here before and still does, for as long: nothing changes above.
        if winners[node] == before and before != key and untils[node] == stood:
            break
        node //= 2
    tree.looked[0] += looked


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
    winners, untils = tree.winner, tree.until
    leaves = len(winners) // 2
    tree.looked[0] += leaves
    for key in range(leaves):
        if winners[leaves + key] >= 0:
            untils[leaves + key] = renew(ranks[key], habits, now)
    for node in range(leaves - 1, 0, -1):
        a, b = winners[2 * node], winners[2 * node + 1]
        winners[node], until = _game(a, b, ranks[a], ranks[b], now)
        untils[node] = min(until, untils[2 * node], untils[2 * node + 1])


@kernel
def learn_price(tree: Tournament, ranks: Ranks, habits: Floats, key: int, now: float) -> None:
    """A key was served: what that saved, for each unit of cost, counts in the price of later services.

    Where the price in use is too far off, all keys are ranked anew, but not again before as many services as
    keys by eight (or, at first, as there were so far): spread over them, that is a few keys for each.
    """
    one = ranks[key]
    if one.gap <= 0.0:
        return
    wait = now - one.since
    gap = one.gap + (now - one.silent) / one.seen
    known = habits[ALL]
    known[SERVES] += 1.0
    saved = wait * (gap + 0.5 * wait) * one.price
    known[MEAN] += (saved - known[MEAN]) / min(known[SERVES], RECENT)
    price = PART * known[MEAN] if known[KIND] != BURSTS else 0.0
    if known[SERVES] >= known[AGAIN] and not known[PRICE] <= STEP * price <= STEP * STEP * known[PRICE]:
        known[PRICE] = price
        known[AGAIN] = known[SERVES] + min(known[SERVES], 0.125 * (ranks.seen > 0.0).sum())
        tree.looked[0] += len(ranks)
        _renew_all(tree, ranks, habits, now)


@kernel
def best(tree: Tournament, ranks: Ranks, habits: Floats, now: float) -> int:
    """The key with the highest rank now, or NOBODY. `now` must not be before that of any earlier call."""
    if tree.until[1] <= now:
        _repair(tree, ranks, habits, now)
    winner: int = tree.winner[1]
    return winner


@kernel
def _repair(tree: Tournament, ranks: Ranks, habits: Floats, now: float) -> None:
    """Play the games anew that no longer stand, those below first."""
    winners, untils, stack = tree.winner, tree.until, tree.stack
    leaves, looked, depth = len(winners) // 2, 0, 1
    stack[0] = 1
    while depth > 0:
        node = stack[depth - 1]
        if node < 0:  # its children are repaired
            depth -= 1
            a, b = winners[-2 * node], winners[1 - 2 * node]
            winners[-node], until = _game(a, b, ranks[a], ranks[b], now)
            untils[-node] = min(until, untils[-2 * node], untils[1 - 2 * node])
            looked += 2 * (min(a, b) >= 0)
            continue
        stack[depth - 1] = -node
        for child in range(2 * node, 2 * node + 2):
            if untils[child] > now:
                continue
            if child >= leaves:
                untils[child] = renew(ranks[child - leaves], habits, now)
                looked += 1
            else:
                stack[depth] = child
                depth += 1
    tree.looked[0] += looked
