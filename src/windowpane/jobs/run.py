"""Run a job to its end or until it is asked to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any

from windowpane.jobs.build import answers, sparks
from windowpane.jobs.document import BadJob
from windowpane.jobs.job import Job
from windowpane.jobs.show import Progress
from windowpane.jobs.watch import Watch
from windowpane.jobs.write import start, write_once
from windowpane.spark.session import ERRORS, reason
from windowpane.values.errors import WindowpaneError

FINISHED, FAILED, BAD_JOB, INTERRUPTED = 0, 1, 2, 130
"""The exit codes of `windowpane run`."""
GRACE = 9.0
"""Seconds that a stop may take before the process ends itself; the checkpoint is safe either way."""
_LOOK = 0.2

Report = Callable[[Sequence[Progress]], None]


class JobFailed(WindowpaneError, RuntimeError):
    """A job that started and then failed."""


class Interrupts:
    """Ctrl-C and SIGTERM ask for a stop; a second one, or a stop that takes too long, ends the process."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def watch(self) -> None:
        """Take the signals over; again after Spark started, which takes Ctrl-C for itself."""
        signal.signal(signal.SIGINT, self._on_signal)
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked.is_set():
            os._exit(INTERRUPTED)
        self.asked.set()
        timer = threading.Timer(GRACE, os._exit, [INTERRUPTED])
        timer.daemon = True
        timer.start()


def run(job: Job, session: Any, stop: threading.Event, report: Report) -> int:
    """Run the job; FINISHED or INTERRUPTED. A failure is a `JobFailed`."""
    built = answers(job, session)
    if stop.is_set():
        return INTERRUPTED
    try:
        if not job.streaming:
            for spec, frame in built:
                write_once(spec, frame)
            return FINISHED
        return _stream(job, built, stop, report)
    except BadJob:
        raise
    except (*ERRORS, WindowpaneError) as error:
        if stop.is_set():  # a stop in the middle of a micro-batch may surface as its failure
            return INTERRUPTED
        raise JobFailed(reason(error)) from error


def _stream(job: Job, built: Sequence[tuple[Any, Any]], stop: threading.Event, report: Report) -> int:
    running: list[Any] = []
    try:
        for spec, frame in built:
            running.append(sparks(spec.sink.node or spec.node, partial(start, job, spec, frame)))
        watches = [Watch(query) for query in running]
        while any(query.isActive for query in running) and not stop.wait(_LOOK):
            report([watch.look() for watch in watches])
            _raise_failures(running)
        _raise_failures(running)
        report([watch.look() for watch in watches])
        return INTERRUPTED if stop.is_set() else FINISHED
    finally:
        for query in running:
            query.stop()


def _raise_failures(running: Sequence[Any]) -> None:
    for query in running:
        error = query.exception()
        if error is not None:
            raise JobFailed(f"query {query.name!r}: {reason(error)}") from error
