"""What a reader outside of Spark finds in a sink's directory by listing it, and programs to be stopped."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import duckdb
import psutil


def published(folder, form="parquet"):
    """All rows of all files below a folder."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        files = connection.sql(f"FROM read_{form}('{folder}/**/*.{form}', hive_partitioning = false)")
        return files.to_arrow_table()


class Program:
    """`windowpane run` as a process of its own, with its own group, so that a test can end it and Spark."""

    def __init__(self, job, *options):
        self.log = job.parent / "log.txt"
        command = [sys.executable, "-m", "windowpane", "run", str(job), *options]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self.kill()

    def wait_for(self, there, seconds=500):
        """Until something is there, while the program runs."""
        end = time.monotonic() + seconds
        while not there():
            assert self._process.poll() is None, f"the program ended: {self.log.read_text()}"
            assert time.monotonic() < end, f"it took too long: {self.log.read_text()}"
            time.sleep(0.05)

    def lose_a_worker(self):
        """Kill a Python worker of Spark's in the middle of its work, which the program should survive."""
        self.wait_for(self._killed_a_worker)

    def _killed_a_worker(self):
        for child in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.Error):
                forked = all("pyspark.daemon" in process.cmdline() for process in (child, child.parent()))
                if forked and child.status() == psutil.STATUS_RUNNING:
                    child.kill()
                    return True
        return False

    def stop(self, number):
        """Send the signal; the exit code and the seconds that it took."""
        asked = time.monotonic()
        self._process.send_signal(number)
        return self._process.wait(timeout=60), time.monotonic() - asked

    def kill(self):
        """End it and Spark at once, with no chance to tidy up."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self):
        """The exit code."""
        return self._process.wait(timeout=500)
