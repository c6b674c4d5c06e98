"""A Spark session for programs of our own, and how Spark's long errors are told in a line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

from windowpane.spark.classes import java_options
from windowpane.spark.interpreter import python

ERRORS = (PySparkException, Py4JError)
"""What Spark raises."""
SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # a micro-batch writes what changed, not a snapshot of the whole store
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # else every local file of a checkpoint has a second one with checksums, which nothing reads; a program
    # (readlink, chmod) is run several times for each
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    # else the size of the Arrow batch is computed anew for every row that is sent to Python, 0.1 microseconds
    # for three columns; so the rows are limited instead: those of a quarter of a megabyte each still fit
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 13),
}
"""What a session needs (the state store), and what makes it faster, for `SparkSession.builder.config`."""
DEFAULTS = {
    **SETTINGS,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # readers outside of Spark know it as UTC
    "spark.sql.streaming.stopTimeout": "8s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
MASTER = "local[2,4]"
"""Two threads, and four tries of a task: with one, the loss of a Python worker would end the job."""
_CAUSES = re.compile(r"^Caused by: [\w.$]+: (.+(?:\n(?!\s+at |\s*\.\.\. \d|Caused by: ).+)*)", re.MULTILINE)
_JAVA = "spark.driver.extraJavaOptions"
_STACK = "-Xss16m"
"""Spark looks into the text of an error with a pattern that needs stack for each character. That of a query
that is stopped within `foreachBatch` is so long that its thread ended in a thousand lines of overflow."""


def open_session(
    name: str, master: str | None, settings: Mapping[str, str], log: str, messages: Path | None = None
) -> SparkSession:
    """A session with our defaults, where the settings do not say otherwise.

    `messages` is a file for what Spark's processes print, which else goes to this program's standard error.
    """
    master = master or settings.get("spark.master", MASTER)
    os.environ.setdefault("PYSPARK_PYTHON", python(master))
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    java = f"{_STACK} {java_options()} {settings.get(_JAVA, '')}".strip()
    for key, value in {**DEFAULTS, **settings, _JAVA: java}.items():
        if key != "spark.master":
            builder = builder.config(key, value)
    with _printing_to(messages):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel(log)
    return session


@contextmanager
def _printing_to(file: Path | None) -> Iterator[None]:
    """Let processes that start within print to a file; they inherit standard error by its number, 2."""
    if file is None:
        yield
        return
    kept = os.dup(2)
    try:
        with file.open("ab") as target:
            os.dup2(target.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def reason(error: BaseException) -> str:
    """What went wrong, in a line: our own error within Spark's if there is one, else Spark's first words."""
    text = str(error)
    own = re.findall(r"windowpane\.[\w.]*errors\.\w+: (.+)", text)
    if own:
        return str(own[-1]).strip()
    raised = re.findall(r"^(?:\w+\.)*(?:\w*Error|\w*Exception): (.+)$", text, re.MULTILINE)
    causes = [" ".join(cause.split()) for cause in _CAUSES.findall(text) if "Traceback" not in cause]
    if "Traceback (most recent call last)" in text and raised:
        if str(raised[-1]).startswith("An error occurred while calling") and causes:
            return " ".join(dict.fromkeys((causes[0], causes[-1])))  # what Java could not do, and why
        return str(raised[-1]).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        first = re.sub(r"^:? ?[\w.$]+: ", "", lines[1])  # what Java raised, without the name of its class
        return " ".join(dict.fromkeys((first, *causes[-1:])))
    return lines[0] if lines else type(error).__name__


ANSWERED, ARRIVED = "job answers", "job input"
"""The names of what is counted, in the progress that Spark reports."""


def quoted(name: str) -> str:
    """A column's name as Spark SQL takes any."""
    return "`" + name.replace("`", "``") + "`"


def observed(answers: DataFrame) -> DataFrame:
    """Answers that are counted as they pass: `rows`, and the end of the newest `window`."""
    return answers.observe(ANSWERED, *_newest())


def newest_of(answers: DataFrame) -> dict[str, Any]:
    """The same of answers that are there."""
    (row,) = answers.agg(*_newest()).collect()
    return row.asDict()


def _newest() -> tuple[Column, Column]:
    newest = F.max(F.col("window.end")).cast("string").alias("newest")
    return F.count(F.lit(1)).alias("rows"), newest


def observed_input(rows: DataFrame, time: str) -> DataFrame:
    """Rows whose newest `time` is told: as `moment` in microseconds, or as the `number` that it is."""
    kind = dict(rows.dtypes).get(time, "")
    newest = F.max(F.col(quoted(time)))
    if kind in {"timestamp", "timestamp_ntz"}:
        return rows.observe(ARRIVED, F.unix_micros(newest.cast("timestamp")).alias("moment"))
    if kind in {"tinyint", "smallint", "int", "bigint"}:
        return rows.observe(ARRIVED, newest.cast("bigint").alias("number"))
    return rows
