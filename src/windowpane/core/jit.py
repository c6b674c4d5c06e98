"""Every Numba option of the project, in one place.

Kernels compile on first use for the few signatures they are called with and are cached on disk, so a
second process starts warm. Numba writes the index and data files of its cache atomically, so that many
workers may start at once. Where Numba is missing, kernels run as plain Python: right, but slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])

try:
    import numba
except ImportError:
    HAVE_NUMBA = False
else:
    HAVE_NUMBA = True


def kernel(function: F) -> F:
    """Compile a loop over arrays. The only way in this project to call Numba."""
    if not HAVE_NUMBA:
        return function
    compiled = numba.jit(nopython=True, nogil=True, cache=True, boundscheck=False, error_model="numpy")(
        function
    )
    return cast("F", compiled)
