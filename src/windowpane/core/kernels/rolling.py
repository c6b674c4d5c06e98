"""One window sliding over rows in time order: arrivals are added, expirations taken out, answers read.

State by key: exact counts and integer sums (96 bits), exact float sums (`exact`), and for least and largest
values the monotonic queue of rows that may still become the extreme, as linked nodes in shared arrays.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.exact import add_exact, clear_exact, read_exact, read_pair

Small = npt.NDArray[np.int32]
N_ACTIVE, N_NODES, FREE_NODE, EMITTED = range(4)
"""Places in `state`: keys with rows, nodes ever used, first free node (-1: none), answers given."""
ADDED, GONE = 0, 1
HEAD, TAIL = 0, 1
NEXT, PREVIOUS = 0, 1
_LOW = np.int64(0xFFFFFFFF)


@kernel
def _change(
    key: int, i: int, sign: int, n_counts: int, ints: Ints, bits: Ints, target: Ints,
    counts: Ints, sums: Ints, chunks: Ints, spans: Small, specials: Small,
) -> None:  # fmt: skip
    """Add row i to the sums of a key, or take it out; counts come first in `ints`, then sums in two words."""
    for j in range(n_counts):
        counts[key, j] += sign * ints[j, i]
    for j in range(sums.shape[1]):
        at = n_counts + 2 * j
        low = sums[key, j, 1] + sign * ints[at + 1, i]
        sums[key, j, 0] += sign * ints[at, i] + (low >> 32)
        sums[key, j, 1] = low & _LOW
    for j in range(len(target)):
        s = target[j]
        add_exact(chunks[key, s], spans[key, s], specials[key, s], bits[j, i], sign)


@kernel
def _push(
    key: int, j: int, code: int, largest: bool, state: Ints, queue: Small, links: Small, nodes: Ints,
    number: int,
) -> None:  # fmt: skip
    """Append a row to the queue of extremes, after dropping the rows that it outlives and outdoes."""
    tail = queue[key, j, TAIL]
    while tail >= 0 and ((largest and nodes[tail, 0] <= code) or (not largest and nodes[tail, 0] >= code)):
        before = links[tail, PREVIOUS]
        links[tail, NEXT] = state[FREE_NODE]
        state[FREE_NODE] = tail
        tail = before
    node = state[FREE_NODE]
    if node >= 0:
        state[FREE_NODE] = links[node, NEXT]
    else:
        node = state[N_NODES]
        state[N_NODES] += 1
    nodes[node, 0] = code
    nodes[node, 1] = number
    links[node, NEXT] = -1
    links[node, PREVIOUS] = tail
    queue[key, j, TAIL] = node
    if tail >= 0:
        links[tail, NEXT] = node
    else:
        queue[key, j, HEAD] = node


@kernel
def _pull(key: int, j: int, state: Ints, queue: Small, links: Small, nodes: Ints, gone: int) -> None:
    """Drop the first row of a queue if it left the window."""
    head = queue[key, j, HEAD]
    if head >= 0 and nodes[head, 1] < gone:
        following = links[head, NEXT]
        links[head, NEXT] = state[FREE_NODE]
        state[FREE_NODE] = head
        queue[key, j, HEAD] = following
        if following >= 0:
            links[following, PREVIOUS] = -1
        else:
            queue[key, j, TAIL] = -1


@kernel
def _empty(
    key: int, state: Ints, active: Small, place: Small, spans: Small, chunks: Ints, specials: Small
) -> None:
    """A key whose last row left."""
    last = active[state[N_ACTIVE] - 1]
    active[place[key]] = last
    place[last] = place[key]
    place[key] = -1
    state[N_ACTIVE] -= 1
    for s in range(chunks.shape[1]):
        clear_exact(chunks[key, s], spans[key, s], specials[key, s])


@kernel
def roll(
    arrived: Ints, a_key: Small, a_ints: Ints, a_bits: Ints, a_codes: Ints, a_has: Bools,
    expired: Ints, e_key: Small, e_ints: Ints, e_bits: Ints,
    high: Ints, low: Ints, own: bool,
    target: Ints, largest: Bools, paired: bool,
    state: Ints, counts: Ints, sums: Ints, chunks: Ints, spans: Small, specials: Small,
    rows: Ints, active: Small, place: Small, stamp: Ints,
    queue: Small, links: Small, nodes: Ints,
    out_key: Small, out_point: Small, out_counts: Ints, out_sums: Ints, out_floats: Floats, out_codes: Ints,
) -> int:  # fmt: skip
    """Slide over the points: point p holds the rows in `[low[p], high[p])`. The number of answers.

    All arrivals are added and all expirations taken out in the end, also those after the last point. With
    `own`, a point answers only for the keys with a row at its last instant.
    """
    one = np.zeros(1, np.float64)
    one_bits = one.view(np.int64)
    n_counts = counts.shape[1]
    n_out = 0
    a = e = 0
    for p in range(len(high) + 1):
        upto = high[p] if p < len(high) else np.iinfo(np.int64).max
        below = low[p] if p < len(high) else np.iinfo(np.int64).max
        first = a
        while a < len(arrived) and arrived[a] < upto:
            key = a_key[a]
            if place[key] < 0:
                place[key] = state[N_ACTIVE]
                active[state[N_ACTIVE]] = key
                state[N_ACTIVE] += 1
            _change(key, a, 1, n_counts, a_ints, a_bits, target, counts, sums, chunks, spans, specials)
            for j in range(len(largest)):
                if a_has[j, a]:
                    _push(key, j, a_codes[j, a], largest[j], state, queue, links, nodes, rows[key, ADDED])
            rows[key, ADDED] += 1
            a += 1
        while e < len(expired) and expired[e] < below:
            key = e_key[e]
            _change(key, e, -1, n_counts, e_ints, e_bits, target, counts, sums, chunks, spans, specials)
            rows[key, GONE] += 1
            for j in range(len(largest)):
                _pull(key, j, state, queue, links, nodes, rows[key, GONE])
            if rows[key, GONE] == rows[key, ADDED]:
                _empty(key, state, active, place, spans, chunks, specials)
            e += 1
        if p == len(high):
            break
        state[EMITTED] += 1
        if own:
            while first < a and arrived[first] < upto - 1:
                first += 1
        n = a - first if own else state[N_ACTIVE]
        for i in range(n):
            key = a_key[first + i] if own else active[i]
            if own and stamp[key] == state[EMITTED]:
                continue
            stamp[key] = state[EMITTED]
            out_key[n_out] = key
            out_point[n_out] = p
            for j in range(n_counts):
                out_counts[j, n_out] = counts[key, j]
            for j in range(sums.shape[1]):
                out_sums[j, 0, n_out] = sums[key, j, 0]
                out_sums[j, 1, n_out] = sums[key, j, 1]
            for s in range(chunks.shape[1]):
                if paired:
                    out_floats[s, 0, n_out], out_floats[s, 1, n_out] = read_pair(
                        chunks[key, s], spans[key, s], specials[key, s], one, one_bits
                    )
                else:
                    out_floats[s, 0, n_out] = read_exact(chunks[key, s], spans[key, s], specials[key, s])
            for j in range(len(largest)):
                head = queue[key, j, HEAD]
                if head >= 0:
                    out_codes[j, n_out] = nodes[head, 0]
                elif largest[j]:
                    out_codes[j, n_out] = np.iinfo(np.int64).min
                else:
                    out_codes[j, n_out] = np.iinfo(np.int64).max
            n_out += 1
    return n_out
