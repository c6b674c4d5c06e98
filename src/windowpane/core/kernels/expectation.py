"""What is expected of values after a step of chance, along one axis."""

from __future__ import annotations

from windowpane.core.arrays import Floats, Ints
from windowpane.core.jit import kernel


@kernel
def expect(values: Floats, starts: Ints, columns: Ints, odds: Floats, out: Floats) -> None:
    """The means of values[:, column, :], by the odds from starts[i] to starts[i + 1], go to out[:, i, :]."""
    for before in range(values.shape[0]):
        for i in range(len(starts) - 1):
            out[before, i, :] = 0.0
            for at in range(starts[i], starts[i + 1]):
                column, chance = columns[at], odds[at]
                for after in range(values.shape[2]):
                    out[before, i, after] += chance * values[before, column, after]
