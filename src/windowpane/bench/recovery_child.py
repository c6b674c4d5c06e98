"""The child process of `bench recovery`, as its parent sees it: watched, killed, or robbed of a worker.

It has a session of its own, by which all its processes are known: Spark's Python workers leave the process
group of the driver, but not its session.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Self

import psutil

from windowpane.bench.recovery_job import Folder
from windowpane.values.errors import WindowpaneError

_PATIENCE = 300.0
_LOOK = 0.005
_DAEMON = "pyspark.daemon"


class RunBroke(WindowpaneError, RuntimeError):
    """The run failed by itself, or did not go on."""


class Child:
    """A process that runs the job of a folder from where its checkpoint stands."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._committed = folder.newest("commits")
        self._begin = time.monotonic()
        self.resumed: float | None = None
        """Seconds from the start to the first commit."""
        self.resumed_cpu: float | None = None
        """Seconds of CPU that all its processes took for that."""
        command = [sys.executable, "-m", "windowpane.bench.recovery_job", str(folder.path), folder.name]
        with folder.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def look(self) -> None:
        """Note the first commit."""
        if self.resumed is None and self._folder.newest("commits") > self._committed:
            self.resumed = round(time.monotonic() - self._begin, 2)
            self.resumed_cpu = round(sum(_cpu(process) for process in self._alive()), 2)

    def until(self, reached: Callable[[], bool]) -> bool:
        """Wait for something, with patience while commits are made; False if the child ends first."""
        done, end = -2, 0.0
        while not reached():
            self.look()
            if self._process.poll() is not None:
                return False
            if (newest := self._folder.newest("commits")) > done:
                done, end = newest, time.monotonic() + _PATIENCE
            if time.monotonic() > end:
                raise RunBroke(f"nothing happened for {_PATIENCE:.0f} s. {self._last_words()}")
            time.sleep(_LOOK)
        self.look()
        return True

    def finish(self) -> None:
        """Let it come to its end, which must be a good one."""
        self.until(lambda: self._process.poll() is not None)
        if self._process.returncode:
            raise RunBroke(f"the run ended with {self._process.returncode}. {self._last_words()}")

    def kill(self) -> None:
        """End driver, JVM and Python workers at once, with no chance to tidy up."""
        while left := self._alive():
            for process in left:
                _kill(process)
            time.sleep(_LOOK)
        self._process.wait()

    def lose_a_worker(self) -> int:
        """Once it works, kill one Python worker after the other until a task is lost with it; how many."""
        self.until(lambda: self.resumed is not None)
        known, kills = self.lost(), 0
        while self.lost() == known and self._process.poll() is None:
            worker = self._busiest_worker()
            if worker is None:
                continue  # tasks take a few hundredths of a second: no time to do anything but look
            _kill(worker)
            kills += 1
            self._wait_a_little(lambda: self.lost() > known)
        return kills

    def _wait_a_little(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + 0.5
        self.until(lambda: reached() or time.monotonic() > end)

    def lost(self) -> int:
        """Tasks that Spark tells to have lost."""
        return lost_tasks(self._folder.log.read_text("utf-8", "replace"))

    def _busiest_worker(self) -> psutil.Process | None:
        """The Python worker (a child of Spark's daemon) that computes most, None if none does."""
        workers = []
        for process in self._alive():
            try:
                parent = process.parent()
                if parent is not None and _DAEMON in process.cmdline() and _DAEMON in parent.cmdline():
                    process.cpu_percent()
                    workers.append(process)
            except psutil.Error:
                continue
        time.sleep(0.03)
        busy: dict[psutil.Process, float] = {}
        for process in workers:
            try:
                busy[process] = process.cpu_percent()
            except psutil.Error:
                continue
        best = max(busy, key=lambda process: busy[process], default=None)
        return best if best is not None and busy[best] else None

    def _alive(self) -> list[psutil.Process]:
        """The processes of the child's session that live."""
        found = []
        for process in psutil.process_iter():
            try:
                mine = os.getsid(process.pid) == self._process.pid
                if mine and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (ProcessLookupError, PermissionError, psutil.Error):
                continue
        return found

    def _last_words(self) -> str:
        return "It printed last:\n" + self._folder.log.read_text("utf-8", "replace")[-4000:]


def lost_tasks(log: str) -> int:
    """Tasks that were lost, and so run again; those that were at work when the query was stopped are not."""
    return sum("Lost task " in line and "TaskKilled" not in line for line in log.splitlines())


def _cpu(process: psutil.Process) -> float:
    """CPU seconds of a process and of those of its children that ended."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def _kill(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.Error:
        return  # it was quicker
