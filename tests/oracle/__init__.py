"""The brute-force oracle: every answer from the definition of `extent` and textbook Python."""

from tests.oracle.aggregates import AGGREGATES, Item, aggregate
from tests.oracle.closing import closed
from tests.oracle.query import OracleQuery, answer, tuples_of

__all__ = ["AGGREGATES", "Item", "OracleQuery", "aggregate", "answer", "closed", "tuples_of"]
