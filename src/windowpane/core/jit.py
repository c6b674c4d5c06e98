"""Every Numba option of the project, in one place.

Kernels compile on first use for the few signatures they are called with and are cached on disk, so a
second process starts warm. Numba writes the index and data files of its cache atomically, so that many
workers may start at once. Where Numba is missing, kernels run as plain Python: right, but slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

try:
    import numba
except ImportError:  # pragma: no cover - exercised in a subprocess by tests/core/test_without_numba.py
    numba = None

HAVE_NUMBA = numba is not None
_OPTIONS = {"nopython": True, "nogil": True, "cache": True, "boundscheck": False, "error_model": "numpy"}


def kernel(function: F) -> F:
    """Compile a loop over arrays. The only way in this project to call Numba."""
    if numba is None:
        return function
    compiled: F = numba.jit(**_OPTIONS)(function)
    return compiled
