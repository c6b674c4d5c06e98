"""Tuples put one by one are refused where a table of the same would be: no value becomes another."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import WrongType

NOON = dt.datetime(2020, 1, 1, 12)  # noqa: DTZ001 - times without a zone are what is tested
MIDNIGHT = dt.datetime(2020, 1, 1)  # noqa: DTZ001
BOTH = [  # refused as a key and as a value
    (pa.int64(), 1.2),
    (pa.int64(), np.float64(2.7)),
    (pa.int64(), Decimal("1.5")),
    (pa.int64(), 2**70),
    (pa.uint8(), -1),
    (pa.date32(), NOON),
    (pa.date32(), pd.Timestamp(NOON)),
    (pa.timestamp("s"), NOON.replace(microsecond=5)),
    (pa.time32("s"), dt.time(1, 2, 3, 4)),
    (pa.duration("s"), dt.timedelta(microseconds=5)),
    (pa.float64(), 2**60 + 1),
    (pa.decimal128(5, 1), Decimal("1.25")),
    (pa.bool_(), 5),
    (pa.bool_(), 0.5),
    (pa.bool_(), float("nan")),
    (pa.bool_(), "no"),
]
KEYS = [(pa.float32(), 0.1), (pa.float64(), True), (pa.timestamp("us"), 5)]  # refused as a key only
GOOD = [
    (pa.int64(), 1.0, 1),
    (pa.int64(), np.int8(3), 3),
    (pa.float32(), 0.5, 0.5),
    (pa.float64(), 7, 7.0),
    (pa.date32(), MIDNIGHT, MIDNIGHT.date()),
    (pa.timestamp("s"), NOON, NOON),
    (pa.time32("s"), dt.time(1, 2, 3), dt.time(1, 2, 3)),
    (pa.bool_(), np.True_, True),
    (pa.decimal128(5, 1), 1, Decimal("1.0")),
    (pa.int64(), None, None),
]


def queue_of(kind, *, as_key):
    names = ("c", "other") if as_key else ("other", "c")
    return wp.UpdateQueue(names[0], schema=pa.schema({names[0]: kind if as_key else pa.int64(), names[1]:
                                                      pa.int64() if as_key else kind}))  # fmt: skip


@pytest.mark.parametrize("as_table", [False, True])
@pytest.mark.parametrize(
    ("kind", "value", "as_key"),
    [(*case, as_key) for case in BOTH for as_key in (True, False)] + [(*case, True) for case in KEYS],
    ids=str,
)
def test_what_would_become_another_value_is_refused(kind, value, as_key, as_table):
    queue = queue_of(kind, as_key=as_key)
    if as_table:
        column = pa.array([value], pa.decimal256(25, 0)) if value == 2**70 else pa.array([value])
        with pytest.raises(WrongType, match="column 'c' has type"):
            queue.put_batch(pa.table({"c": column, "other": [1]}))
    else:
        with pytest.raises(WrongType, match=r"column 'c' is .* by the schema, but a tuple has") as found:
            queue.put({"c": value, "other": 1})
        assert repr(value) in str(found.value)
        assert "Put such values, or give another schema." in str(found.value)
        good = queue_of(kind, as_key=as_key)
        good.put({"c": None, "other": 1})
        assert good.get() == {"c": None, "other": 1}
    assert len(queue) == 0


NANOSECOND = pd.Timestamp("2020-01-01 00:00:00.000000001")


@pytest.mark.parametrize("as_key", [True, False])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("us"), NANOSECOND),
        (pa.timestamp("s"), NANOSECOND),
        (pa.date32(), NANOSECOND),
        (pa.duration("us"), pd.Timedelta(1, "ns")),
    ],
    ids=str,
)
def test_nanoseconds_of_pandas_are_refused_where_a_column_has_none(kind, value, as_key):
    queue = queue_of(kind, as_key=as_key)
    with pytest.raises(WrongType, match=r"column 'c' is .* something else there, .*: it has nanoseconds"):
        queue.put({"c": value, "other": 1})
    queue.put_batch([{"c": 1000 * value if kind == pa.duration("us") else value.floor("D"), "other": 1}])
    assert len(queue) == 1
    if pa.types.is_timestamp(kind) and not as_key:
        exact = queue_of(pa.timestamp("ns"), as_key=as_key)
        exact.put({"c": value, "other": 1})
        assert exact.get()["c"] == value


@pytest.mark.parametrize("as_key", [True, False])
@pytest.mark.parametrize(("kind", "value", "held"), GOOD, ids=str)
def test_what_stays_what_it_is_is_taken(kind, value, held, as_key):
    queue = queue_of(kind, as_key=as_key)
    queue.put({"c": value, "other": 1})
    assert queue.get()["c"] == held


def test_an_interval_of_a_value_may_have_nanoseconds():
    queue, value = queue_of(pa.month_day_nano_interval(), as_key=False), pa.MonthDayNano([1, 2, 3])
    queue.put({"c": value, "other": 1})
    assert queue.get()["c"] == value


def test_floats_of_a_value_are_rounded_as_in_a_table():
    queue = queue_of(pa.float32(), as_key=False)
    queue.put({"c": 0.1, "other": 1})
    queue.put_batch(pa.table({"c": [0.1], "other": [2]}))
    assert [row["c"] for row in queue.get_batch(2)] == [float(np.float32(0.1))] * 2


def test_values_of_several_types_that_form_no_column_are_named():
    queue = queue_of(pa.date32(), as_key=False)
    rows = [{"c": MIDNIGHT, "other": 1}, {"c": MIDNIGHT.date(), "other": 2}]
    with pytest.raises(WrongType, match="something else there, date and datetime"):
        queue.put_batch(rows)
    for row in rows:
        queue.put(row)
    assert len(queue) == 2
