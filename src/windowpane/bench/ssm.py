"""Shared SlideM against one store for each window: section 5.4 and figure 11 of Mendes et al. (ICPE 2013).

N windows with sizes spread evenly over [3600, 7200] s slide over a stream of 5,000 tuples/s; memory is 512
MB, shared by all stores. Requests and space are counted, not timed. So blocks hold four rows instead of
2,340, which changes nothing that is counted; and rate and memory are divided by `scale` together, which
leaves the share of a window that memory holds, and so every ratio, as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Progress
from windowpane.core.spill.codec import block_layout
from windowpane.core.spill.formulas import (
    distance_clusters,
    shared_hit_rate,
    shared_requests,
    stretches,
)
from windowpane.core.spill.medium import MemoryMedium
from windowpane.core.spill.store import BlockStore

RATE, BLOCK, TUPLE = 5_000, 64 * 1024, 28
MEMORY = 512 * 1024 * 1024
COUNTS = (2, 4, 8, 16, 32)
FEWER = 22
BLOCKS_PER_SECOND = RATE / (BLOCK // TUPLE)
ROWS = 4
"""Rows in a scaled block."""


@dataclass(frozen=True)
class Outcome:
    """What was counted while the windows slid."""

    requests: int
    reads: int
    writes: int
    spared: int
    hits: int
    misses: int
    blocks: int
    new_blocks: int
    places: int


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Count requests and space for every number of windows, shared and not."""
    rows: list[Row] = []
    slid = 0.3 if quick else 1.5
    scale = 16 if quick else 2
    frames = MEMORY // BLOCK // scale
    for done, n in enumerate(COUNTS):
        progress(done, len(COUNTS), f"{n} windows")
        sizes = [int(size * BLOCKS_PER_SECOND / scale) for size in np.linspace(3_600, 7_200, n)]
        shared = slide(sizes, frames, slid)
        alone = [slide([size], frames // n, slid, length=max(sizes)) for size in sizes]
        unshared = sum(outcome.requests for outcome in alone)
        expected = shared_hit_rate(distance_clusters(frames - n - 1, stretches(sizes)), stretches(sizes))
        measured = shared.hits / max(1, shared.hits + shared.misses)
        rows.append(
            {
                "windows": n,
                "shared_requests": shared.requests,
                "unshared_requests": unshared,
                "fewer": round(unshared / max(1, shared.requests), 1),
                "shared_gb": round(scale * shared.blocks * BLOCK / 1e9, 3),
                "unshared_gb": round(scale * sum(o.blocks for o in alone) * BLOCK / 1e9, 3),
                "reads": shared.reads,
                "writes": shared.writes,
                "spared_writes": shared.spared,
                "hit_rate": round(measured, 4),
                "hit_rate_by_4_2": round(expected, 4),
                "requests_by_4_1": round(shared_requests(n, measured) * shared.new_blocks),
                "new_blocks": shared.new_blocks,
            }
        )
    parameters: dict[str, Scalar] = {
        "rate": RATE,
        "block_bytes": BLOCK,
        "tuple_bytes": TUPLE,
        "memory_mb": MEMORY / 2**20,
        "slid_by": slid,
        "scale": scale,
    }
    return Report("ssm", parameters, rows, claims(rows))


def claims(rows: list[Row]) -> list[Claim]:
    """Space does not follow the number of windows, and requests are far fewer."""
    space = [float(str(row["shared_gb"])) for row in rows]
    return [
        Claim("space of 32 shared windows / of 2", round(space[-1] / space[0], 3), 1.01, at_most=True),
        Claim("requests unshared / shared, 32 windows", float(str(rows[-1]["fewer"])), FEWER),
    ]


def slide(sizes: list[int], frames: int, slid: float, *, length: int | None = None) -> Outcome:
    """Fill windows of so many blocks, slide them by `slid` lengths of the longest, and count."""
    layout = block_layout({"time": np.int64}, 64 + 8 * ROWS)
    store = BlockStore(layout, MemoryMedium(), frames)
    windows = [(size, store.add_window()) for size in sorted(sizes)]
    length = length or max(sizes)
    block = (np.zeros(ROWS, np.int64),)

    def push() -> None:
        store.append(block)
        for size, window in windows:
            while store.rows(window) > size * ROWS:
                held = len(store.oldest(window)[0])
                store.release(window, min(held, store.rows(window) - size * ROWS))

    for _ in range(length + length // 2):
        push()
    counts = store.counts
    before = (counts.requests, counts.reads, counts.writes, counts.spared, store.hits, store.misses)
    new = int(length * slid)
    for _ in range(new):
        push()
    after = (counts.requests, counts.reads, counts.writes, counts.spared, store.hits, store.misses)
    requests, reads, writes, spared, hits, misses = (b - a for a, b in zip(before, after, strict=True))
    return Outcome(requests, reads, writes, spared, hits, misses, store.blocks, new, store.free.end)
