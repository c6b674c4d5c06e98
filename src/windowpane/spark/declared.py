"""The columns that a function is declared to return, as Arrow has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from windowpane.query import need_columns
from windowpane.spark.run import schema_of
from windowpane.values.errors import BadQuery


def declared(session: SparkSession, schema: Any) -> pa.Schema:
    """An Arrow schema, a StructType or a text as an Arrow schema."""
    if isinstance(schema, pa.Schema):
        return schema
    remedy = "Give an Arrow schema, a StructType, or a text such as 'key string, score double'."
    if not isinstance(schema, str | StructType):
        raise BadQuery(f"apply(): the schema is {schema!r}. {remedy}")
    try:
        frame = session.createDataFrame([], schema)
        need_columns(frame.columns)
        return schema_of(frame)
    except PySparkException as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "no reason told")
        raise BadQuery(
            f"apply(): Spark takes the schema {schema!r} for none: {reason.strip().rstrip('.')}. {remedy}"
        ) from error
