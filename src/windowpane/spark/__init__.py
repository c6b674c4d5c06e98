"""Layer 6: run a plan on Apache Spark. The only package that imports pyspark; only its public API."""

from windowpane.spark.run import schema_of, to_spark

__all__ = ["schema_of", "to_spark"]
