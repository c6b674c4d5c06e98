"""The Python of docs/spark.md runs as it stands, given a session and three folders."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_python_of_the_page_gives_answers(spark, tmp_path):
    (tmp_path / "in").mkdir()
    seconds = [0, 30, 90, 200]
    ticks = pa.table(
        {
            "ts": pa.array([s * 1_000_000 for s in seconds], pa.timestamp("us", "UTC")),
            "symbol": ["A"] * 4,
            "price": [1.0, 2.0, 3.0, 4.0],
            "volume": [1, 1, 2, 1],
        }
    )
    pq.write_table(ticks, tmp_path / "in" / "ticks.parquet")
    names = {"spark": spark, "folder": str(tmp_path / "in")}
    names |= {name: str(tmp_path / name) for name in ("results", "checkpoint")}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102 - our own text
    (running,) = spark.streams.active
    try:
        running.processAllAvailable()
    finally:
        running.stop()
    found = spark.read.parquet(names["results"])
    assert found.columns == ["symbol", "window", "count", "vwap", "revision"]
    assert {row["count"] for row in found.collect()} == {1, 2}
