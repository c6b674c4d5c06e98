"""How the functions behind update queues get to the workers that call them, with models as large as they are.

Spark starts no stateful streaming query whose pickled processor has more than a megabyte: it makes a
broadcast of it, which its process beside the driver cannot read.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.errors import PySparkException
from pyspark.serializers import CloudPickleSerializer

from windowpane.spark.queue_spec import QueueSpec

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

_MOST = 1 << 19
"""Bytes of functions that go with the processor."""


@dataclass(frozen=True)
class _Broadcasted:
    """A function that a worker loads when it is first called there."""

    function: Broadcast[Any]

    def __call__(self, rows: pd.DataFrame) -> Any:
        return self.function.value(rows)


class _Pickled:
    """Is loaded as the function itself: Spark's broadcasts take none that was made within another."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __reduce__(self) -> Any:
        return pickle.loads, (self._data,)  # noqa: S301 - the driver packed it


def carried(session: SparkSession, specs: Sequence[QueueSpec]) -> tuple[QueueSpec, ...]:
    """The queues, large functions as broadcasts; to be pickled before anything else is given to Spark.

    Spark sends broadcasts with the next function that it gets, those that a user's function names among them.
    """
    most = _MOST // len(specs)
    return tuple(_carried(session, spec, most) for spec in specs)


def _carried(session: SparkSession, spec: QueueSpec, most: int) -> QueueSpec:
    data: bytes = CloudPickleSerializer().dumps(spec.function)  # type: ignore[no-untyped-call]
    if len(data) <= most:
        return spec
    try:
        context = session.sparkContext
    except PySparkException:  # there is no context over Spark Connect
        return spec
    return replace(spec, function=_Broadcasted(context.broadcast(_Pickled(data))))


def left_out(specs: Sequence[QueueSpec]) -> tuple[QueueSpec, ...]:
    """The queues as tasks have them that send rows: without functions, which would be loaded in each."""
    return tuple(replace(spec, function=_none) for spec in specs)


def _none(rows: pd.DataFrame) -> pd.DataFrame:
    return rows
