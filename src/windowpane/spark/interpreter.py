"""The program that Spark's Python processes are started with, so that they import PySpark as it is installed.

Spark puts a zip file of PySpark first on the path of the processes that it starts. It holds no bytecode, so
that each process compiles what it imports. That is a second of CPU at the start of every query with state,
in a process beside the driver, and at the start of a session.
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path

import pyspark

from windowpane.values.paths import cache_folder

_PACKAGE = Path(pyspark.__file__).parent
_LAUNCHER = """#!/bin/sh
# Starts Python without what Spark puts first on its path: zip files of PySpark and Py4J, and a jar.
while :; do
    case "$PYTHONPATH" in
        {package}/*:*) PYTHONPATH="${{PYTHONPATH#*:}}" ;;
        {package}/*) PYTHONPATH= ;;
        *) break ;;
    esac
done
export PYTHONPATH
exec {python} "$@"
"""


def python(master: str) -> str:
    """What to start Spark's Python processes with, for the variable `PYSPARK_PYTHON`.

    It is a launcher on a local master. It is this interpreter itself on another, whose machines do not have
    the launcher, and where PySpark is not installed beside the interpreter or no launcher can be kept.
    """
    if os.name != "posix" or not master.startswith("local") or not _is_installed():
        return sys.executable
    try:
        return str(_launcher())
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return sys.executable


def _is_installed() -> bool:
    """Whether another process of this interpreter finds this PySpark, and the JVM is that of this PySpark."""
    found = _PACKAGE.parent == Path(sysconfig.get_path("purelib"))
    return found and os.environ.get("SPARK_HOME", str(_PACKAGE)) == str(_PACKAGE)


def _launcher() -> Path:
    """The launcher, which is written unless it is there."""
    folder = cache_folder()
    text = _LAUNCHER.format(package=shlex.quote(str(_PACKAGE)), python=shlex.quote(sys.executable))
    file = folder / f"python-{zlib.crc32(text.encode()):08x}"
    if not file.is_file() or file.read_text() != text:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".python-", dir=folder) as made:
            new = Path(made) / file.name
            new.write_text(text)
            new.chmod(0o755)
            new.replace(file)  # whole at once: another process may be about to start it
    if not os.access(file, os.X_OK):
        raise PermissionError(f"{file} cannot be run: its folder may hold no programs")
    return file
