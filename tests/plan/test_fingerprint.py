"""What of a plan its state depends on: a restart with any other plan is refused, and says why."""

import json
from dataclasses import dataclass

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import BadState
from windowpane.plan.fingerprint import fingerprint, need_same
from windowpane.query import together

ROWS = pa.table({"t": [1, 2, 3], "v": [1, 1, 1], "x": [100, 100, 100]})


def stream_of(source=None, **options):
    how = {"schema": ROWS.schema} if source is None else {}
    return wp.stream(source, time="t", delay=10, **how, **options)


def stored(*queries):
    """The fingerprint as it comes back from a checkpoint."""
    return json.loads(json.dumps(fingerprint(together(queries)[0])))


def two(stream):
    window = stream.window(wp.tumbling(5))
    return window.agg(s=wp.sum("v"), name="q1"), window.agg(s=wp.sum("x"), name="q2")


def test_queries_in_another_order_are_another_plan():
    first, second = two(stream_of())
    need_same(stored(first, second), together([first, second])[0])
    with pytest.raises(BadState, match=r"in the order q1, q2, and are now in the order q2, q1"):
        need_same(stored(first, second), together([second, first])[0])


def test_a_run_does_not_go_on_with_its_queries_in_another_order():
    """It answered each query with the other's state."""
    first, second = two(stream_of())
    runner = wp.start(first, second)
    runner.push(ROWS)
    snapshot = runner.snapshot().to_bytes()
    with pytest.raises(BadState, match="in the order"):
        wp.resume(snapshot, second, first)
    tables = wp.resume(snapshot, first, second).close().tables
    assert {name: table["s"].to_pylist() for name, table in tables.items()} == {"q1": [3], "q2": [300]}


@dataclass(frozen=True)
class Scaled(wp.UserAggregate):
    """The sum of what a function makes of a column."""

    scale: object
    columns: tuple = ("v",)
    algebra: object = wp.Algebra("distributive")
    type: object = pa.int64()

    def lift(self, v):
        return (self.scale(v),)

    def combine(self, a, b):
        return (a[0] + b[0],)

    def lower(self, partial):
        return partial[0]

    def identity(self):
        return (0,)


def test_a_users_aggregate_that_holds_a_function_is_the_same_in_another_worker():
    """The plan goes to each worker as bytes, where the function has another address."""
    from pyspark import cloudpickle

    def query(function):
        return stream_of().window(wp.tumbling(5)).agg(s=Scaled(function))

    one = query(lambda v: v * 10)
    plan = together([one])[0]
    there = cloudpickle.loads(cloudpickle.dumps(plan))
    need_same(stored(one), there)
    with pytest.raises(BadState, match="aggregates of query 'query' was"):
        need_same(stored(query(lambda v: v * 11)), plan)
