"""A job: where rows come from, what is asked of them, where answers go. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from windowpane.jobs.document import Node
from windowpane.plan.nodes import AnyAggregate, Emit
from windowpane.values.paths import local_path
from windowpane.values.windows import Window

TriggerKind = Literal["processing_time", "available_now", "drain", "once", "batch"]
Malformed = Literal["reject", "fail", "keep"]
"""What becomes of a record that cannot be read as the schema says, or of a file that lacks columns."""
NullKeys = Literal["reject", "keep"]


@dataclass(frozen=True)
class Source:
    """A Spark source by its format; `schema` is DDL text, `select` and `where` are Spark SQL."""

    format: str
    path: str | None = None
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    select: tuple[str, ...] = ()
    where: str | None = None
    malformed: Malformed = "reject"

    @property
    def in_values(self) -> bool:
        """Whether rows are JSON texts within the source's own records."""
        return self.schema is not None and self.format in {"kafka", "socket"}

    @property
    def of_texts(self) -> bool:
        """Whether rows are read from texts, so that one may be malformed."""
        return self.in_values or self.format in {"csv", "json"}

    @property
    def of_files(self) -> bool:
        """Whether rows are read from files that know their columns, so that one may lack some."""
        return self.format in {"parquet", "orc"}


@dataclass(frozen=True)
class QuerySpec:
    """One query over the job's stream, and the sink that its answers go to."""

    name: str
    windows: tuple[Window, ...]
    aggregates: tuple[AnyAggregate, ...]
    keys: tuple[str, ...] | None
    emit: Emit
    sink: Sink
    node: Node = field(compare=False, repr=False)
    strays: Mapping[str, Sink] = field(default_factory=dict)
    """Where late rows and rejects go, by the name of the output."""


@dataclass(frozen=True)
class Sink:
    """Where answers go: a Spark format, or `sqlite` and `postgresql` by upsert."""

    format: str
    path: str | None = None
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    rows: int = 20
    node: Node | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Trigger:
    """When micro-batches are made.

    `drain` takes what is there and then closes every window; `batch` does so as one batch job.
    """

    kind: TriggerKind = "processing_time"
    every: int = 1_000_000


@dataclass(frozen=True)
class Job:
    """A whole job file.

    `stream` holds the arguments of `wp.stream` but for the source; `memory` is the bytes that the state of
    each query may take in each bucket. `null_keys`: what becomes of a row with a null in a key of a query.
    """

    source: Source
    stream: Mapping[str, Any]
    queries: tuple[QuerySpec, ...]
    trigger: Trigger
    checkpoint: str | None
    master: str | None
    spark: Mapping[str, str]
    memory: int | None
    document: Node = field(compare=False, repr=False)
    null_keys: NullKeys = "reject"

    @property
    def streaming(self) -> bool:
        """Whether Spark runs it as a stream."""
        return self.trigger.kind != "batch"

    def control(self, query: QuerySpec) -> str | None:
        """The folder through which a query's stream can be ended, where a checkpoint has room for it.

        Whatever the trigger: a checkpoint is good for as many sources as it began with, and the next run may
        be one that drains.
        """
        if not self.streaming or self.checkpoint is None or local_path(self.checkpoint) is None:
            return None
        return f"{self.checkpoint}/{query.name}-control"

    def section(self, name: str) -> Node:
        """A top-level part of the file, or the whole where it is not there."""
        assert isinstance(self.document.value, dict)
        return self.document.value.get(name, self.document)
