"""The processor: Spark's calls, handed on. No window logic here, and nothing is imported before rows come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

from windowpane.spark.carried import carried

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

    from windowpane.spark.stored import Program

# Types and not texts, for which every task would ask the JVM twice.
_NAME = StructType().add("name", StringType())
_SLOT = StructType().add("lane", IntegerType()).add("slot", IntegerType())
_BYTES = StructType().add("bytes", BinaryType())


def processor(session: SparkSession, program: Program, token: str) -> StatefulProcessor:
    """What Spark runs for a program; `token` names the query in the memory of workers.

    Spark also sends it to a process beside the driver, which only asks what state there is. A class made
    here is sent whole, and the program as bytes, so that this process need not import all of windowpane.
    """
    packed = carried(session, program)
    paged = program.paged

    class Processor(StatefulProcessor):
        """Runs a program in the buckets of one task."""

        def init(self, handle: StatefulProcessorHandle) -> None:
            """Spark calls this once per task. Few states: each costs several milliseconds in every task."""
            blocks = handle.getMapState("blocks", _NAME, _BYTES)
            # blocks that are too many to be held at once, read one by one
            pages = handle.getMapState("pages", _SLOT, _BYTES) if paged else None
            self._maps = (blocks, pages)

        def handleInputRows(  # noqa: N802 - Spark's name
            self,
            key: Any,
            rows: Iterator[pd.DataFrame],
            timerValues: Any,  # noqa: ARG002, N803 - Spark's name, and there are no timers
        ) -> Iterator[pd.DataFrame]:
            """Spark calls this once per bucket and micro-batch."""
            from windowpane.spark.stored import handled  # noqa: PLC0415 - see above

            yield from handled(packed, token, self._maps, key, rows)

        def close(self) -> None:
            """Nothing is held outside the state."""

    return Processor()
