"""The classes that Spark's JVM loads, kept on disk in the form that it uses them: a session opens sooner.

Java calls this an archive of class data. The JVM itself checks that an archive is whole and made of the same
jars by the same Java, and goes without it if not.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import pyspark

from windowpane.values.paths import cache_folder

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_LIMIT = 600


class NotKept(Exception):
    """No classes could be kept; the message says why."""


def archive() -> Path:
    """Where the archive of this installation of Spark is, or would be: it is good for these jars only."""
    place = zlib.crc32(os.fsencode(Path(pyspark.__file__).parent))
    return cache_folder() / f"spark-{pyspark.__version__}-{place:08x}.jsa"


def java_options() -> str:
    """What lets a driver's JVM use the archive, for `spark.driver.extraJavaOptions`; empty without one."""
    try:
        file = archive()
    except RuntimeError:  # there is no home
        return ""
    if not file.is_file():
        return ""
    return f"{shlex.quote(f'-XX:SharedArchiveFile={file}')} -XX:+VerifySharedSpaces {_QUIET}"


def write_archive() -> None:
    """Run queries on Spark in another process and keep the classes that they needed."""
    try:
        _write(archive())
    except (RuntimeError, OSError) as error:  # RuntimeError: there is no home
        raise NotKept(f"{error}. Let XDG_CACHE_HOME name a folder that can be written.") from error


def _write(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=file.parent) as folder:
        made = Path(folder) / file.name
        _run_spark(folder, f"-XX:ArchiveClassesAtExit={made}")
        if not made.is_file():
            raise NotKept("This Java writes no archives of class data: Java 17 or newer does.")
        made.replace(file)  # a half-written one would crash the JVM


def _run_spark(folder: str, option: str) -> None:
    """Run the queries in a JVM with an option, which no other archive is in the way of."""
    try:
        subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "windowpane.spark.warm_up", folder, option],
            env={**os.environ, "XDG_CACHE_HOME": folder},
            capture_output=True,  # which ends with the JVM: it writes when the program itself has ended
            text=True,
            timeout=_LIMIT,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise NotKept(f"Spark had not ended after {_LIMIT} s.") from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise NotKept(f"Spark did not run (is Java 17 or newer there?): {last}") from None
