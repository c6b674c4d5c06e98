"""Run a job to its end or until it is asked to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any

from windowpane.jobs.build import answers, source_of, sparks, wholes
from windowpane.jobs.database import database_errors
from windowpane.jobs.document import BadJob
from windowpane.jobs.ends import ours
from windowpane.jobs.footers import Footers
from windowpane.jobs.job import Job, QuerySpec
from windowpane.jobs.several import all_at_once
from windowpane.jobs.show import Progress, progress_of_all
from windowpane.jobs.start import Beside, start
from windowpane.jobs.watch import Watch
from windowpane.spark import finish
from windowpane.spark.outputs import Outputs, counts_in
from windowpane.spark.session import ERRORS, reason
from windowpane.values.errors import WindowpaneError

FINISHED, FAILED, BAD_JOB, INTERRUPTED = 0, 1, 2, 130
"""The exit codes of `windowpane run`."""
GRACE = 9.0
"""Seconds that a stop may take before the process ends itself; the checkpoint is safe either way."""
_LOOK = 0.2
_SLOW = ("Python worker failed to connect back",)
"""How Spark says that a Python worker took more than ten seconds to start, a limit that no setting moves."""
_STARTS = 5

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
    source = source_of(job, session)
    work = (
        partial(_stream, job, answers(job, source.frame), files=source.files)
        if job.streaming
        else partial(_batch, wholes(job, source.frame))
    )
    if stop.is_set():
        return INTERRUPTED
    try:
        if source.files is not None:
            source.files.check()
        return work(stop, report)
    except BadJob:
        raise
    except (*ERRORS, WindowpaneError, OSError, *database_errors()) as error:
        if stop.is_set():  # a stop in the middle of a micro-batch may surface as its failure
            return INTERRUPTED
        raise JobFailed(reason(error)) from error


def _batch(built: list[tuple[QuerySpec, Outputs]], stop: threading.Event, report: Report) -> int:
    """Write every query's answers, and tell what became of its rows."""
    done: list[Progress] = []
    writes = [all_at_once(spec, outputs) for spec, outputs in built]  # all are ready before one is written
    for (spec, outputs), write in zip(built, writes, strict=True):
        if stop.is_set():
            return INTERRUPTED
        tagged = outputs.frame.persist()  # one pass gives both; a sink that keeps answers needs it on
        counts = counts_in(tagged)
        write(tagged)
        done.append(progress_of_all(spec.name, counts))
        report(done)
    return FINISHED


def _stream(
    job: Job,
    built: Sequence[tuple[QuerySpec, Any]],
    stop: threading.Event,
    report: Report,
    *,
    files: Footers | None,
) -> int:
    unseen = None if all(spec.strays or ours(spec.sink) for spec, _ in built) else files
    running: list[_Running] = []
    try:
        for spec, frame in built:
            running.append(_Running(job, spec, frame, files))
        _watch(running, stop, report, unseen)
        if job.trigger.kind == "drain" and not stop.is_set():
            for one in running:
                one.drain()
            _watch(running, stop, report, unseen)
        return INTERRUPTED if stop.is_set() else FINISHED
    finally:
        for one in running:
            one.query.stop()


def _watch(
    running: Sequence[_Running], stop: threading.Event, report: Report, unseen: Footers | None
) -> None:
    """Report until all queries ended or a stop is asked for; look at files that no micro-batch looks at."""
    over, known = False, [-1] * len(running)
    while not over:
        stopped = stop.wait(_LOOK)
        told = [one.watch.look() for one in running]
        batches = [progress.batch for progress in told]
        if unseen is not None and batches != known:
            unseen.check()
        known = batches
        report(told)
        active = any(one.query.isActive for one in running)  # asked first: what ends later is seen later
        again = [not stopped and one.started_again() for one in running]
        over = stopped or not (active or any(again))
    if unseen is not None and not stopped:
        unseen.check()
    report([one.watch.look() for one in running])


class _Running:
    """A query that runs, and is started again where Spark gave it up only because the machine is slow."""

    def __init__(self, job: Job, spec: QuerySpec, frame: Any, files: Footers | None) -> None:
        self._job, self._control = job, job.control(spec)
        beside = Beside(files)
        self._start = partial(sparks, spec.sink.node or spec.node, partial(start, job, spec, frame, beside))
        self._starts = 1
        self.query = self._start()
        self.watch = Watch(self.query, beside.told)

    def drain(self) -> None:
        """End the stream, so that every window comes out."""
        if self._control is not None:
            finish(self._control)
            self.query = self.watch.query = self._start()

    def started_again(self) -> bool:
        """Raise what made the query fail; True where to go on from the checkpoint was all it took."""
        error = self.query.exception()
        if error is None:
            return False
        slow = any(words in str(error) for words in _SLOW)
        if not slow or self._job.checkpoint is None or self._starts >= _STARTS:
            raise JobFailed(f"query {self.query.name!r}: {reason(error)}") from error
        self._starts += 1
        self.query = self.watch.query = self._start()
        return True
