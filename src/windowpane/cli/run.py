"""`windowpane run`: run a job file on Spark, with a live display, until it is done or asked to stop."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

if TYPE_CHECKING:
    from windowpane.jobs import Job
    from windowpane.jobs.run import Interrupts, Report
    from windowpane.jobs.show import Progress


@dataclass(frozen=True)
class _Wishes:
    check: bool
    explain: bool
    quiet: bool
    master: str | None
    log: str | None


def run(
    job: Annotated[Path, typer.Argument(help="The job file: .yaml, .yml or .toml.")],
    check: Annotated[bool, typer.Option("--check", help="Check the job and stop.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print the plan and stop.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress display.")] = False,
    master: Annotated[
        str | None, typer.Option(help="Spark's master; else the job's, else local[2,4].")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(help="Show Spark's log from this level on, such as WARN; else it is kept aside."),
    ] = None,
) -> None:
    """Run a job file on Spark: a source, queries, a sink.

    The exit status is 0 when the job finished, 1 when it failed, 2 when the job file is wrong (with --check:
    1) and 130 when Ctrl-C or SIGTERM stopped it. The next run goes on from the checkpoint.
    """
    from windowpane.jobs import BadJob
    from windowpane.jobs.lock import CheckpointInUse
    from windowpane.jobs.run import BAD_JOB, FAILED, INTERRUPTED, Interrupts, JobFailed

    interrupts = Interrupts()
    interrupts.watch()
    try:
        code = _run(job, interrupts, _Wishes(check, explain, quiet, master, log))
    except BadJob as error:
        _complain(str(error))
        code = FAILED if check else BAD_JOB
    except CheckpointInUse as error:
        _complain(str(error))
        code = FAILED
    except JobFailed as error:
        _complain(f"the job failed: {error}")
        code = FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    raise typer.Exit(code)


def _complain(message: str) -> None:
    Console(stderr=True, soft_wrap=True).print(
        f"windowpane: {message}", style="red", markup=False, highlight=False
    )


def _run(file: Path, interrupts: Interrupts, wishes: _Wishes) -> int:
    from windowpane.jobs import load
    from windowpane.jobs.lock import held

    job = load(file)
    looks = wishes.explain or wishes.check
    with (
        held(None if looks else job.checkpoint),  # before Spark, which takes seconds to start
        _session(job, file.name, interrupts, wishes) as session,
    ):
        if interrupts.asked.is_set():
            from windowpane.jobs.run import INTERRUPTED

            return INTERRUPTED
        if looks:
            return _look(job, session, file, explain=wishes.explain)
        return _live(job, session, interrupts, quiet=wishes.quiet)


@contextmanager
def _session(job: Job, name: str, interrupts: Interrupts, wishes: _Wishes) -> Iterator[Any]:
    from windowpane.jobs.run import JobFailed
    from windowpane.spark.session import ERRORS, open_session, reason

    level, aside = ("ERROR", _log_file()) if wishes.log is None else (wishes.log.upper(), None)
    try:
        session = open_session(f"windowpane {name}", wishes.master or job.master, job.spark, level, aside)
        interrupts.watch()
        try:
            yield session
        finally:
            session.stop()
    except JobFailed as error:
        raise JobFailed(f"{error}{_kept(aside)}") from error
    except ERRORS as error:
        raise JobFailed(f"{reason(error)}{_kept(aside)}") from error
    except BaseException:
        _forget(aside)
        raise
    _forget(aside)


def _forget(aside: Path | None) -> None:
    if aside is not None:
        aside.unlink(missing_ok=True)


def _log_file() -> Path:
    handle, name = tempfile.mkstemp(prefix="windowpane-", suffix=".log")
    os.close(handle)
    return Path(name)


def _kept(aside: Path | None) -> str:
    return "" if aside is None else f"\nSpark's log is in {aside}."


def _look(job: Job, session: Any, file: Path, *, explain: bool) -> int:
    from windowpane.jobs.build import answers, queries, read
    from windowpane.jobs.several import need_columns

    if explain:
        for query in queries(job, read(job, session)):
            typer.echo(query.explain(), nl=False)
    else:
        for spec, found in answers(job, read(job, session)):
            need_columns(spec, found)
        typer.echo(f"{file}: the job is sound")
    return 0


def _live(job: Job, session: Any, interrupts: Interrupts, *, quiet: bool) -> int:
    from windowpane.jobs.run import run as run_job

    console = Console(stderr=True)
    if quiet:
        code = run_job(job, session, interrupts.asked, lambda _: None)
    elif console.is_terminal:
        from windowpane.jobs.show import progress_table

        with Live(console=console, auto_refresh=False, redirect_stdout=sys.stdout.isatty()) as live:
            title = "Ctrl-C stops; the next run goes on from there"
            code = run_job(
                job, session, interrupts.asked, lambda p: live.update(progress_table(p, title), refresh=True)
            )
    else:
        code = run_job(job, session, interrupts.asked, _lines())
    _print_memory(job, session)
    return code


def _lines() -> Report:
    """Progress as lines on standard error: of each micro-batch, or of the last since the report before."""
    from windowpane.jobs.show import progress_line

    told: dict[str, int] = {}

    def report(all_: Sequence[Progress]) -> None:
        for progress in all_:
            if progress.batch > told.get(progress.query, -1):
                told[progress.query] = progress.batch
                typer.echo(progress_line(progress), err=True)

    return report


def _print_memory(job: Job, session: Any) -> None:
    """What is in memory is shown at the end, since it ends with the job."""
    from windowpane.jobs.show import table_text

    for spec in job.queries:
        name = spec.name if job.streaming else spec.sink.table
        if spec.sink.format == "memory" and session.catalog.tableExists(name):  # not if it never started
            table, rows = session.table(name), spec.sink.rows
            total, first = table.count(), table.limit(rows).toArrow()
            typer.echo(table_text(first, f"{spec.name}: {total:,} answers", rows, total), nl=False)
