"""The columns that a function is declared to return, as Arrow has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from windowpane.query import need_columns
from windowpane.spark.run import schema_of
from windowpane.spark.schemas import spark_schema
from windowpane.values.errors import BadQuery


def declared(session: SparkSession, schema: Any) -> pa.Schema:
    """An Arrow schema, a StructType or a text as an Arrow schema."""
    if isinstance(schema, pa.Schema):
        return _as_spark_has(session, schema)
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


def _as_spark_has(session: SparkSession, schema: pa.Schema) -> pa.Schema:
    """The same columns in the types in which Spark takes them: microseconds, and texts for a dictionary's."""
    try:
        return schema_of(session.createDataFrame([], spark_schema(session, schema)))
    except (PySparkException, ValueError) as error:
        field = next((field for field in schema if not _known(session, field)), None)
        if field is None:
            raise
        raise BadQuery(
            f"apply(): Spark has no type for the column {field.name!r} of the schema, which is {field.type}. "
            "Declare another type that holds its values."
        ) from error


def _known(session: SparkSession, field: pa.Field) -> bool:
    try:
        schema_of(session.createDataFrame([], spark_schema(session, pa.schema([field]))))
    except (PySparkException, ValueError):
        return False
    return True
