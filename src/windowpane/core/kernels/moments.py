"""Count, mean and sum of squared deviations, by the pairwise update of Chan, Golub and LeVeque."""

from __future__ import annotations

import numpy as np

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel
from windowpane.core.kernels.folds import run_end, sum_slice


@kernel
def fold_moments(rows: Ints, values: Floats, n_rows: int) -> tuple[Ints, Floats, Floats]:
    """The moments of each row; runs are reduced in two passes, which is quicker and closer than one."""
    n = np.zeros(n_rows, np.int64)
    mean = np.zeros(n_rows, np.float64)
    spread = np.zeros(n_rows, np.float64)
    start = 0
    while start < len(rows):
        end = run_end(rows, start)
        row = rows[start]
        centre, square = _moments_of(values, start, end)
        mean[row], spread[row] = merge_moments(n[row], mean[row], spread[row], end - start, centre, square)
        n[row] += end - start
        start = end
    return n, mean, spread


@kernel
def _moments_of(values: Floats, start: int, end: int) -> tuple[float, float]:
    size = end - start
    if size == 1:
        return values[start], values[start] - values[start]
    centre = sum_slice(values, start, end) / size
    if not np.isfinite(centre):
        # The sum may have overflowed although the mean does not.
        centre = 0.0
        for i in range(start, end):
            centre += (values[i] - centre) / (i - start + 1)
    square = 0.0
    drift = 0.0
    for i in range(start, end):
        away = values[i] - centre
        square += away * away
        drift += away
    return centre, square - drift * drift / size


@kernel
def merge_moments(
    n: int, mean: float, spread: float, m: int, centre: float, square: float
) -> tuple[float, float]:
    """Mean and spread of both parts. A spread of NaN takes the mean with it, in any grouping."""
    if m == 0:
        return mean, spread
    if n > 0:
        away = centre - mean if centre != mean else 0.0
        square = spread + square + away * away * (n * (m / (n + m)))
        centre = mean + away * (m / (n + m))
    return (np.nan, np.nan) if np.isnan(square) else (centre, square)


@kernel
def combine_moments(
    n: Ints, mean: Floats, spread: Floats, m: Ints, centre: Floats, square: Floats
) -> tuple[Ints, Floats, Floats]:
    """Row by row `merge_moments`."""
    out_mean = np.empty(len(n), np.float64)
    out_spread = np.empty(len(n), np.float64)
    for i in range(len(n)):
        out_mean[i], out_spread[i] = merge_moments(n[i], mean[i], spread[i], m[i], centre[i], square[i])
    return n + m, out_mean, out_spread
