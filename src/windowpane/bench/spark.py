"""Spark's own `window()` against windowpane: the same files as micro-batches, the answers checked equal.

Where Spark's own takes too long to be waited for, the answers are checked against those of this process.

CPU seconds are those of all processes: the driver, the JVM and its Python workers. Both engines first run
over all data unmeasured, and each case over part of it, so that little is compiled or started while it is
measured: the JVM compiles its hot code in the background for some time. Both have the same settings.

Tumbling windows, where the two are close, are run more often and over more micro-batches, both engines in
turns, and the mean is taken: what the JVM takes differs by a third from one run to the next, and the least
of several runs by a tenth. Other cases differ by a multiple, and the least of a few runs is taken.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from windowpane.bench.report import Claim, Report
from windowpane.bench.runner import Progress
from windowpane.bench.spark_truth import asked, truth
from windowpane.spark.compare import built_in, checked, digest_of
from windowpane.spark.session import open_session

SECOND = 1_000_000
KEYS, DELAY_MS, SPAN_MS = 100, 2_000, 20 * 60 * 1_000
STATE = "org.apache.spark.sql.execution.streaming.state."
STORES = {
    "windowpane": STATE + "RocksDBStateStoreProvider",
    "built-in": STATE + "HDFSBackedStateStoreProvider",
}
"""Each engine with the state store that Spark gives it by default or that it needs."""
CASES: Mapping[str, tuple[tuple[int, int], ...]] = {
    "60/60": ((60, 60),),
    "60/1": ((60, 1),),
    "600/1": ((600, 1),),
    "3600/1": ((3600, 1),),
    "five": ((60, 60), (60, 10), (300, 60), (600, 30), (3600, 60)),
}


@dataclass(frozen=True)
class Scale:
    """How much is run: rows, files (micro-batches) and passes, and those of tumbling and slow cases."""

    rows: int
    files: int
    tumbling_files: int
    slow_rows: int | None
    passes: int
    tumbling_passes: int
    unmeasured: int

    def size(self, case: str) -> tuple[int, int]:
        """The rows and the micro-batches of a case."""
        if case.endswith("slow"):
            return self.slow_rows or 0, _SLOW_FILES
        files = self.tumbling_files if case == _TUMBLING else self.files
        return self.rows // self.files * files, files


_TUMBLING, _SLOW_FILES = "60/60", 2
FULL = Scale(
    rows=5_000_000,
    files=10,
    tumbling_files=30,
    slow_rows=1_000_000,
    passes=3,
    tumbling_passes=9,
    unmeasured=6,
)
QUICK = Scale(
    rows=500_000, files=2, tumbling_files=2, slow_rows=None, passes=1, tumbling_passes=1, unmeasured=1
)


@dataclass
class Measured:
    """One run: seconds of CPU by kind of process, of wall, and what came out."""

    cpu: float = float("inf")
    jvm: float = 0.0
    python: float = 0.0
    wall: float = 0.0
    answers: dict[str, int] = field(default_factory=dict)


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """All cases with both engines."""
    scale = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="windowpane-bench-") as folder:
        memory, messages = {"spark.driver.memory": "3g"}, Path(folder) / "spark.log"
        session = open_session("windowpane bench spark", "local[2]", memory, "OFF", messages)
        try:
            return _Bench(session, Path(folder), scale, progress).report()
        finally:
            session.stop()


class _Bench:
    def __init__(self, session: Any, folder: Path, scale: Scale, progress: Progress) -> None:
        self._session, self._folder, self._scale, self._progress = session, folder, scale, progress
        self._runs = 0

    def report(self) -> Report:
        scale = self._scale
        whole = self._files("whole", *scale.size("60/1"))
        some = self._files("warm", scale.rows // scale.files, 1)
        plan: list[tuple[str, str, Path]] = [
            ("windowpane", case, whole) for case in CASES if case != _TUMBLING
        ]
        plan += [("built-in", case, whole) for case in ("60/1", "five")]
        if scale.slow_rows is not None:
            slow = self._files("slow", *scale.size("600/1 slow"))
            plan += [("windowpane", "600/1 slow", slow), ("built-in", "600/1 slow", slow)]
        turns = scale.unmeasured + scale.tumbling_passes
        found = self._tumbling(turns, turns + len(plan))
        for i, (engine, case, folder) in enumerate(plan):
            self._progress(turns + i, turns + len(plan), f"{engine} {case}")
            if not case.endswith("slow"):
                self._run(engine, case, some)
            passes = 1 if engine == "built-in" else scale.passes
            found[engine, case] = min(
                (self._run(engine, case, folder) for _ in range(passes)), key=lambda m: m.cpu
            )
        return self._claims(found, self._truths(found, {case: folder for _, case, folder in plan}))

    def _truths(
        self, found: dict[tuple[str, str], Measured], folders: Mapping[str, Path]
    ) -> dict[str, dict[str, int]]:
        """What the cases should give: as Spark's own windows say, or else this process."""
        known = {case: m.answers for (engine, case), m in found.items() if engine == "built-in"}
        others = [case for _, case in found if case not in known]
        return known | {case: truth(self._session, folders[case], CASES[case]) for case in others}

    def _tumbling(self, turns: int, steps: int) -> dict[tuple[str, str], Measured]:
        """Both engines over tumbling windows in turns, of which the first are not measured."""
        rows, files = self._scale.size(_TUMBLING)
        folder = self._files("tumbling", rows, files, SPAN_MS * files // self._scale.files)
        found: dict[tuple[str, str], list[Measured]] = {(engine, _TUMBLING): [] for engine in STORES}
        for turn in range(turns):
            what = "unmeasured" if turn < self._scale.unmeasured else "both"
            self._progress(turn, steps, f"{what} {_TUMBLING}")
            for engine in STORES:
                found[engine, _TUMBLING].append(self._run(engine, _TUMBLING, folder))
        measured = {which: runs[self._scale.unmeasured :] for which, runs in found.items()}
        return {which: _mean(runs) for which, runs in measured.items()}

    def _claims(
        self, found: dict[tuple[str, str], Measured], truths: Mapping[str, Mapping[str, int]]
    ) -> Report:
        rows: list[dict[str, str | int | float | bool | None]] = []
        for (engine, case), m in found.items():
            same = None if engine == "built-in" else truths[case] == m.answers
            checked_by = "built-in" if ("built-in", case) in found else "in-process"
            rows.append(
                {
                    "engine": engine,
                    "window": case.removesuffix(" slow"),
                    "rows": self._scale.size(case)[0],
                    "micro_batches": self._scale.size(case)[1],
                    "answers": m.answers["answers"],
                    "cpu_s": round(m.cpu, 2),
                    "jvm_s": round(m.jvm, 2),
                    "python_s": round(m.python, 2),
                    "wall_s": round(m.wall, 2),
                    "same_answers": same,
                    "checked_by": None if engine == "built-in" else checked_by,
                }
            )
        same_answers = [row["same_answers"] for row in rows if row["same_answers"] is not None]
        verified = Claim("cases whose answers are the same", sum(map(bool, same_answers)), len(same_answers))
        return Report("spark", self._parameters(), rows, [verified, *self._bars(found)])

    def _bars(self, found: dict[tuple[str, str], Measured]) -> list[Claim]:
        def cpu(engine: str, case: str) -> float:
            return found[engine, case].cpu

        overlapping = [cpu("windowpane", case) for case in ("60/1", "600/1", "3600/1")]
        claims = [
            Claim(
                "CPU of 60/1, 600/1, 3600/1: largest over smallest",
                max(overlapping) / min(overlapping),
                1.3,
                at_most=True,
            ),
            Claim(
                "CPU of built-in over windowpane, 60/1",
                cpu("built-in", "60/1") / cpu("windowpane", "60/1"),
                5,
            ),
            Claim(
                "CPU of windowpane over built-in, tumbling",
                cpu("windowpane", "60/60") / cpu("built-in", "60/60"),
                1.3,
                at_most=True,
            ),
        ]
        if ("built-in", "600/1 slow") in found:
            ratio = cpu("built-in", "600/1 slow") / cpu("windowpane", "600/1 slow")
            claims.append(Claim("CPU of built-in over windowpane, 600/1", ratio, 100))
        return claims

    def _parameters(self) -> dict[str, int | str]:
        scale = self._scale
        return {
            "master": "local[2]",
            "keys": KEYS,
            "rows": scale.rows,
            "micro_batches": scale.files,
            "tumbling_micro_batches": scale.tumbling_files,
            "tumbling_passes": scale.tumbling_passes,
            "delay_ms": DELAY_MS,
        }

    def _run(self, engine: str, case: str, folder: Path) -> Measured:
        self._runs += 1
        windows = CASES[case.removesuffix(" slow")]
        source = (
            self._session.readStream.schema("ts timestamp, key int, value bigint")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(folder))
        )
        self._session.conf.set("spark.sql.streaming.stateStore.providerClass", STORES[engine])
        ours = engine == "windowpane"
        frames = [asked(source, windows).to_spark()] if ours else built_in(source, "2 seconds", windows)
        checkpoint = self._folder / f"checkpoint-{self._runs}"
        before, clock = _cpu(), time.perf_counter()
        answers = self._answers(frames, checkpoint)
        wall, after = time.perf_counter() - clock, _cpu()
        jvm, python = after.since(before)
        return Measured(jvm + python, jvm, python, wall, answers)

    def _answers(self, frames: list[Any], checkpoint: Path) -> dict[str, int]:
        """Run all frames to the end of the files; how many answers there are, and a digest of them."""
        running = []
        for i, frame in enumerate(frames):
            writer = checked(frame).writeStream.format("noop").trigger(availableNow=True)
            running.append(writer.option("checkpointLocation", f"{checkpoint}-{i}").start())
        total = {"answers": 0, "digest": 0, "tuples": 0}
        for query in running:
            query.awaitTermination()
            found = digest_of(query.recentProgress)
            total = {
                "answers": total["answers"] + found["answers"],
                "digest": total["digest"] ^ found["digest"],
                "tuples": total["tuples"] + found["tuples"],
            }
        return total

    def _files(self, name: str, rows: int, files: int, span: int = SPAN_MS) -> Path:
        """Events of 100 keys over a span of time, a fifth of them up to two seconds late."""
        folder = self._folder / name
        folder.mkdir()
        rng = np.random.default_rng(7)
        time_ = np.sort(rng.integers(0, span, rows))
        behind = np.where(rng.random(rows) < 0.2, rng.random(rows) * DELAY_MS, 0)
        order = np.argsort(time_ + behind, kind="stable")
        stamps = pa.array((time_[order] + 1_700_000_000_000) * 1000).cast(pa.timestamp("us", tz="UTC"))
        key = rng.integers(0, KEYS, rows).astype(np.int32)
        table = pa.table({"ts": stamps, "key": key, "value": rng.integers(0, 1000, rows)})
        for i in range(files):
            file = folder / f"{i:03d}.parquet"
            pq.write_table(table.slice(i * rows // files, rows // files), file)
            os.utime(file, (1_700_000_000 + i, 1_700_000_000 + i))  # Spark reads them by age
        return folder


def _mean(runs: list[Measured]) -> Measured:
    """The run that stands for several of the same answers."""
    cpu, jvm, python, wall = (
        sum(getattr(run, part) for run in runs) / len(runs) for part in ("cpu", "jvm", "python", "wall")
    )
    return Measured(cpu, jvm, python, wall, runs[-1].answers)


@dataclass(frozen=True)
class _Cpu:
    """CPU seconds so far: of the JVM, of Python processes by number, and of programs that the JVM ran."""

    jvm: float
    python: dict[int, float]
    ended: float
    of_jvm: frozenset[int]

    def since(self, before: _Cpu) -> tuple[float, float]:
        """Seconds of the JVM, and of all other processes. Workers that ended did so because they idled."""
        python = sum(spent - before.python.get(pid, 0.0) for pid, spent in self.python.items())
        # the JVM was told all that its ended children ever took, also before
        known = sum(before.python[pid] for pid in before.of_jvm - self.of_jvm)
        return self.jvm - before.jvm, python + self.ended - before.ended - known


def _cpu() -> _Cpu:
    me = psutil.Process()
    python, of_jvm = {me.pid: sum(me.cpu_times()[:2])}, set()
    jvm = ended = 0.0
    for process in me.children(recursive=True):
        try:
            times, name, parent = process.cpu_times(), process.name(), process.parent()
            below = parent is not None and "java" in parent.name()
        except psutil.Error:
            continue
        if "java" in name:
            jvm += times.user + times.system
            ended += times.children_user + times.children_system
        else:
            python[process.pid] = times.user + times.system
            if below:
                of_jvm.add(process.pid)
    return _Cpu(jvm, python, ended, frozenset(of_jvm))
