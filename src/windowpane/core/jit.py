"""Every Numba option of the project, in one place.

Kernels compile on first use for the few signatures they are called with and are cached on disk, so a
second process starts warm. Numba writes the index and data files of its cache atomically, so that many
workers may start at once. Where Numba is missing, kernels run as plain Python: right, but slow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., object])

try:
    import numba
except ImportError:
    HAVE_NUMBA = False
    warnings.warn(
        "Numba is not installed, so windowpane runs its kernels as plain Python: the same answers, but far "
        "slower. Install numba.",
        RuntimeWarning,
        stacklevel=2,
    )
else:
    HAVE_NUMBA = True


def _slow(function: Callable[..., object]) -> Callable[..., object]:
    """The loop as plain Python; integers of NumPy warn where compiled ones wrap, as hashes mean them to."""

    @wraps(function)
    def run(*arguments: object) -> object:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run


def kernel(function: F) -> F:
    """Compile a loop over arrays. The only way in this project to call Numba."""
    if not HAVE_NUMBA:
        return cast("F", _slow(function))
    compiled = numba.jit(nopython=True, nogil=True, cache=True, boundscheck=False, error_model="numpy")(
        function
    )
    return cast("F", compiled)
