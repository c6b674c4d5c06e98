"""Schemas: Arrow columns as Spark has them; a time without a zone stays one."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, TimestampNTZType


def spark_schema(session: SparkSession, schema: pa.Schema) -> StructType:
    """The columns as Spark knows them.

    Spark itself takes times without a zone for instants, unless `spark.sql.timestampType` says otherwise, and
    would show them hours earlier or later in a session whose zone is not UTC.
    """
    found = session.createDataFrame(schema.empty_table()).schema
    return StructType([_as_in(part, field) for part, field in zip(found.fields, schema, strict=True)])


def _as_in(found: StructField, arrow: pa.Field) -> StructField:
    return StructField(found.name, _type(found.dataType, arrow.type), found.nullable)


def _type(found: DataType, arrow: pa.DataType) -> DataType:
    """A type that Spark found for an Arrow type, but without a zone where that has none."""
    if pa.types.is_timestamp(arrow) and arrow.tz is None:
        return TimestampNTZType()
    if isinstance(found, StructType):
        return StructType([_as_in(part, field) for part, field in zip(found.fields, arrow, strict=True)])
    if isinstance(found, ArrayType):
        return ArrayType(_type(found.elementType, arrow.value_type), found.containsNull)
    if isinstance(found, MapType):
        key, item = _type(found.keyType, arrow.key_type), _type(found.valueType, arrow.item_type)
        return MapType(key, item, found.valueContainsNull)
    return found
