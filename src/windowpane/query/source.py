"""Where the rows of a stream come from, and who runs a query over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windowpane.core.results import flattened
from windowpane.values.errors import BadQuery

if TYPE_CHECKING:
    from windowpane.query.query import Query

RUNTIMES: dict[str, Callable[..., Any]] = {}
"""Filled by the runtimes when they are imported: how to run and to start queries."""
FOREIGN: dict[str, Callable[[], Any]] = {}
"""Packages whose frames another runtime runs, and how to load that runtime; filled by the package itself."""


@dataclass
class Source:
    """Where rows come from: batches, which can be read once, another runtime's frame, or a query."""

    batches: Iterator[pa.RecordBatch] | None
    foreign: Any = None
    upstream: Query | None = None
    read: bool = field(default=False)

    @property
    def on_spark(self) -> bool:
        """Whether Spark runs it."""
        return self.foreign is not None if self.upstream is None else self.upstream.source.on_spark

    def take(self) -> Iterator[pa.RecordBatch]:
        """The batches, to run over in this process."""
        if self.on_spark:
            raise BadQuery("this stream is a Spark DataFrame, so Spark runs it. Use .to_spark().")
        if self.upstream is not None:
            return iter(flattened(self.upstream.run().table).to_batches())
        if self.batches is None:
            raise BadQuery(
                "this stream was made from a schema, so there is nothing to run over. Use .start() and push."
            )
        if self.read:
            raise BadQuery(
                "this stream was read already. Make the stream anew, or run all its queries with wp.run(...)."
            )
        self.read = True
        return self.batches
