"""Paths as Spark takes them: of this machine, or URIs of a file system. And where we keep what saves time."""

from __future__ import annotations

import os
import re
from pathlib import Path

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
"""How a URI begins."""


def local_path(path: str | Path) -> Path | None:
    """The path as a local one, or None where it lies in another file system.

    >>> local_path("file:///tmp/a"), local_path("/tmp/a"), local_path("s3://bucket/a")
    (PosixPath('/tmp/a'), PosixPath('/tmp/a'), None)
    """
    text = str(path)
    if text.startswith("file:"):
        return Path("/" + text.removeprefix("file:").lstrip("/"))
    return None if SCHEME.match(text) else Path(text)


def cache_folder() -> Path:
    """Where files are kept that only save time; RuntimeError if there is no home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "windowpane"
