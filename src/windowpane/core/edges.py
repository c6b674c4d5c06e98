"""Edges: where context-free windows begin and end, for all windows of a lane at once.

The edges of a sliding window are two arithmetic progressions; those of all windows together are their
union. Slices run from edge to edge, so that every window is a whole number of slices.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import NEVER, Ints
from windowpane.core.kernels import edges as kernels
from windowpane.values.windows import ContextFreeWindow, Cumulative, Landmark, Session, Sliding

ContextFree = Sliding | Landmark | Cumulative | ContextFreeWindow


@dataclass(frozen=True)
class Edges:
    """The union of progressions `phase + k*period`, single cuts, and the edges of users' own windows."""

    phase: Ints
    period: Ints
    cuts: Ints
    custom: tuple[ContextFreeWindow, ...] = ()

    def expected(self, low: int, high: int) -> float:
        """About how many edges lie between two times; the price of listing them."""
        return float(np.sum((high - low) / self.period)) + len(self.cuts)

    def between(self, low: int, high: int) -> Ints:
        """All edges in (low, high], sorted, preceded by the last edge at or below `low`."""
        inside = kernels.progression_edges(self.phase, self.period, low, high)
        if len(self.phase) > 1:
            inside.sort()
            inside = inside[np.concatenate([inside[:1] == inside[:1], inside[1:] != inside[:-1]])]
        extra = self.cuts[(self.cuts > low) & (self.cuts <= high)]
        more = [e for window in self.custom for e in _edges_of(window, low, high)]
        if len(extra) or more:
            inside = np.unique(np.concatenate([inside, extra, np.array(more, np.int64)]))
        return np.concatenate([[self.floor(np.array([low]))[0]], inside]).astype(np.int64)

    def floor(self, times: Ints) -> Ints:
        """The last edge at or below each time (the time itself if there is none)."""
        best = kernels.progression_floor(self.phase, self.period, times)
        if len(self.cuts):
            at = np.searchsorted(self.cuts, times, side="right") - 1
            best = np.maximum(best, np.where(at >= 0, self.cuts[np.maximum(at, 0)], NEVER))
        for window in self.custom:
            # a user's window answers one time at a call, so each time is asked for once
            distinct, back = np.unique(times, return_inverse=True)
            best = np.maximum(best, np.array([_floor_of(window, int(t)) for t in distinct], np.int64)[back])
        return np.where(best == NEVER, times, best)


def edges_of(windows: Iterable[ContextFree | Session], cuts: Iterable[int] = ()) -> Edges:
    """The edges that let every one of these windows be put together from slices."""
    progressions: set[tuple[int, int]] = set()
    single = set(cuts)
    custom: list[ContextFreeWindow] = []
    gaps = [w.gap for w in windows if isinstance(w, Session)]
    if gaps:
        progressions.add((0, min(gaps)))
    for window in windows:
        match window:
            case Sliding(size, slide, origin):
                progressions |= {(origin % slide, slide), ((origin + size) % slide, slide)}
            case Landmark(slide, start, origin):
                progressions.add((origin % slide, slide))
                single |= set() if start is None else {start}
            case Cumulative(step, _, origin):
                progressions.add((origin % step, step))
            case ContextFreeWindow():
                custom.append(window)
            case Session():
                pass
    phase, period = _without_dominated(progressions)
    return Edges(phase, period, np.array(sorted(single), np.int64), tuple(custom))


def _without_dominated(progressions: set[tuple[int, int]]) -> tuple[Ints, Ints]:
    """Drop every progression that another one contains: fewer to walk, the same edges."""
    ordered = sorted(progressions, key=lambda pair: pair[1])
    phase = np.array([p for p, _ in ordered], np.int64)
    period = np.array([q for _, q in ordered], np.int64)
    keep = np.ones(len(ordered), np.bool_)
    for i in range(len(ordered)):
        if keep[i]:
            inside = (period % period[i] == 0) & ((phase - phase[i]) % period[i] == 0)
            inside[: i + 1] = False
            keep &= ~inside
    return phase[keep], period[keep]


def _edges_of(window: ContextFreeWindow, low: int, high: int) -> list[int]:
    found, edge = [], window.next_edge(low)
    while edge <= high:
        found.append(edge)
        edge = window.next_edge(edge)
    return found


def _floor_of(window: ContextFreeWindow, time: int) -> int:
    """No edge further back than the longest window can matter to a slice that holds `time`."""
    best, edge = NEVER, window.next_edge(time - window.longest - 1)
    while edge <= time:
        best, edge = edge, window.next_edge(edge)
    return int(best)
