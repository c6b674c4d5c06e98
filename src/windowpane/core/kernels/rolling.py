"""One window sliding over rows in time order: arrivals are added, expirations taken out, answers read.

State by key: exact counts and integer sums (96 bits), exact float sums (`exact`), and for least and largest
values the monotonic queue of rows that may still become the extreme, as linked nodes in shared arrays.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windowpane.core.arrays import Bools, Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.exact import (
    CHUNKS,
    FRACTION,
    HIDDEN,
    add_exact,
    clear_exact,
    read_exact,
    read_pair,
    rounded,
    spread,
)

Small = npt.NDArray[np.int32]
N_ACTIVE, N_NODES, FREE_NODE, EMITTED, N_FREE = range(5)
"""Places in `state`: keys with rows, nodes ever used, first free node (-1: none), answers, free nodes."""
ADDED, GONE = 0, 1
HEAD, TAIL = 0, 1
NEXT, PREVIOUS = 0, 1
_LOW = np.int64(0xFFFFFFFF)
_ONE = np.uint64(1)


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
        state[N_FREE] += 1
        tail = before
    node = state[FREE_NODE]
    if node >= 0:
        state[FREE_NODE] = links[node, NEXT]
        state[N_FREE] -= 1
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
        state[N_FREE] += 1
        queue[key, j, HEAD] = following
        if following >= 0:
            links[following, PREVIOUS] = -1
        else:
            queue[key, j, TAIL] = -1


@kernel
def _empty(
    key: int,
    n_floats: int,
    state: Ints,
    active: Small,
    place: Small,
    spans: Small,
    chunks: Ints,
    specials: Small,
) -> None:
    """A key whose last row left."""
    last = active[state[N_ACTIVE] - 1]
    active[place[key]] = last
    place[last] = place[key]
    place[key] = -1
    state[N_ACTIVE] -= 1
    for s in range(n_floats):
        clear_exact(chunks, spans, specials, key * n_floats + s)


@kernel
def roll(
    arrived: Ints, keys: Small, ints: Ints, bits: Ints, codes: Ints, has: Bools,
    expired: Ints, e_keys: Small, e_ints: Ints, e_bits: Ints,
    high: Ints, low: Ints, own: bool, n_out: int,
    target: Ints, largest: Bools, paired: bool,
    state: Ints, counts: Ints, sums: Ints, chunks: Ints, spans: Small, specials: Small,
    rows: Ints, active: Small, place: Small, stamp: Ints,
    queue: Small, links: Small, nodes: Ints,
    out_key: Small, out_end: Ints, out_counts: Ints, out_sums: Ints, out_floats: Floats, out_codes: Ints,
) -> int:  # fmt: skip
    """Slide over the points: point p holds the rows in `[low[p], high[p])`; answers are put from `n_out` on.

    Returns where they end. An answer says which point it is of by the point's `high`. All that arrived is
    added and all that expired taken out, both in time order, in the end also what is after the last point.
    With `own`, a point answers only for the keys with a row at its last instant.

    The loop over arrivals and the one over expirations are the same but for the sign, and `add_exact` and
    `read_exact` are written out: one loop for both, or calls with all these arrays, cost half as much again.
    """
    one = np.zeros(1, np.float64)
    one_bits = one.view(np.int64)
    n_counts, n_sums, n_codes = counts.shape[1], sums.shape[1], len(largest)
    n_floats, n_parts = out_floats.shape[0], len(target)
    forever = np.iinfo(np.int64).max
    e = a = first = 0
    for p in range(len(high) + 1):
        upto = high[p] if p < len(high) else forever
        below = low[p] if p < len(high) else forever
        while a < len(arrived) and arrived[a] < upto:
            key = keys[a]
            for j in range(n_counts):
                counts[key, j] += ints[j, a]
            for j in range(n_sums):
                at = n_counts + 2 * j
                word = sums[key, j, 1] + ints[at + 1, a]
                sums[key, j, 0] += ints[at, a] + (word >> 32)
                sums[key, j, 1] = word & _LOW
            for j in range(n_parts):
                value = bits[j, a]
                which = key * n_floats + target[j]
                exponent = (value >> 52) & 2047
                fraction = value & FRACTION
                if exponent == 2047:
                    add_exact(chunks, spans, specials, which, value, 1)
                    continue
                if exponent:
                    fraction |= HIDDEN
                    exponent -= 1
                elif fraction == 0:
                    continue
                signed = -1 if value < 0 else 1
                chunk = exponent >> 5
                spread(chunks, np.uint64(CHUNKS * which + chunk), fraction, exponent & 31, signed)
                span_at = np.uint64(2 * which)
                if chunk < spans[span_at]:
                    spans[span_at] = chunk
                if chunk + 2 > spans[span_at + _ONE]:
                    spans[span_at + _ONE] = chunk + 2
            if place[key] < 0:
                place[key] = state[N_ACTIVE]
                active[state[N_ACTIVE]] = key
                state[N_ACTIVE] += 1
            for j in range(n_codes):
                if has[j, a]:
                    _push(key, j, codes[j, a], largest[j], state, queue, links, nodes, rows[key, ADDED])
            rows[key, ADDED] += 1
            a += 1
        while e < len(expired) and expired[e] < below:
            key = e_keys[e]
            for j in range(n_counts):
                counts[key, j] -= e_ints[j, e]
            for j in range(n_sums):
                at = n_counts + 2 * j
                word = sums[key, j, 1] - e_ints[at + 1, e]
                sums[key, j, 0] += (word >> 32) - e_ints[at, e]
                sums[key, j, 1] = word & _LOW
            for j in range(n_parts):
                value = e_bits[j, e]
                which = key * n_floats + target[j]
                exponent = (value >> 52) & 2047
                fraction = value & FRACTION
                if exponent == 2047:
                    add_exact(chunks, spans, specials, which, value, -1)
                    continue
                if exponent:
                    fraction |= HIDDEN
                    exponent -= 1
                elif fraction == 0:
                    continue
                signed = 1 if value < 0 else -1
                spread(chunks, np.uint64(CHUNKS * which + (exponent >> 5)), fraction, exponent & 31, signed)
            rows[key, GONE] += 1
            for j in range(n_codes):
                _pull(key, j, state, queue, links, nodes, rows[key, GONE])
            if rows[key, GONE] == rows[key, ADDED]:
                _empty(key, n_floats, state, active, place, spans, chunks, specials)
            e += 1
        if p == len(high):
            break
        # every row of this point is in, every other out
        state[EMITTED] += 1
        if own:
            while first < a and arrived[first] < upto - 1:
                first += 1
        n = a - first if own else state[N_ACTIVE]
        for i in range(n):
            key = keys[first + i] if own else active[i]
            if own and stamp[key] == state[EMITTED]:
                continue
            stamp[key] = state[EMITTED]
            out_key[n_out] = key
            out_end[n_out] = upto
            for j in range(n_counts):
                out_counts[j, n_out] = counts[key, j]
            for j in range(n_sums):
                out_sums[j, 0, n_out] = sums[key, j, 0]
                out_sums[j, 1, n_out] = sums[key, j, 1]
            for s in range(n_floats):
                which = key * n_floats + s
                if paired:
                    out_floats[s, 0, n_out], out_floats[s, 1, n_out] = read_pair(
                        chunks, spans, specials, which, one, one_bits
                    )
                    continue
                # `read_exact` for the sums that most are
                over = left = lowest = third = second = first_word = np.int64(0)
                last = spans[2 * which + 1]
                for at in range(CHUNKS * which + spans[2 * which], CHUNKS * which + last + 1):
                    left |= lowest
                    lowest, third, second = third, second, first_word
                    held = chunks[np.uint64(at)] + over
                    over = held >> 32
                    first_word = held & _LOW
                strange = specials[3 * which] | specials[3 * which + 1] | specials[3 * which + 2]
                if over == 0 and strange == 0 and first_word:
                    out_floats[s, 0, n_out] = rounded(first_word, second, third, left | lowest, last)
                elif over == 0 and strange == 0 and second:
                    out_floats[s, 0, n_out] = rounded(second, third, lowest, left, last - 1)
                else:
                    out_floats[s, 0, n_out] = read_exact(chunks, spans, specials, which)
            for j in range(n_codes):
                head = queue[key, j, HEAD]
                if head >= 0:
                    out_codes[j, n_out] = nodes[head, 0]
                elif largest[j]:
                    out_codes[j, n_out] = np.iinfo(np.int64).min
                else:
                    out_codes[j, n_out] = forever
            n_out += 1
        first = a
    return n_out
