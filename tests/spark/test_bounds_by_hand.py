"""Bounds that a caller gives through a control folder: those that runner.punctuate takes, and no others."""

import json
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest

import windowpane as wp
from windowpane.core.arrays import ALWAYS, NEVER
from windowpane.errors import BadQuery
from windowpane.spark import punctuate

DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        (5, 5),
        (-5, -5),
        (np.int64(5), 5),
        (np.uint8(5), 5),
        (date(1970, 1, 3), 2 * DAY),
        (date(1969, 12, 31), -DAY),
        (datetime(1970, 1, 2, tzinfo=UTC), DAY),
        (pd.Timestamp("1970-01-02"), DAY),
        (2**70, ALWAYS),
        (-(2**70), NEVER),
    ],
    ids=repr,
)
def test_a_bound_is_written_as_a_number_that_spark_reads(tmp_path, bound, told):
    punctuate(tmp_path / "control", bound)
    (file,) = (tmp_path / "control").iterdir()
    assert json.loads(file.read_text("utf-8")) == {"bound": told}


@pytest.mark.parametrize(
    "bound", [1.7e15, 5.0, float("nan"), True, "5", None, np.float64(5), pd.NaT], ids=repr
)
def test_a_bound_that_would_promise_nothing_is_refused(tmp_path, bound):
    """Spark's reader made a null of it, and no window ever closed."""
    with pytest.raises(BadQuery) as refused:
        punctuate(tmp_path / "control", bound)
    assert str(refused.value) == (
        f"the bound is {bound!r}. Give a datetime, a date, or a whole number in the measure of the stream's "
        "time (for times: microseconds since 1970)."
    )
    assert not (tmp_path / "control").exists()
    runner = wp.stream({"ts": [1]}, time="ts").window(wp.tumbling(5)).agg(wp.count()).start()
    with pytest.raises(BadQuery, match="in the measure of 'ts'"):
        runner.punctuate(bound)
