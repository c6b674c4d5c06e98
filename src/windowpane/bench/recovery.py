"""Kill a streaming run on Spark again and again, and compare what it published in the end with the truth.

A child process runs the queries of `recovery_job`, one family after the other. It is killed with SIGKILL, the
driver with its JVM and all Python workers at once, and started again from its checkpoint, until all kills are
done. In the last life one Python worker alone is killed in the middle of its work, which the run survives;
then it ends and drains.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from windowpane.bench.recovery_child import Child
from windowpane.bench.recovery_job import (
    FAMILIES,
    KEYS,
    MASTER,
    Folder,
    in_process,
    published,
    write_input,
)
from windowpane.bench.recovery_truth import Truth
from windowpane.bench.report import Claim, Report, Row
from windowpane.bench.runner import Progress

OFFSET, PUBLISHED, STAGED, NONE = "offset", "published", "staged", "none"
"""Where a life ends: up to 0.9 s after a file appeared in the log of offsets; as soon as an output of a
micro-batch is published, which Spark has not noted then; as soon as one is being written, which may well be
the repeat of a micro-batch that was killed before; or by itself."""
LONGEST_DELAY = 0.9


@dataclass(frozen=True)
class Scale:
    """How much is done: where each life ends, and how many rows a micro-batch has."""

    ends: tuple[str, ...]
    rows: int = 300
    seed: int = 1
    family: str = "slices"

    @property
    def files(self) -> int:
        """As many micro-batches as the lives may go through, and some for the last to lose a task in."""
        return 3 * len(self.ends) + 12


_ENDS = (*((OFFSET,) * 5), PUBLISHED, *((OFFSET,) * 5), STAGED)
KILLS = {"slices": 24, "slidem": 12, "upstream": 12}
QUICK = Scale((OFFSET, PUBLISHED, STAGED))


@dataclass(frozen=True)
class Life:
    """One start of the child: how it ended, and what the checkpoint held then.

    `resumed_s` is the time from the start to the first commit, `resumed_cpu_s` the CPU time of all processes
    until then, `surplus` the rows that a reader of the published files finds and should not, `lost_workers`
    those that were killed alone, and `lost_tasks` those that ran again for it.
    """

    number: int
    end: str
    delay_s: float
    resumed_s: float | None = None
    resumed_cpu_s: float | None = None
    offset: int = -1
    commit: int = -1
    surplus: int = 0
    lost_tasks: int = 0
    lost_workers: int = 0

    @property
    def killed(self) -> bool:
        """Whether it was killed."""
        return self.end != NONE

    @property
    def torn(self) -> bool:
        """Whether it was killed within a micro-batch."""
        return self.killed and self.offset > self.commit


@dataclass(frozen=True)
class Outcome:
    """What all lives came to: rows missing and extra, and those in which an in-process run differs."""

    lives: tuple[Life, ...]
    missing: int
    extra: int
    differing: int | None

    @property
    def kills(self) -> int:
        """Kills of the whole child."""
        return sum(life.killed for life in self.lives)


def run(quick: bool, progress: Progress, kills: float | None = None) -> Report:  # noqa: FBT001 - as every benchmark
    """Kill, restart and compare; `kills`: how often in each family."""
    scales = (QUICK,) if quick else tuple(scale_of(family, kills) for family in FAMILIES)
    rows: list[Row] = []
    claims: list[Claim] = []
    for scale in scales:
        with tempfile.TemporaryDirectory(prefix="windowpane-bench-") as folder:
            outcome = recover(Path(folder), scale, progress)
        rows += [{"family": scale.family, **asdict(life)} for life in outcome.lives]
        claims += claims_of(scale, outcome)
    parameters: Row = {
        "master": MASTER,
        "keys": KEYS,
        "micro_batches": sum(scale.files for scale in scales),
        "rows": sum(scale.files * scale.rows for scale in scales),
        "seed": scales[0].seed,
    }
    return Report("recovery", parameters, rows, claims)


def scale_of(family: str, kills: float | None) -> Scale:
    """So many kills of a family, or the usual number, at points of all kinds."""
    return Scale(tuple(islice(cycle(_ENDS), int(kills or KILLS[family]))), family=family)


def claims_of(scale: Scale, outcome: Outcome) -> list[Claim]:
    """Nothing missing, nothing extra, and work goes on soon."""
    lives = outcome.lives
    resumed = [life.resumed_s for life in lives[1:] if life.resumed_s is not None]
    again = max(lives[-1].lost_tasks - lives[-1].lost_workers, 0)
    claims = [
        Claim("kills of driver, JVM and workers", outcome.kills, len(scale.ends)),
        Claim("kills within a micro-batch", sum(life.torn for life in lives), 1),
        Claim("rows missing", outcome.missing, 0, at_most=True),
        Claim("rows extra", outcome.extra, 0, at_most=True),
        Claim("surplus rows for readers after a kill", sum(x.surplus for x in lives), 0, at_most=True),
        Claim("tasks lost with a Python worker, and made up for", lives[-1].lost_tasks, 1),
        Claim("tasks run again beyond one for each worker killed", again, 0, at_most=True),
        Claim("seconds to resume, median", median(resumed) if resumed else float("nan"), 30, at_most=True),
    ]
    if outcome.differing is not None:
        name = "rows in which the in-process run differs"
        claims.append(Claim(name, outcome.differing, 0, at_most=True))
    return [replace(claim, name=f"{scale.family}: {claim.name}") for claim in claims]


def recover(path: Path, scale: Scale, progress: Progress) -> Outcome:
    """Run below a folder to the end, with kills on the way."""
    folder, chance = Folder(path, scale.family), random.Random(scale.seed)  # noqa: S311 - seeded, not secret
    parts, truth = write_input(folder, scale.files, scale.rows, scale.seed)
    ends = (*scale.ends, NONE)
    lives: list[Life] = []
    for i, end in enumerate(ends):
        progress(i, len(ends), f"{scale.family}, life {i + 1}")
        delay = round(chance.random() * LONGEST_DELAY, 3) if end == OFFSET else 0.0
        lives.append(_seen(folder, _lived(folder, Life(i, end, delay)), truth))
        if not lives[-1].killed:
            break
    found, here = published(folder), in_process(folder, parts)
    compared = [truth[name].compare(found[name]) for name in truth]
    missing, extra = sum(few for few, _ in compared), sum(many for _, many in compared)
    differing = None if here is None else sum(sum(truth[name].compare(here[name])) for name in here)
    return Outcome(tuple(lives), missing, extra, differing)


def _lived(folder: Folder, life: Life) -> Life:
    """Start the child, and kill it where the life says or let it come to its end."""
    before = _mark(folder, life.end)
    with Child(folder) as child:
        if life.killed and child.until(lambda: _mark(folder, life.end) != before):
            time.sleep(life.delay_s)
            child.look()
            child.kill()
            return replace(life, resumed_s=child.resumed, resumed_cpu_s=child.resumed_cpu)
        known = child.lost()
        kills = 0 if life.killed else child.lose_a_worker()
        child.finish()
        lived = replace(life, end=NONE, resumed_s=child.resumed, resumed_cpu_s=child.resumed_cpu)
        return replace(lived, lost_workers=kills, lost_tasks=child.lost() - known if kills else 0)


def _mark(folder: Folder, end: str) -> object:
    """What changes when the point is reached that a life is to end at."""
    match end:
        case "offset":
            return folder.newest("offsets")
        case "published":
            return sorted(path for name in folder.outputs for path in folder.out(name).glob("batch=*"))
        case "staged":
            # a repeat has the name of what was killed, but is another directory
            return {
                (path, path.stat().st_ino)
                for name in folder.outputs
                for path in folder.out(name).parent.glob(f".{name}.staging/*/batch=*")
            }
        case _:
            return None


def _seen(folder: Folder, life: Life, truth: Mapping[str, Truth]) -> Life:
    """The life, with what it left behind."""
    found = published(folder)
    surplus = sum(truth[name].compare(found[name])[1] for name in truth)
    return replace(life, offset=folder.newest("offsets"), commit=folder.newest("commits"), surplus=surplus)
