"""Every Numba option of the project, in one place.

Kernels compile on first use for the few signatures they are called with and are cached on disk, so a
second process starts warm. Numba writes the index and data files of its cache atomically, so that many
workers may start at once. Where no folder can be written, each process compiles for itself. Where Numba is
missing, kernels run as plain Python: right, but slow.

A compiled kernel holds those that it calls, which Numba does not look at when it decides whether a cached one
still counts: it knows each by its own file. Here all count as changed when one does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., object])
_OPTIONS: Any = {"nopython": True, "nogil": True, "boundscheck": False, "error_model": "numpy"}

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
    def run(*arguments: object, **named: object) -> object:
        with np.errstate(all="ignore"):
            return function(*arguments, **named)

    return run


def kernel(function: F) -> F:
    """Compile a loop over arrays. The only way in this project to call Numba."""
    if not HAVE_NUMBA:
        return cast("F", _slow(function))
    try:
        compiled = numba.jit(cache=True, **_OPTIONS)(function)
        with suppress(AttributeError):  # no public way: where Numba keeps it elsewhere, its own stamp counts
            compiled._cache._cache_file._source_stamp = _stamp()
    except RuntimeError:  # Numba's word for a cache that has no place
        _tell_uncached()
        compiled = numba.jit(**_OPTIONS)(function)
    return cast("F", compiled)


@cache
def _stamp() -> str:
    """What tells the kernels of this version from all others: a digest of the files that have some."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return sha256(b"".join(text for text in map(Path.read_bytes, files) if b"@kernel" in text)).hexdigest()


@cache
def _tell_uncached() -> None:
    warnings.warn(
        "Numba finds no folder to keep compiled kernels in, so every process compiles them anew: the same "
        "answers, but a slow start. Set NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=3,
    )
