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

_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_LIMIT = 600


def archive() -> Path:
    """Where the archive of this installation of Spark is, or would be: it is good for these jars only."""
    home = os.environ.get("XDG_CACHE_HOME")
    place = zlib.crc32(os.fsencode(Path(pyspark.__file__).parent))
    name = f"spark-{pyspark.__version__}-{place:08x}.jsa"
    return Path(home or Path.home() / ".cache") / "windowpane" / name


def java_options() -> str:
    """What lets a driver's JVM use the archive, for `spark.driver.extraJavaOptions`; empty without one."""
    try:
        file = archive()
    except RuntimeError:  # there is no home
        return ""
    if not file.is_file():
        return ""
    return f"{shlex.quote(f'-XX:SharedArchiveFile={file}')} -XX:+VerifySharedSpaces {_QUIET}"


def write_archive() -> bool:
    """Run queries on Spark in another process and keep the classes that they needed; whether it worked."""
    file = archive()
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=file.parent) as folder:
        made = Path(folder) / file.name
        option = f"-XX:ArchiveClassesAtExit={made}"
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-m", "windowpane.spark.warm_up", folder, option],
            env={**os.environ, "XDG_CACHE_HOME": folder},  # an archive is not made with another in use
            capture_output=True,  # which ends with the JVM: it writes when the program itself has ended
            timeout=_LIMIT,
            check=False,
        )
        if done.returncode or not made.is_file():
            return False
        made.replace(file)  # a half-written one would crash the JVM
    return True
