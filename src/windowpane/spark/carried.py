"""How programs get to workers, with the models and tables that users' functions hold, as large as they are.

Spark starts no stateful streaming query whose pickled processor has more than a megabyte: it makes a
broadcast of it, which its process beside the driver cannot read. That process does not look into bytes.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from pyspark import Broadcast
from pyspark.errors import PySparkException
from pyspark.serializers import CloudPickleSerializer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST = 1 << 19
"""Bytes that go with the processor."""


def carried(session: SparkSession, program: object) -> bytes:
    """The program as bytes, or a broadcast of them; to be sent before anything else is given to Spark.

    Spark sends broadcasts with the next function that it gets, those that a user's function names among them.
    """
    packed = _pickled(program)
    if len(packed) <= _MOST:
        return packed
    try:
        context = session.sparkContext
    except PySparkException:  # there is no context over Spark Connect
        return packed
    return _pickled(context.broadcast(packed))


def _pickled(given: object) -> bytes:
    packed: bytes = CloudPickleSerializer().dumps(given)  # type: ignore[no-untyped-call]
    return packed


def loaded(packed: bytes) -> Any:
    """What was packed."""
    found = pickle.loads(packed)  # noqa: S301 - the driver packed it
    return pickle.loads(found.value) if isinstance(found, Broadcast) else found  # noqa: S301 - as above
