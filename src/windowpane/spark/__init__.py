"""Layer 6: run a plan on Apache Spark. The only package that imports pyspark; only its public API."""

from windowpane.spark import latest  # noqa: F401 - it registers itself as a runtime
from windowpane.spark.classes import java_options
from windowpane.spark.control import finish, punctuate
from windowpane.spark.interpreter import python
from windowpane.spark.outputs import Outputs, counts_of, stalest_of
from windowpane.spark.run import schema_of, selected, to_spark
from windowpane.spark.session import SETTINGS

__all__ = [
    "SETTINGS",
    "Outputs",
    "counts_of",
    "finish",
    "java_options",
    "punctuate",
    "python",
    "schema_of",
    "selected",
    "stalest_of",
    "to_spark",
]
