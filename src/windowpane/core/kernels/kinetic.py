"""A kinetic tournament: which waiting key ranks highest now, without looking at all of them.

The rank of a key is a parabola in time, fixed while the key waits. A tree holds at every node the winner of
its two children and the time until which all winners below it are sure to stand (the next crossing of two
parabolas that met there). Time never goes back, so asking for the winner only repairs what has run out.
Policies with fixed ranks use the same tree; there nothing ever runs out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.jit import kernel

NOBODY = -1


class Ranks(NamedTuple):
    """One parabola for each key: constant + w * (linear + w * square), where w is the time since `since`."""

    since: Floats
    constant: Floats
    linear: Floats
    square: Floats


class Tournament(NamedTuple):
    """A binary tree in arrays: node n has the children 2n and 2n + 1; the leaves are the second half."""

    winner: Ints
    until: Floats
    stack: Ints
    looked: Ints
    """How many keys were looked at so far (one number)."""


def tournament(keys: int) -> Tournament:
    """An empty tree with room for at least this many keys."""
    leaves = 1 << max(keys - 1, 1).bit_length()
    return Tournament(
        np.full(2 * leaves, NOBODY, np.int64),
        np.full(2 * leaves, np.inf),
        np.zeros(4 * (leaves.bit_length() + 1), np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def rank(ranks: Ranks, key: int, now: float) -> float:
    """The value of a key's parabola."""
    w = now - ranks.since[key]
    value: float = ranks.constant[key] + w * (ranks.linear[key] + w * ranks.square[key])
    return value


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
    wa, wb = now - ranks.since[a], now - ranks.since[b]
    va = ranks.constant[a] + wa * (ranks.linear[a] + wa * ranks.square[a])
    vb = ranks.constant[b] + wb * (ranks.linear[b] + wb * ranks.square[b])
    da = ranks.linear[a] + 2.0 * wa * ranks.square[a]
    db = ranks.linear[b] + 2.0 * wb * ranks.square[b]
    # Equal now: the one that rises faster, so that the next crossing is not at once. Then the smaller key.
    if vb > va or (vb == va and db > da):
        a, b, va, vb, da, db = b, a, vb, va, db, da
    tree.winner[node] = a
    # Where lead + rise * x + bend * x * x first falls below 0.
    lead, rise, bend = va - vb, da - db, ranks.square[a] - ranks.square[b]
    inside = rise * rise - 4.0 * bend * lead
    if inside >= 0.0:
        below = np.sqrt(inside) - rise
        if below > 0.0:
            until = min(until, now + 2.0 * lead / below)
    tree.until[node] = until


@kernel
def place(tree: Tournament, ranks: Ranks, key: int, now: float) -> None:
    """Let a key in, or tell the tree that its rank is another."""
    node = len(tree.winner) // 2 + key
    tree.winner[node] = key
    node //= 2
    while node > 0:
        _play(tree, ranks, node, now)
        node //= 2


@kernel
def build(tree: Tournament, ranks: Ranks, waiting: Bools, now: float) -> None:
    """Let in every key that waits, at once, into an empty tree."""
    leaves = len(tree.winner) // 2
    for key in range(len(waiting)):
        if waiting[key]:
            tree.winner[leaves + key] = key
    for node in range(leaves - 1, 0, -1):
        _play(tree, ranks, node, now)


@kernel
def remove(tree: Tournament, ranks: Ranks, key: int, now: float) -> None:
    """Let a key go."""
    node = len(tree.winner) // 2 + key
    tree.winner[node] = NOBODY
    node //= 2
    while node > 0:
        _play(tree, ranks, node, now)
        node //= 2


@kernel
def best(tree: Tournament, ranks: Ranks, now: float) -> int:
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
                if child < leaves and tree.until[child] <= now:
                    tree.stack[depth] = child
                    depth += 1
    winner: int = tree.winner[1]
    return winner
