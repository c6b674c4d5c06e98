"""PostgreSQL for tests and trials: a server of its own in a new temporary folder, on loopback.

    python scripts/postgres.py start         prints the folder, then the text to connect with
    python scripts/postgres.py stop FOLDER   stop the server and remove the folder

Debian's package is installed where it is missing and that is allowed. Exit code 3: there is no server to be
had, and the message says what to install.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

UNAVAILABLE = 3
"""The exit code where there is no server."""
USER = "windowpane"


class Unavailable(Exception):
    """Something that this script needs is not there."""


def main(arguments: list[str]) -> int:
    """Run one of the commands; the exit code."""
    match arguments:
        case ["start"]:
            print(*start(), sep="\n")
        case ["stop", folder]:
            stop(Path(folder))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


def programs() -> Path:
    """The folder of the server's programs, installed if need be."""
    found = _programs()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        print("no PostgreSQL server: installing Debian's postgresql", file=sys.stderr)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update", "-qq"], ["install", "-qq", "-y", "postgresql"]):
            subprocess.run(["apt-get", *step], env=quiet, stdout=sys.stderr, check=False)  # noqa: S603, S607
        found = _programs()
    if found is None:
        raise Unavailable("there is no PostgreSQL server. Install one (Debian: apt-get install postgresql).")
    return found


def _programs() -> Path | None:
    named = shutil.which("initdb")
    there = [Path(named).parent] if named else []
    there += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in there if (folder / "initdb").exists()), None)


def start() -> tuple[str, str]:
    """Start a server; its folder, and the text that libpq connects with."""
    binaries = programs()
    folder = Path(tempfile.mkdtemp(prefix="windowpane-postgres-"))
    password = secrets.token_hex(16)
    word = folder / "password"
    word.write_text(password, "utf-8")
    word.chmod(0o600)
    _give(folder)
    _give(word)
    port = free_port()
    auth = ("--auth=scram-sha-256", f"--username={USER}", f"--pwfile={word}")
    _as_server(binaries / "initdb", "-D", str(folder / "data"), "-E", "UTF8", "--locale=C", *auth)
    settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    log = ("-l", str(folder / "log"))
    _as_server(binaries / "pg_ctl", "-D", str(folder / "data"), *log, "-o", settings, "-w", "start")
    return str(folder), f"host=127.0.0.1 port={port} dbname=postgres user={USER} password={password}"


def stop(folder: Path) -> None:
    """Stop the server of the folder and remove it."""
    if (folder / "data" / "postmaster.pid").exists():
        _as_server(programs() / "pg_ctl", "-D", str(folder / "data"), "-m", "immediate", "-w", "stop")
    shutil.rmtree(folder)


def _server() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: the user to run it as then, else None."""
    if os.geteuid() != 0:
        return None
    users = {entry.pw_name: entry for entry in pwd.getpwall()}
    return users.get("postgres") or users["nobody"]


def _give(path: Path) -> None:
    server = _server()
    if server is not None:
        os.chown(path, server.pw_uid, server.pw_gid)


def _as_server(program: Path, *arguments: str) -> None:
    server = _server()
    rights: dict[str, Any] = {}
    if server is not None:
        rights = {"user": server.pw_uid, "group": server.pw_gid, "extra_groups": []}
    command = [str(program), *arguments]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, **rights)  # noqa: S603
    if done.returncode:
        raise Unavailable(f"{program.name} failed: {done.stderr.strip() or done.stdout.strip()}")


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Unavailable as problem:
        print(problem, file=sys.stderr)
        sys.exit(UNAVAILABLE)
