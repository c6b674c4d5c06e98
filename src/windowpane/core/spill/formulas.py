"""The cost formulas of Mendes, Bizarro and Marques (ICPE 2013), by their numbers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """What the formulas ask of a stream and its aggregates; times in one unit, sizes in bytes.

    `groups` are seen during a window (G), `active_groups` during an update interval (g).
    """

    rate: float
    window: float
    interval: float
    tuple_bytes: float
    partial_tuple_bytes: float
    state_bytes: float
    partial_state_bytes: float
    groups: float
    active_groups: float
    aggregates: float = 1


def space_2la(load: Load) -> float:
    """Formula 2.1: bytes that two-level aggregation needs.

    >>> call_center = Load(1000, 86400, 10, 94, 20, 16, 16, 10_000, 1_000, 104)
    >>> round(space_2la(call_center) / 1e9)
    18
    """
    inner = load.partial_state_bytes + load.window * load.partial_tuple_bytes / load.interval
    return load.aggregates * (load.active_groups * inner + load.groups * load.state_bytes)


def space_1w(load: Load) -> float:
    """Formula 2.2: bytes that one window of tuples needs.

    >>> call_center = Load(1000, 86400, 10, 94, 20, 16, 16, 10_000, 1_000, 144)
    >>> round(space_1w(call_center) / 1e9)
    8
    """
    tuples = load.rate * load.window * load.tuple_bytes
    return tuples + load.aggregates * load.groups * load.state_bytes


def iops(rate: float, block_factor: int) -> float:
    """Formula 3.1: requests per unit of time of a window that does not fit memory.

    >>> round(iops(1000, 64 * 1024 // 94), 1)
    2.9
    """
    return 2 * rate / block_factor


def bandwidth(requests: float, block_bytes: int) -> float:
    """Formula 3.2: bytes per unit of time for so many requests."""
    return requests * block_bytes


def shared_requests(windows: int, hit_rate: float) -> float:
    """Formula 4.1: requests of a shared store for each new block, reads and writes counted alike.

    >>> shared_requests(8, hit_rate=0.0)  # as much as eight stores of their own
    16.0
    """
    return 1 + (1 - hit_rate) * (2 * (windows - 1) + 1)


def shared_hit_rate(resident: Sequence[float], total: Sequence[float]) -> float:
    """Formula 4.2: the share of blocks in memory, averaged over the stretches between ancient blocks.

    `resident[i]` of the `total[i]` blocks of stretch i are in memory.
    """
    return sum(r / t for r, t in zip(resident, total, strict=True)) / len(total)


def stretches(sizes: Sequence[float]) -> list[float]:
    """The lengths of the stretches between the ancient blocks of windows of these sizes, smallest first.

    >>> stretches([12, 1, 6])
    [1, 5, 6]
    """
    ordered = sorted(sizes)
    return [b - a for a, b in zip([0, *ordered[:-1]], ordered, strict=True)]


def distance_clusters(blocks: float, lengths: Sequence[float]) -> list[float]:
    """How the distance rule shares `blocks` among stretches: clusters of equal length, or the whole stretch.

    >>> distance_clusters(9, [2, 10, 10])
    [2, 3.5, 3.5]
    """
    shares = [0.0] * len(lengths)
    left, open_ = blocks, sorted(range(len(lengths)), key=lambda i: lengths[i])
    while open_:
        even = left / len(open_)
        at = open_.pop(0)
        shares[at] = min(lengths[at], even)
        left -= shares[at]
    return shares
