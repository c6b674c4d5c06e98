"""A run that dies at the n-th time that it passes a given point, as by `kill -9`; for the fault tests."""

import os
from pathlib import Path

from windowpane.core.spill.store import BlockStore


class Killer:
    """Ends this process at the n-th hit of a point."""

    def __init__(self, point, wait):
        self.point, self.left = point, wait

    def hit(self, point, last_words=lambda: None):
        if point == self.point:
            self.left -= 1
            if self.left < 0:
                last_words()
                os.kill(os.getpid(), 9)

    def passing(self, point, call, *, before=False):
        def wrapped(*given):
            if before:
                self.hit(point)
            out = call(*given)
            if not before:
                self.hit(point)
            return out

        return wrapped

    def watch(self, runner):
        for medium in runner._media:
            if not hasattr(medium, "watched"):
                medium.watched, write, sync = True, medium._pwrite, medium._fsync

                def pwrite(view, at, write=write):
                    self.hit("torn write", lambda: write(view[:500], at))
                    return write(view, at)

                medium._pwrite, medium._fsync = pwrite, self.passing("after sync", sync)

    def everywhere(self):
        """Watch what all runs of this process share."""
        renamed = self.passing("before rename", Path.replace, before=True)
        Path.replace = self.passing("after rename", renamed)
        BlockStore._purge = self.passing("purge", BlockStore._purge)


def in_a_child(run):
    """Run a function in a fork of this process, which shares nothing back; its status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
